package train_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/test/objecttest"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// TestRemoteTraining trains and resumes with all files in a store: checkpoints, event files and a
// SavedModel. Every seventh request to the store fails.
func TestRemoteTraining(t *testing.T) {
	for root, start := range map[string]func(*testing.T) *objecttest.Store{"s3://bucket": objecttest.S3, "gs://bucket": objecttest.GCS} {
		t.Run(root[:2], func(t *testing.T) {
			store := start(t)
			store.FailEvery(7, objecttest.SlowDown, objecttest.Cut, objecttest.Internal, objecttest.CutAnswer, objecttest.Lost)
			dir := root + "/run/line"
			for run, want := range []int{20, 10} {
				l := newLine(newScope())
				last := int64(20 + 10*run)
				hooks := []train.SessionRunHook{&train.StopAtStepHook{LastStep: last}}
				if run == 1 {
					hooks = append(hooks, &train.SavedModelHook{Export: train.Export{
						Dir: dir + "/model",
						Signatures: map[string]savedmodel.Signature{savedmodel.DefaultSignature: {
							Inputs:  map[string]savedmodel.TensorInfo{"x": savedmodel.InfoOf(l.x, tensor.PartialShape{})},
							Outputs: map[string]savedmodel.TensorInfo{"loss": savedmodel.InfoOf(l.loss, tensor.PartialShape{})},
						}},
					}})
				}
				sess := monitored(t, l, train.TrainingOptions{
					IsChief: true, CheckpointDir: dir, SaveCheckpointSteps: 8, SaveSummariesSteps: 5, LogStepCountSteps: 5, Hooks: hooks,
				})
				if got := l.loop(t, sess); got != want {
					t.Errorf("run %d made %d steps, want %d", run, got, want)
				}
			}
			if got, want := latestIn(t, dir), dir+"/model.ckpt-30"; got != want {
				t.Errorf("the latest checkpoint is %s, want %s", got, want)
			}
			checkModel(t, dir+"/model")
			events, err := summary.Files(dir)
			if err != nil || len(events) != 2 {
				t.Errorf("event files: %q, %v", events, err)
			}
			checkEvents(t, dir)
			entries, err := fileio.Files{}.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if strings.Contains(e.Name(), "tmp") {
					t.Errorf("%s remains", e.Name())
				}
			}
		})
	}
}

// TestRemoteFit is [TestFitResumes] in a store, without the interruption.
func TestRemoteFit(t *testing.T) {
	store := objecttest.S3(t)
	set := blobs(t, 100, 1).Shuffle(100, 1).Batch(20)
	options := func(dir string, epochs int) train.FitOptions {
		return train.FitOptions{Epochs: epochs, Seed: 3, Dir: dir, Validation: blobs(t, 30, 2).Batch(30)}
	}
	whole, err := train.Fit(t.Context(), classifier(), set, options(t.TempDir(), 4))
	if err != nil {
		t.Fatal(err)
	}
	store.FailEvery(5, objecttest.SlowDown, objecttest.CutAnswer)
	if _, err := train.Fit(t.Context(), classifier(), set, options("s3://bucket/fit", 2)); err != nil {
		t.Fatal(err)
	}
	h, err := train.Fit(t.Context(), classifier(), set, options("s3://bucket/fit", 4))
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Epochs) != 4 || h.Last()["loss"] != whole.Last()["loss"] {
		t.Errorf("the loss is %v after %d epochs, want %v", h.Last()["loss"], len(h.Epochs), whole.Last()["loss"])
	}
}

// TestRemoteSaveIsAtomic makes each request of a save fail for good, one after another. The older
// checkpoint stays the latest, and the state file changes last.
func TestRemoteSaveIsAtomic(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	store := objecttest.S3(t)
	s := newScope()
	m := newSavedVars(s)
	saver := train.NewSaver(s, train.SaverOptions{})
	sess := session(t, s)
	run(t, sess, m.init)
	save := func(step int64) error {
		_, err := saver.Save(t.Context(), sess, "s3://bucket/ck/model", step)
		return err
	}
	if err := save(0); err != nil {
		t.Fatal(err)
	}
	store.Requests()
	if err := save(1); err != nil {
		t.Fatal(err)
	}
	requests := store.Requests()
	puts := slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return !strings.HasPrefix(r, http.MethodPut) })
	if len(puts) < 3 || !strings.HasSuffix(puts[len(puts)-1], "/ck/checkpoint") {
		t.Errorf("objects were written in the order %q", puts)
	}
	complete := int64(1)
	for fail := range len(requests) {
		count := 0
		store.Fail(func(*http.Request) objecttest.Fault {
			if count++; count == fail+1 {
				return objecttest.Internal
			}
			return objecttest.None
		})
		step := int64(fail + 2)
		if save(step) == nil {
			complete = step
		}
		store.Fail(nil)
		latest, err := checkpoint.Latest("s3://bucket/ck")
		if err != nil || latest != fmt.Sprintf("s3://bucket/ck/model-%d", complete) && latest != fmt.Sprintf("s3://bucket/ck/model-%d", step) {
			t.Fatalf("after a fault of request %d the latest checkpoint is %s, %v", fail, latest, err)
		}
		if latest == fmt.Sprintf("s3://bucket/ck/model-%d", step) {
			complete = step
		}
		r, err := checkpoint.Open(latest)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := r.Read("r"); err != nil || fmt.Sprint(v.Go()) != "[1 2 3]" {
			t.Errorf("%s contains %v, %v", latest, v, err)
		}
		r.Close()
	}
}
