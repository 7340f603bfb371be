package oldfiles

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// points are the inputs of the models, one for each branch.
var points = map[string][]float32{"up": {0.5, 1.25}, "down": {-0.5, -1.25}}

// results returns what the release computed, by "point/output".
func results(t *testing.T, dir string) map[string][]float32 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string][]float32
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// check compares all results, or those of the given outputs, with those that run returns.
func check(t *testing.T, dir string, run func(x tensor.Tensor, output string) (tensor.Tensor, error), only ...string) {
	t.Helper()
	compared := 0
	for key, want := range results(t, dir) {
		point, output, _ := strings.Cut(key, "/")
		if only != nil && only[0] != output {
			continue
		}
		compared++
		value, err := run(tensor.Vector(points[point]...), output)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		for i, got := range tensor.Values[float32](&value) {
			if diff := math.Abs(float64(got - want[i])); diff > 1e-5 {
				t.Errorf("%s[%d] is %v, want %v", key, i, got, want[i])
			}
		}
	}
	if compared < 2 {
		t.Errorf("%d results", compared)
	}
}

func TestSavedModels(t *testing.T) {
	each(t, func(t *testing.T, dir, _ string) {
		m, err := serve.Load(t.Context(), "local", filepath.Join(dir, "model"))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		sig, err := m.Signature(savedmodel.DefaultSignature)
		if err != nil {
			t.Fatal(err)
		}
		check(t, dir, func(x tensor.Tensor, output string) (tensor.Tensor, error) {
			out, err := sig.RunTensors(t.Context(), map[string]tensor.Tensor{"x": x})
			return out[output], err
		})
		files, err := savedmodel.Open(filepath.Join(dir, "model"))
		if err != nil {
			t.Fatal(err)
		}
		assets := files.MetaGraphs[0].Assets
		if len(assets) != 1 || assets[0].Tensor != "words:0" {
			t.Fatalf("the assets are %v", assets)
		}
		if words, err := os.ReadFile(files.AssetPath(assets[0])); string(words) != "one\ntwo\n" {
			t.Errorf("the asset is %q: %v", words, err)
		}
	})
}

// TestMetaGraphs restores the checkpoint of a MetaGraph with the nodes that its Saver added.
func TestMetaGraphs(t *testing.T) {
	each(t, func(t *testing.T, dir, release string) {
		prefixes := map[string]string{"saved.meta": filepath.Join(dir, "saved")}
		if release == "0.12" { // the form of models for serving before the SavedModel
			bundle := "bundle/00000007/export"
			prefixes[bundle+".meta"] = filepath.Join(dir, bundle)
		}
		for file, prefix := range prefixes {
			meta, err := savedmodel.ReadMetaGraph(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			s := op.NewScope()
			saver := train.ImportMetaGraph(s, meta, op.ImportOptions{}, train.SaverOptions{})
			run(t, s, dir, func(sess *weft.Session) error { return saver.Restore(t.Context(), sess, prefix) })
		}
	})
}

func TestFrozenGraphs(t *testing.T) {
	each(t, func(t *testing.T, dir, release string) {
		for _, file := range []string{"frozen.pb", "frozen.pbtxt"} {
			def, err := savedmodel.ReadGraph(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			s := op.NewScope()
			s.Import(def, op.ImportOptions{})
			var only []string
			if release == "0.12" {
				only = []string{"dw"} // the release freezes no function, and y calls one
			}
			run(t, s, dir, func(*weft.Session) error { return nil }, only...)
		}
	})
}

// run compares the results of an imported graph after start.
func run(t *testing.T, s *op.Scope, dir string, start func(*weft.Session) error, only ...string) {
	t.Helper()
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	if err := start(sess); err != nil {
		t.Fatal(err)
	}
	check(t, dir, func(x tensor.Tensor, output string) (tensor.Tensor, error) {
		out, err := sess.Run(t.Context(), weft.Feeds{g.Node("x").Out(0): x}, []op.Output{g.Node(output).Out(0)}, nil)
		if err != nil {
			return tensor.Tensor{}, err
		}
		return out[0], nil
	}, only...)
}
