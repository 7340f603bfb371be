package train_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// savedVars is a graph with variables of every kind: whole and in parts, of several types, resource
// and reference variables.
type savedVars struct {
	scope      *op.Scope
	w, r, name *train.Variable
	parts      *train.Partitioned
	step       *train.Variable
	init, add  *graph.Node
}

func newSavedVars(s *op.Scope) *savedVars {
	m := &savedVars{scope: s}
	m.w = train.NewVariable(s, "w", tensor.Shape{2, 2}, tensor.Float32, train.Values([][]float32{{1, 2}, {3, 4}}))
	m.r = train.NewVariable(s, "r", tensor.Shape{3}, tensor.Int64, train.Values([]int64{1, 2, 3}), train.Resource(), train.NotTrainable())
	m.name = train.NewVariable(s, "name", tensor.Shape{}, tensor.String, train.Values("weft"), train.NotTrainable())
	m.parts = train.NewPartitioned(s, "p", tensor.Shape{5, 2}, tensor.Float32, rows([]int32{0, 1}, []int32{2, 3}, []int32{4}), 3)
	m.step = train.GlobalStep(s)
	m.init = train.VariablesInitializer(s)
	m.add = m.step.AssignAdd(s, op.Const(s, int64(1)))
	return m
}

// values returns the values of all variables as text.
func (m *savedVars) values(t *testing.T, sess train.Session) string {
	t.Helper()
	out, err := sess.Run(t.Context(), nil, []op.Output{m.w.Value, m.r.Value, m.name.Value, m.parts.Value(m.scope), m.step.Value}, nil)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(out))
	for i := range out {
		texts[i] = fmt.Sprint(out[i].Go())
	}
	return strings.Join(texts, " ")
}

const savedValues = "[[1 2] [3 4]] [1 2 3] weft [[0 1] [10 11] [20 21] [30 31] [40 41]] 0"

// startCluster starts servers, which stop at the end of the test.
func startCluster(t *testing.T, jobs map[string]int) *server.Cluster {
	t.Helper()
	cl, err := server.StartCluster(jobs, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cl.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return cl
}

// connect returns a session on the graph of a scope, which must have no build errors.
func connect(t *testing.T, target string, s *op.Scope) *weft.Session {
	t.Helper()
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := weft.NewSession(target, g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sess.Close() })
	return sess
}

// TestSaver saves on one task and on several, and restores in another session.
func TestSaver(t *testing.T) {
	cl := startCluster(t, map[string]int{"ps": 2, "worker": 1})
	for _, sharded := range []bool{false, true} {
		t.Run(fmt.Sprintf("sharded=%v", sharded), func(t *testing.T) {
			dir := t.TempDir()
			build := func() (*savedVars, *train.Saver) {
				s := newScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{PSTasks: 2}))
				return newSavedVars(s), train.NewSaver(s, train.SaverOptions{Sharded: sharded})
			}
			m, saver := build()
			sess := connect(t, cl.Target("worker", 0), m.scope)
			run(t, sess, m.init)
			prefix, err := saver.Save(t.Context(), sess, filepath.Join(dir, "model.ckpt"), 7)
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(dir, "model.ckpt-7"); prefix != want || latestIn(t, dir) != want {
				t.Errorf("saved %s, latest %s", prefix, latestIn(t, dir))
			}
			m, saver = build()
			other, err := weft.NewSession(cl.Target("worker", 0), m.scope.Graph(), weft.WithIsolation())
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if err := saver.Restore(t.Context(), other, prefix); err != nil {
				t.Fatal(err)
			}
			if got := m.values(t, other); got != savedValues {
				t.Errorf("restored %s", got)
			}
			files := names(t, dir)
			shards := 1
			if sharded {
				shards = 2
			}
			if len(files) != 3+shards {
				t.Errorf("files are %q", files)
			}
		})
	}
}

