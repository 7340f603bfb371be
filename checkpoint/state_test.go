package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestStateText compares with the text that TensorFlow writes.
func TestStateText(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		s        State
		relative bool
		want     string
	}{
		{State{
			Latest: "/tmp/s/ck-2", All: []string{"/tmp/s/ck-1", "/tmp/s/ck-2"}, Times: []float64{1700000000.25, 1700000001.5},
			LastPreserved: 1699999999,
		}, true, `model_checkpoint_path: "/tmp/s/ck-2"
all_model_checkpoint_paths: "/tmp/s/ck-1"
all_model_checkpoint_paths: "/tmp/s/ck-2"
all_model_checkpoint_timestamps: 1700000000.25
all_model_checkpoint_timestamps: 1700000001.5
last_preserved_timestamp: 1699999999.0
`},
		{State{Latest: filepath.Join(dir, "ck-\"2\né"), All: []string{filepath.Join(dir, "ck-1")}}, true, `model_checkpoint_path: "ck-\"2\né"
all_model_checkpoint_paths: "ck-1"
`},
	} {
		if err := test.s.Write(dir, StateFile, test.relative); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, StateFile))
		if err != nil || string(b) != test.want {
			t.Errorf("got  %s\nwant %s, %v", b, test.want, err)
		}
		got, err := ReadState(dir, StateFile)
		if err != nil || !reflect.DeepEqual(*got, test.s) {
			t.Errorf("got  %v\nwant %v, %v", got, test.s, err)
		}
	}
}

// TestRelativeState compares the state file of a relative folder with the one that TensorFlow
// 2.21's tf.compat.v1.train.Saver writes: it names checkpoints relative to the folder.
func TestRelativeState(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	if err := os.MkdirAll(filepath.Join("a", "ckpt"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		dir, prefix string
		relative    bool
		want        string // in the file
		read        string // by ReadState
	}{
		{"a/ckpt", "a/ckpt/model-1", false, "model-1", "a/ckpt/model-1"},
		{"a/ckpt", "a/ckpt/model-1", true, "model-1", "a/ckpt/model-1"},
		{"./a/ckpt/", "./a/ckpt//model-1", false, "model-1", "a/ckpt/model-1"},
		{"../" + filepath.Base(home) + "/a", "a/model-1", false, "model-1", "../" + filepath.Base(home) + "/a/model-1"},
		{".", "model-1", false, "model-1", "model-1"},
		{"a/ckpt", "a/other/model-1", false, "../other/model-1", "a/other/model-1"},
		{home + "/a", home + "/a/model-1", false, home + "/a/model-1", home + "/a/model-1"},
		{home + "/a", home + "/a/model-1", true, "model-1", home + "/a/model-1"},
		{"a", home + "/a/model-1", true, "model-1", "a/model-1"},
		{"a", home + "/model-1", true, home + "/model-1", home + "/model-1"},
		{home + "/a", "a/model-1", false, "model-1", home + "/a/model-1"},
	} {
		s := State{Latest: test.prefix, All: []string{test.prefix}}
		if err := s.Write(test.dir, StateFile, test.relative); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(test.dir, StateFile))
		want := fmt.Sprintf("model_checkpoint_path: %q\nall_model_checkpoint_paths: %q\n", test.want, test.want)
		if err != nil || string(b) != want {
			t.Errorf("%s in %s, relative=%v: got %s, %v", test.prefix, test.dir, test.relative, b, err)
		}
		if got, err := ReadState(test.dir, StateFile); err != nil || got.Latest != test.read {
			t.Errorf("%s in %s, relative=%v: read %v, %v", test.prefix, test.dir, test.relative, got, err)
		}
	}
}

func TestLatest(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadState(dir, StateFile); status.CodeOf(err) != status.NotFound {
		t.Errorf("no state: %v", err)
	}
	if got, err := Latest(dir); got != "" || err != nil {
		t.Errorf("no state: the latest is %q, %v", got, err)
	}
	if err := (&State{All: []string{filepath.Join(dir, "ck-0")}}).Write(dir, StateFile, false); err != nil {
		t.Fatal(err)
	}
	if got, err := Latest(dir); got != "" || err != nil {
		t.Errorf("before the first checkpoint is complete: the latest is %q, %v", got, err)
	}
	prefix := filepath.Join(dir, "ck-1")
	s := State{Latest: prefix, All: []string{prefix}}
	if err := s.Write(dir, StateFile, true); err != nil {
		t.Fatal(err)
	}
	if got, err := Latest(dir); status.CodeOf(err) != status.NotFound || !strings.Contains(err.Error(), prefix) {
		t.Errorf("the state names a checkpoint that does not exist: %q, %v", got, err)
	}
	write(t, prefix, named{name: "x", t: tensor.Scalar(true)})
	if got, err := Latest(dir); got != prefix || err != nil {
		t.Errorf("the latest is %q, %v", got, err)
	}
	if err := Remove(prefix); err != nil {
		t.Fatal(err)
	}
	if err := Remove(prefix); err != nil {
		t.Errorf("removing again: %v", err)
	}
	if names := list(t, dir); len(names) != 1 {
		t.Errorf("the remaining files are %q", names)
	}
	if err := os.WriteFile(filepath.Join(dir, StateFile), []byte("no state"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Latest(dir); status.CodeOf(err) != status.DataLoss {
		t.Errorf("a damaged state: %v", err)
	}
}

// TestShardsOfTheOldFormat uses a state file with a pattern, as TensorFlow's sharded savers of the
// format V1 write it.
func TestShardsOfTheOldFormat(t *testing.T) {
	dir := t.TempDir()
	pattern := filepath.Join(dir, "ck-7-?????-of-00002")
	if Exists(pattern) {
		t.Error("Exists is true before the checkpoint is written")
	}
	for shard, value := range map[string]int32{"0": 3, "1": 4} {
		w := CreateV1(filepath.Join(dir, "ck-7-0000"+shard+"-of-00002"))
		v := tensor.Scalar(value)
		if err := w.Add("v"+shard, &v); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := State{Latest: pattern, All: []string{pattern}}
	if err := s.Write(dir, StateFile, true); err != nil {
		t.Fatal(err)
	}
	latest, err := Latest(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(latest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if v, err := r.Read("v1"); err != nil || tensor.Value[int32](&v) != 4 {
		t.Errorf("v1 is %v, %v", v.Go(), err)
	}
	if err := Remove(pattern); err != nil || Exists(pattern) || len(list(t, dir)) != 1 {
		t.Errorf("after removing: %q, %v", list(t, dir), err)
	}
}
