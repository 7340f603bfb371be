package serving_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving"
	"github.com/weft-ml/weft/internal/serving/models"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// write writes a model with one signature.
func write(t *testing.T, dir string, s *op.Scope, sig savedmodel.Signature) {
	t.Helper()
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	b, err := savedmodel.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Abort()
	sig.Method = savedmodel.MethodPredict
	if err := b.Add(&savedmodel.MetaGraph{
		Graph: g.Def(), Tags: []string{savedmodel.TagServe}, Signatures: map[string]savedmodel.Signature{savedmodel.DefaultSignature: sig},
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
}

func infos(outputs map[string]op.Output, shape ...int64) map[string]savedmodel.TensorInfo {
	out := map[string]savedmodel.TensorInfo{}
	for name, o := range outputs {
		out[name] = savedmodel.InfoOf(o, tensor.MakePartial(shape...))
	}
	return out
}

// writeSum writes a model that returns a·x + b, with defaults for a and b.
func writeSum(t *testing.T, dir string, byDefault float32) {
	t.Helper()
	s := op.NewScope()
	a, b := op.Placeholder(s.Named("a"), tensor.Float32), op.Placeholder(s.Named("b"), tensor.Float32)
	x := op.Placeholder(s.Named("x"), tensor.Float32)
	y := op.AddV2(s.Named("y"), op.Mul(s, a, x), b)
	write(t, dir, s, savedmodel.Signature{
		Inputs: infos(map[string]op.Output{"a": a, "b": b, "x": x}, -1), Outputs: infos(map[string]op.Output{"y": y}, -1),
		Defaults: map[string]tensor.Tensor{"a": tensor.Vector(byDefault), "b": tensor.Vector[float32](1)},
	})
}

// vectorRequest returns a request with the input "x" = [1, 1].
func vectorRequest() *servingpb.PredictRequest {
	q := predictRequest(0)
	q.Inputs["x"].TensorShape.Dim = []*pb.TensorShapeProto_Dim{{Size: 2}}
	return q
}

// Inputs with a default value may be left out of requests of every kind.
func TestDefaults(t *testing.T) {
	base := t.TempDir()
	writeSum(t, filepath.Join(base, "1"), 10)
	r := start(t, func(c *serving.Config) { c.Models = configOf(base, "") })
	for _, tt := range []struct{ path, body, want string }{
		{"/v1/models/m:predict", `{"instances": [2, 3]}`, `{"predictions":[21.0,31.0]}`},
		{"/v1/models/m:predict", `{"instances": [{"x": 2, "a": 5}]}`, `{"predictions":[11.0]}`},
		{"/v1/models/m:predict", `{"inputs": {"x": [2], "b": [4]}}`, `{"outputs":[24.0]}`},
		{"/v1/models/m:predict", `{"inputs": {"a": [2]}}`, `{"error":"Missing named input: x in 'inputs' object."}`},
		{"/v2/models/m/infer", `{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [2]}]}`,
			`{"model_name":"m","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":[1],"data":[21.0]}]}`},
	} {
		if _, body := r.post(tt.path, tt.body); compact(t, body) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.body, body, tt.want)
		}
	}
	q := vectorRequest()
	if out, err := r.predict(q); err != nil || out.GetOutputs()["y"].GetFloatVal()[0] != 11 {
		t.Errorf("got %v, %v", out, err)
	}
	q.Inputs["a"] = q.Inputs["x"]
	delete(q.Inputs, "x")
	want := "Signature input alias: x(feed name: x:0) not found in request and no default value provided. " +
		"Inputs expected to be in the request {a}, or default input alias set: a,b"
	if _, err := r.predict(q); grpcstatus.Convert(err).Message() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The operations decide which shapes they accept, not the signature. TensorFlow's own example asks
// a model with an input of shape [?,1] for the values of a vector.
func TestOtherShapes(t *testing.T) {
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, 1)))
	y := op.AddV2(s.Named("y"), op.Mul(s, x, op.Const(s, float32(0.5))), op.Const(s, float32(2)))
	z := op.MatMul(s.Named("z"), x, op.Const(s, [][]float32{{1, 2}}))
	base := t.TempDir()
	write(t, filepath.Join(base, "1"), s, savedmodel.Signature{
		Inputs: infos(map[string]op.Output{"x": x}, -1, 1), Outputs: infos(map[string]op.Output{"y": y, "z": z}, -1, -1),
	})
	for _, batching := range []*servable.Batching{nil, {MaxBatch: 8, MaxQueued: 8, Threads: 1}} {
		r := start(t, func(c *serving.Config) {
			c.Models = configOf(base, "")
			c.Servable.Batching = batching
		})
		if code, body := r.post("/v1/models/m:predict", `{"instances": [[1.0], [2.0]]}`); code != 200 {
			t.Errorf("the declared shape: %d %s", code, body)
		}
		if code, body := r.post("/v1/models/m:predict", `{"instances": [1.0, 2.0]}`); code != 400 || !strings.Contains(body, "ndims must be >= 2") ||
			!strings.Contains(body, `(The input \"x\" has the shape [2]. The signature serving_default has [?,1].)`) {
			t.Errorf("a shape that MatMul does not take: %d %s", code, body)
		}
		q := predictRequest(0)
		q.Inputs["x"].TensorShape.Dim = []*pb.TensorShapeProto_Dim{{Size: 2}}
		q.OutputFilter = []string{"y"}
		if out, err := r.predict(q); err != nil || fmt.Sprint(out.GetOutputs()["y"].GetFloatVal()) != "[2.5 2.5]" {
			t.Errorf("a shape that Mul takes: %v, %v", out, err)
		}
	}
}