// latestIn returns the latest checkpoint in a folder.
func latestIn(t *testing.T, dir string) string {
	t.Helper()
	latest, err := train.LatestCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	return latest
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestPartsAreOneTensor saves a variable in parts: the checkpoint holds one tensor.
func TestPartsAreOneTensor(t *testing.T) {
	s := newScope()
	m := newSavedVars(s)
	saver := train.NewSaver(s, train.SaverOptions{})
	sess := session(t, s)
	run(t, sess, m.init)
	prefix, err := saver.Save(t.Context(), sess, filepath.Join(t.TempDir(), "ck"), train.NoStep)
	if err != nil {
		t.Fatal(err)
	}
	r, err := checkpoint.Open(prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := r.Read("p")
	if err != nil || fmt.Sprint(p.Go()) != "[[0 1] [10 11] [20 21] [30 31] [40 41]]" {
		t.Errorf("got %v, %v", p.Go(), err)
	}
	// A program that splits the rows differently reads the same checkpoint.
	s = newScope()
	two := train.NewPartitioned(s, "p", tensor.Shape{5, 2}, tensor.Float32, train.Zeros, 2)
	saver = train.NewSaver(s, train.SaverOptions{})
	whole := two.Value(s)
	sess = session(t, s)
	if err := saver.Restore(t.Context(), sess, prefix); err != nil {
		t.Fatal(err)
	}
	out, err := sess.Run(t.Context(), nil, []op.Output{whole}, nil)
	if err != nil || fmt.Sprint(out[0].Go()) != "[[0 1] [10 11] [20 21] [30 31] [40 41]]" {
		t.Errorf("got %v, %v", out, err)
	}
}

// clock is a clock that the test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// TestSaverKeeps checks which checkpoints are kept.
func TestSaverKeeps(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options train.SaverOptions
		// steps of the checkpoints on disk after steps 1 to 6, which are saved at intervals of 1 h
		kept   string
		listed string
	}{
		{"the last two", train.SaverOptions{MaxToKeep: 2}, "5 6", "5 6"},
		{"one", train.SaverOptions{MaxToKeep: 1}, "6", "6"},
		{"all", train.SaverOptions{MaxToKeep: -1}, "1 2 3 4 5 6", "6"},
		{"default", train.SaverOptions{}, "2 3 4 5 6", "2 3 4 5 6"},
		// Step 1 is saved at 1:00. The first checkpoints after 2:30 and after 5:00 are kept.
		{"some permanently", train.SaverOptions{MaxToKeep: 1, KeepEvery: 150 * time.Minute}, "3 6", "6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScope()
			m := newSavedVars(s)
			c := &clock{time.Unix(1e9, 0)}
			tt.options.Now = c.Now
			saver := train.NewSaver(s, tt.options)
			sess := session(t, s)
			run(t, sess, m.init)
			dir := t.TempDir()
			if err := saver.Recover(t.Context(), dir); err != nil { // the clock starts here
				t.Fatal(err)
			}
			for step := range int64(6) {
				c.now = c.now.Add(time.Hour)
				if _, err := saver.Save(t.Context(), sess, filepath.Join(dir, "ck"), step+1); err != nil {
					t.Fatal(err)
				}
			}
			var kept, listed []string
			for _, name := range names(t, dir) {
				if step, ok := strings.CutPrefix(strings.TrimSuffix(name, ".index"), "ck-"); ok && strings.HasSuffix(name, ".index") {
					kept = append(kept, step)
				}
			}
			state, err := checkpoint.ReadState(dir, checkpoint.StateFile)
			if err != nil {
				t.Fatal(err)
			}
			for _, prefix := range state.All {
				listed = append(listed, strings.TrimPrefix(filepath.Base(prefix), "ck-"))
			}
			if got := strings.Join(kept, " "); got != tt.kept {
				t.Errorf("kept %s, want %s", got, tt.kept)
			}
			if got := strings.Join(listed, " "); got != tt.listed {
				t.Errorf("listed %s, want %s", got, tt.listed)
			}
			if metas := len(slices.DeleteFunc(names(t, dir), func(n string) bool { return !strings.HasSuffix(n, ".meta") })); metas != len(kept) {
				t.Errorf("%d checkpoints and %d graphs", len(kept), metas)
			}
		})
	}
}

