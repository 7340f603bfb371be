package train_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// TestExportIsCheckedFirst begins with an export folder that is not empty, with one below a file,
// and with a missing asset: Begin fails.
func TestExportIsCheckedFirst(t *testing.T) {
	dir := t.TempDir()
	used, file := filepath.Join(dir, "used"), filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(used, "variables"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		export train.Export
		want   status.Code
	}{
		"used":   {train.Export{Dir: used}, status.AlreadyExists},
		"unset":  {train.Export{}, status.InvalidArgument},
		"no dir": {train.Export{Dir: filepath.Join(file, "model")}, status.FailedPrecondition},
		"no asset": {
			train.Export{Dir: filepath.Join(dir, "new"), Assets: map[op.Output]string{{}: filepath.Join(dir, "words.txt")}}, status.NotFound,
		},
	} {
		hook := &train.SavedModelHook{Export: test.export}
		if err := hook.Begin(newScope()); status.CodeOf(err) != test.want {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
	hook := &train.SavedModelHook{Export: train.Export{Dir: filepath.Join(dir, "new")}}
	if err := hook.Begin(newScope()); err != nil {
		t.Error(err)
	}
	if left := names(t, dir); !slices.Equal(left, []string{"file", "used"}) {
		t.Errorf("left are %q", left)
	}
}

// TestExportWithAsset exports a model without variables that reads a file, and runs the model after
// the file was removed.
func TestExportWithAsset(t *testing.T) {
	dir := t.TempDir()
	words := filepath.Join(dir, "words.txt")
	if err := os.WriteFile(words, []byte("warp weft"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newScope()
	path := op.PlaceholderWithDefault(s, op.Const(s, words), tensor.MakePartial())
	text := op.ReadFile(s, path)
	sess := session(t, s)
	export := train.Export{
		Dir: filepath.Join(dir, "model"), Assets: map[op.Output]string{path: words},
		Signatures: map[string]savedmodel.Signature{savedmodel.DefaultSignature: {
			Outputs: map[string]savedmodel.TensorInfo{"text": savedmodel.InfoOf(text, tensor.MakePartial())},
		}},
	}
	if err := export.SaveModel(t.Context(), sess, s, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(words); err != nil {
		t.Fatal(err)
	}
	m, err := serve.Load(t.Context(), "local", export.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	sig, err := m.Signature(savedmodel.DefaultSignature)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := sig.Run(t.Context(), nil); err != nil || out["text"] != "warp weft" {
		t.Errorf("got %v, %v", out["text"], err)
	}
	if err := export.SaveModel(t.Context(), sess, s, nil); err == nil {
		t.Error("a model was overwritten")
	}
}
