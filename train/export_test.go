package train_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// TestExportWithAsset writes a model without variables that reads a file, and uses it after the
// file is gone.
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
	m, err := weft.LoadSavedModel(t.Context(), "local", export.Dir, nil)
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
		t.Error("a model was written over another")
	}
}