// TestSaverContinues uses the folder of a first saver with a second one.
func TestSaverContinues(t *testing.T) {
	dir := t.TempDir()
	for saved := range int64(3) {
		s := newScope()
		m := newSavedVars(s)
		saver := train.NewSaver(s, train.SaverOptions{MaxToKeep: 2})
		sess := session(t, s)
		run(t, sess, m.init)
		if _, err := saver.Save(t.Context(), sess, filepath.Join(dir, "ck"), saved); err != nil {
			t.Fatal(err)
		}
		all, err := saver.LastCheckpoints(t.Context())
		if err != nil || len(all) != min(int(saved)+1, 2) {
			t.Errorf("saver %d: %q, %v", saved, all, err)
		}
	}
}

// TestSaveFails checks that a failed save keeps the earlier checkpoints, and that the next save
// succeeds.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	s := newScope()
	m := newSavedVars(s)
	saver := train.NewSaver(s, train.SaverOptions{})
	sess := session(t, s)
	run(t, sess, m.init)
	path := filepath.Join(dir, "ck")
	first, err := saver.Save(t.Context(), sess, path, 1)
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := saver.Save(cancelled, sess, path, 2); err == nil {
		t.Error("a save with a cancelled context succeeded")
	}
	if got := latestIn(t, dir); got != first {
		t.Errorf("the latest is %s", got)
	}
	if _, err := saver.Save(t.Context(), sess, path, 3); err != nil {
		t.Fatal(err)
	}
	all, err := saver.LastCheckpoints(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("kept %q, %v", all, err)
	}
}

// TestFailedSaveLeavesNoParts fails a save after the tasks have written their parts: Save removes
// them.
func TestFailedSaveLeavesNoParts(t *testing.T) {
	dir := t.TempDir()
	s := newScope()
	m := newSavedVars(s)
	saver := train.NewSaver(s, train.SaverOptions{Sharded: true})
	sess := session(t, s)
	run(t, sess, m.init)
	path := filepath.Join(dir, "ck")
	// no file can have this name
	if err := os.MkdirAll(checkpoint.IndexFile(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := saver.Save(t.Context(), sess, path, train.NoStep); err == nil || strings.Contains(err.Error(), "OOM") {
		t.Errorf("got %v", err)
	}
	if left := names(t, dir); !slices.Equal(left, []string{"checkpoint", "ck.index"}) {
		t.Errorf("left are %q", left)
	}
}

// TestMetaGraph saves a model and restores it from its files alone.
func TestMetaGraph(t *testing.T) {
	dir := t.TempDir()
	s := newScope()
	m := newSavedVars(s.WithDevice("/device:CPU:0"))
	saver := train.NewSaver(s, train.SaverOptions{})
	sess := session(t, s)
	run(t, sess, m.init)
	if _, err := saver.Save(t.Context(), sess, filepath.Join(dir, "ck"), 1); err != nil {
		t.Fatal(err)
	}
	prefix := latestIn(t, dir)
	meta, err := savedmodel.ReadMetaGraph(prefix + ".meta")
	if err != nil {
		t.Fatal(err)
	}
	s = newScope()
	restored := train.ImportMetaGraph(s, meta, op.ImportOptions{ClearDevices: true}, train.SaverOptions{})
	vars := train.Variables(s, train.GlobalVariables)
	if len(vars) != 7 || len(train.Variables(s, train.TrainableVariables)) != 4 || train.GlobalStep(s).Name != "global_step" {
		t.Errorf("imported %d variables", len(vars))
	}
	sess = session(t, s)
	if err := restored.Restore(t.Context(), sess, prefix); err != nil {
		t.Fatal(err)
	}
	again := &savedVars{scope: s}
	for _, v := range vars {
		switch v.Name {
		case "w":
			again.w = v
		case "r":
			again.r = v
		case "name":
			again.name = v
		case "global_step":
			again.step = v
		}
	}
	again.parts = &train.Partitioned{Name: "p", Shape: tensor.Shape{5, 2}, Parts: vars[3:6]}
	if got := again.values(t, sess); got != savedValues {
		t.Errorf("restored %s", got)
	}
	if p := vars[4].Part; p == nil || p.Name != "p" || p.Offset != 2 || !p.Shape.Equal(tensor.Shape{5, 2}) {
		t.Errorf("part is %+v", p)
	}
}