// A model whose configuration names another folder is replaced by the version in that folder,
// although it has the same number.
func TestBasePathChanges(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	writeSum(t, filepath.Join(before, "1"), 10)
	writeSum(t, filepath.Join(after, "1"), 100)
	r := start(t, func(c *serving.Config) { c.Models = configOf(before, "") })
	for _, tt := range []struct{ base, want string }{
		{before, `{"predictions":[11.0]}`}, {after, `{"predictions":[101.0]}`}, {before, `{"predictions":[11.0]}`},
	} {
		if err := r.reload(configOf(tt.base, "")); err != nil {
			t.Fatal(err)
		}
		if code, body := r.post("/v1/models/m:predict", `{"instances": [1]}`); compact(t, body) != tt.want {
			t.Errorf("got %d %s, want %s", code, body, tt.want)
		}
	}
	// a folder with a broken version leaves the old one
	broken := t.TempDir()
	writeBroken(t, broken, 1)
	if err := r.reload(configOf(broken, "")); grpcstatus.Code(err) != codes.Unknown {
		t.Errorf("got %v", err)
	}
	if code, body := r.post("/v1/models/m:predict", `{"instances": [1]}`); code != http.StatusOK || compact(t, body) != `{"predictions":[11.0]}` {
		t.Errorf("got %d %s", code, body)
	}
}

// TestMemoryComesBack loads and unloads a model of 8 MiB many times.
func TestMemoryComesBack(t *testing.T) {
	dir := t.TempDir()
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Int32)
	table := make([]float32, 2<<20)
	for i := range table {
		table[i] = float32(i)
	}
	y := op.GatherV2(s.Named("y"), op.Const(s, table), x, op.Const(s, int32(0)))
	write(t, filepath.Join(dir, "1"), s, savedmodel.Signature{
		Inputs: infos(map[string]op.Output{"x": x}, -1), Outputs: infos(map[string]op.Output{"y": y}, -1),
	})
	config := configOf(dir, "")
	none := &servingpb.ModelServerConfig{}
	r := start(t, func(c *serving.Config) { c.Models = none })
	var first uint64
	for i := range 20 {
		if err := r.reload(config); err != nil {
			t.Fatal(err)
		}
		if _, body := r.post("/v1/models/m:predict", `{"instances": [5]}`); compact(t, body) != `{"predictions":[5.0]}` {
			t.Fatal(body)
		}
		if err := r.reload(&servingpb.ModelServerConfig{Config: &servingpb.ModelServerConfig_ModelConfigList{ModelConfigList: &servingpb.ModelConfigList{}}}); err != nil {
			t.Fatal(err)
		}
		r.until("the model is unloaded", func() bool { _, body := r.get("/v1/models/m"); return contains(body, `"END"`) })
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if first == 0 {
			first = m.HeapAlloc
		}
		if m.HeapAlloc > first+8<<20 {
			t.Fatalf("the heap has %d MiB after %d loads, %d after the first", m.HeapAlloc>>20, i+1, first>>20)
		}
	}
}

// Load of a version that is not wanted any more ends, also if it waits.
func TestManagerClosesWhileLoading(t *testing.T) {
	dir := t.TempDir()
	writeSum(t, filepath.Join(dir, "1"), 10)
	loading := make(chan struct{})
	m := models.New(models.Options{Log: discard(), Load: func(ctx context.Context, _ string, _ int64, _ string) (*servable.Servable, error) {
		close(loading)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	done := make(chan error, 1)
	go func() { done <- m.Apply(t.Context(), configOf(dir, "")) }()
	<-loading
	m.Close()
	if err := <-done; err == nil {
		t.Error("got no error")
	}
}

// A configuration that comes when the server stops is an error, and loads nothing.
func TestManagerAppliesAfterClose(t *testing.T) {
	dir := t.TempDir()
	writeSum(t, filepath.Join(dir, "1"), 10)
	m := models.New(models.Options{Log: discard(), Load: func(context.Context, string, int64, string) (*servable.Servable, error) {
		t.Error("loads a version")
		return nil, status.Internalf("not loaded")
	}})
	m.Close()
	if err := m.Apply(t.Context(), configOf(dir, "")); status.CodeOf(err) != status.Unavailable {
		t.Errorf("got %v", err)
	}
}

// A configuration of too many models is an error.
func TestManagerLimitsModels(t *testing.T) {
	m := models.New(models.Options{Log: discard()})
	defer m.Close()
	config := configOf(t.TempDir(), "")
	list := config.GetModelConfigList()
	list.Config = slices.Repeat(list.GetConfig(), 100_001)
	if err := m.Apply(t.Context(), config); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}
