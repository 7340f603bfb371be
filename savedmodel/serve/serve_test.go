package serve_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/tensor"
)

// Models that TensorFlow wrote: lookups has variables of both kinds, a table of words in an asset
// and three signatures; loop is a tf.function with a loop and a condition, functions one with all
// that calls others.
const (
	lookups   = "../testdata/lookups"
	loop      = "../testdata/loop"
	functions = "../testdata/functions"
)

func load(t *testing.T, dir string) *serve.Model {
	t.Helper()
	m, err := serve.Load(t.Context(), "local", dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestLoad(t *testing.T) {
	m := load(t, lookups)
	for _, tt := range []struct {
		signature string
		in, want  map[string]any
	}{
		{savedmodel.DefaultSignature, map[string]any{"x": [][]float32{{1, 1}, {0, 2}}}, map[string]any{"y": [][]float32{{3.5}, {4.5}}}},
		{"rows", map[string]any{"ids": []int{2, 0}}, map[string]any{"z": [][]float32{{36.5}, {12.5}}}},
		{"words", map[string]any{"words": []string{"b", "c", "a"}}, map[string]any{"n": []int64{1, -1, 0}}},
	} {
		sig, err := m.Signature(tt.signature)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := sig.Run(t.Context(), tt.in); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, %v, want %v", tt.signature, got, err, tt.want)
		}
	}
}

func TestLoadOfFunctions(t *testing.T) {
	sig, err := load(t, loop).Signature(savedmodel.DefaultSignature)
	if err != nil {
		t.Fatal(err)
	}
	// 3 → 9 → 27 → 13.5
	if got, err := sig.Run(t.Context(), map[string]any{"x": [][]float32{{1, 1}}}); err != nil || !reflect.DeepEqual(got, map[string]any{"y": [][]float32{{13.5}}}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestModelsAreIndependent runs signatures of two copies of a model at once.
func TestModelsAreIndependent(t *testing.T) {
	var running sync.WaitGroup
	for range 2 {
		sig, err := load(t, lookups).Signature(savedmodel.DefaultSignature)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			running.Go(func() {
				for k := range 20 {
					x := float32(20*i + k)
					got, err := sig.Run(t.Context(), map[string]any{"x": [][]float32{{x, 0}}})
					if err != nil || !reflect.DeepEqual(got["y"], [][]float32{{x + 0.5}}) {
						t.Errorf("%v gives %v, %v", x, got, err)
						return
					}
				}
			})
		}
	}
	running.Wait()
}

func TestSignatureMistakes(t *testing.T) {
	m := load(t, lookups)
	sig, err := m.Signature(savedmodel.DefaultSignature)
	if err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string]map[string]any{
		`input "x" is missing: the signature takes x float32[?,2]`: {},
		`an input is unknown`:                                       {"x": [][]float32{{1, 1}}, "y": 1},
		`input "x" is of type float64, want float32`:                {"x": [][]float64{{1, 1}}},
		`input "x" has shape [2], want [?,2]`:                       {"x": []float32{1, 1}},
		`input "x": a tensor cannot have rows of 2 and of 1 values`: {"x": [][]float32{{1, 1}, {1}}},
	} {
		if _, err := sig.Run(t.Context(), in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := m.Signature("none"); err == nil || !strings.Contains(err.Error(), `it has ["rows" "serving_default" "words"]`) {
		t.Errorf("got %v", err)
	}
	if _, err := serve.Load(t.Context(), "local", lookups, serve.WithTags("train")); err == nil || !strings.Contains(err.Error(), "tags {train}") {
		t.Errorf("got %v", err)
	}
	if _, err := serve.Load(t.Context(), "local", t.TempDir()); err == nil || !strings.Contains(err.Error(), "SavedModel file does not exist") {
		t.Errorf("got %v", err)
	}
}

// TestFreeze runs what remains of a model without its checkpoint.
func TestFreeze(t *testing.T) {
	feeds := map[string]tensor.Tensor{"ids": tensor.Vector[int64](2, 0)}
	got := runFrozen(t, lookups, []string{"y:0", "z"}, feeds, "z")
	if !reflect.DeepEqual(got, []any{[][]float32{{36.5}, {12.5}}}) {
		t.Errorf("got %v", got)
	}
}

// TestFreezeFunctions has a model of tf.function whose loops, branches and functions, one in the
// other, read variables. The numbers are TensorFlow's.
func TestFreezeFunctions(t *testing.T) {
	call := "StatefulPartitionedCall"
	for _, tt := range []struct {
		x    []float32
		id   int32
		want []any
	}{
		{[]float32{0.5, 1.25}, 2, []any{
			[]float32{0.015413559, 3.8317626}, []int32{6, 2}, []float32{0.030827118, 1.9158813}, []float32{0.030827118, 7.663525},
		}},
		{[]float32{-0.5, -1.25}, 1, []any{
			[]float32{-1.0308272, -7.915881}, []int32{6, 2}, []float32{-2.0616543, -3.9579406}, []float32{-2.0616543, -15.831762},
		}},
	} {
		feeds := map[string]tensor.Tensor{"serving_default_x": tensor.Vector(tt.x...), "serving_default_ids": tensor.Vector(tt.id)}
		got := runFrozen(t, functions, []string{call}, feeds, call, call, call, call)
		for i, want := range tt.want {
			if !close32(got[i], want) {
				t.Errorf("result %d is %v, want %v", i, got[i], want)
			}
		}
	}
	if def, err := serve.Freeze(t.Context(), "local", loop, []string{call}); err != nil || len(def.Library) > 0 {
		t.Errorf("functions are left: %v, %v", def, err)
	}
}

// close32 compares values up to rounding.
func close32(got, want any) bool {
	x, ok := got.([]float32)
	if !ok {
		return reflect.DeepEqual(got, want)
	}
	return slices.EqualFunc(x, want.([]float32), func(a, b float32) bool { return max(a-b, b-a) <= 1e-6*max(1, a, -a) })
}

// runFrozen writes the frozen graph of a model to a file, reads it and runs it: it fetches output i
// of the i-th node.
func runFrozen(t *testing.T, model string, outputs []string, feeds map[string]tensor.Tensor, fetch ...string) []any {
	t.Helper()
	def, err := serve.Freeze(t.Context(), "local", model, outputs)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "frozen.pb")
	if err := savedmodel.WriteGraph(path, def); err != nil {
		t.Fatal(err)
	}
	if def, err = savedmodel.ReadGraph(path); err != nil {
		t.Fatal(err)
	}
	g, err := graph.Import(def, op.Defs, graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := weft.NewSession("local", g)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fed := map[graph.Output]tensor.Tensor{}
	for name, v := range feeds {
		fed[g.Node(name).Out(0)] = v
	}
	var fetches []graph.Output
	for i, name := range fetch {
		fetches = append(fetches, g.Node(name).Out(i))
	}
	out, err := s.Run(t.Context(), fed, fetches, nil)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]any, len(out))
	for i := range out {
		values[i] = out[i].Go()
	}
	return values
}
