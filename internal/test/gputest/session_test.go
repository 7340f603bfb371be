package gputest_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/devices"
	_ "github.com/weft-ml/weft/internal/test/gputest"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

func open(t *testing.T, s *op.Scope, opts ...weft.SessionOption) *weft.Session {
	t.Helper()
	return openAt(t, "local", s, opts...)
}

func openAt(t *testing.T, target string, s *op.Scope, opts ...weft.SessionOption) *weft.Session {
	t.Helper()
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	session, err := weft.NewSession(target, g, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return session
}

func TestDevices(t *testing.T) {
	s := op.NewScope()
	op.NoOp(s)
	session := open(t, s)
	list, err := session.ListDevices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(list)
	for _, want := range []string{"/job:localhost/replica:0/task:0/device:CPU:0", "/device:GPU:0", "/device:GPU:1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}

// TestSum is a+b in every form of a device's name.
func TestSum(t *testing.T) {
	for _, name := range []string{"/gpu:0", "/GPU:1", "/device:GPU:0", "/job:localhost/replica:0/task:0/device:GPU:1", ""} {
		s := op.NewScope()
		on := s.WithDevice(name)
		a, b := op.Const(on, []float32{1, 2}), op.Placeholder(s, tensor.Float32)
		sum := op.Add(on, a, b)
		session := open(t, s)
		out, err := session.Run(t.Context(), weft.Feeds{b: tensor.Vector[float32](10, 20)}, []op.Output{sum}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v := tensor.Values[float32](&out[0]); v[0] != 11 || v[1] != 22 {
			t.Errorf("%s: %v", name, v)
		}
	}
}

// TestMemoryKinds mixes shapes, which are in the memory of the host, with values on the device.
func TestMemoryKinds(t *testing.T) {
	s := op.NewScope()
	on := s.WithDevice("/gpu:0")
	x := op.Placeholder(on.Named("x"), tensor.Float32)
	shape := op.Shape(on, x)
	n := op.Size(on, x)
	flat := op.Reshape(on, x, op.Reshape(on, n, op.Const(on, []int32{1})))
	rows := op.Cast(on, op.Mul(on, n, op.Const(on, int32(2))), tensor.Float32)
	sum := op.Add(on, flat, rows)
	back := op.Reshape(on, sum, shape)
	session := open(t, s)
	out, err := session.Run(t.Context(), weft.Feeds{x: matrix(t, 2, 3, 1, 2, 3, 4, 5, 6)}, []op.Output{back, shape, n}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := tensor.Values[float32](&out[0]); v[0] != 13 || v[5] != 18 || out[0].Dim(1) != 3 {
		t.Errorf("%v of shape %v", v, out[0].Shape())
	}
	if v := tensor.Values[int32](&out[1]); v[0] != 2 || v[1] != 3 {
		t.Errorf("shape %v", v)
	}
}

// towers adds a perceptron whose variables are on a CPU, with one tower per device, and gradients
// that are averaged.
func towers(s *op.Scope, cpu string, devices []string) (x, y op.Output, loss op.Output, step, init *graph.Node) {
	vars := s.WithDevice(cpu)
	x, y = op.Placeholder(vars.Named("x"), tensor.Float32), op.Placeholder(vars.Named("y"), tensor.Float32)
	weights := make([]float32, 8*16+16*4)
	for i := range weights {
		weights[i] = float32(math.Sin(float64(i))) / 4
	}
	w1 := train.NewVariable(vars, "w1", tensor.Shape{8, 16}, tensor.Float32, train.Values(rows(weights[:128], 16)))
	w2 := train.NewVariable(vars, "w2", tensor.Shape{16, 4}, tensor.Float32, train.Values(rows(weights[128:], 4)))
	b := train.NewVariable(vars, "b", tensor.Shape{16}, tensor.Float32, train.Constant(0))
	opt := train.NewGradientDescent(0.5)
	var all [][]train.GradientVariable
	var losses []op.Output
	for i, d := range devices {
		on := s.SubScope(fmt.Sprintf("tower%d", i)).WithDevice(d)
		h := op.Relu(on, op.BiasAdd(on, op.MatMul(on, x, w1.Read(on)), b.Read(on)))
		logits := op.MatMul(on, h, w2.Read(on))
		each, _ := op.SoftmaxCrossEntropyWithLogits(on, logits, y)
		loss := op.Mean(on, each, op.Const(on, []int32{0}))
		losses = append(losses, loss)
		all = append(all, train.ComputeGradients(on, loss))
	}
	average := all[0]
	for i := range average {
		var parts []op.Output
		for _, g := range all {
			parts = append(parts, g[i].Grad.Dense)
		}
		sum := op.AddN(vars, parts)
		average[i].Grad.Dense = op.RealDiv(vars, sum, op.Const(vars, float32(len(parts))))
	}
	step = train.ApplyGradients(vars, opt, average, nil)
	return x, y, losses[len(losses)-1], step, train.VariablesInitializer(s, train.Variables(s, train.GlobalVariables)...)
}

func rows(v []float32, width int) [][]float32 {
	var out [][]float32
	for len(v) > 0 {
		out, v = append(out, v[:width]), v[width:]
	}
	return out
}

func matrix(t *testing.T, rows, columns int64, v ...float32) tensor.Tensor {
	t.Helper()
	m, err := tensor.FromSlice(tensor.Shape{rows, columns}, v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// trainOn runs some steps on devices of this process and returns the losses.
func trainOn(t *testing.T, steps int, devices ...string) []float32 {
	t.Helper()
	return trainAt(t, "local", "/cpu:0", steps, devices...)
}

// trainAt runs some steps on devices of a cluster, with the variables on a CPU, and returns the
// losses.
func trainAt(t *testing.T, target, cpu string, steps int, devices ...string) []float32 {
	t.Helper()
	s := op.NewScope()
	x, y, loss, step, init := towers(s, cpu, devices)
	session := openAt(t, target, s)
	if err := session.Exec(t.Context(), nil, init); err != nil {
		t.Fatal(err)
	}
	in, labels := make([]float32, 32*8), make([]float32, 32*4)
	for i := range in {
		in[i] = float32(math.Cos(float64(i * i)))
	}
	for i := range 32 {
		labels[4*i+i%4] = 1
	}
	feeds := weft.Feeds{x: matrix(t, 32, 8, in...), y: matrix(t, 32, 4, labels...)}
	var losses []float32
	for range steps {
		out, err := session.Run(t.Context(), feeds, []op.Output{loss}, []*graph.Node{step})
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, tensor.Value[float32](&out[0]))
	}
	return losses
}

// TestTowers trains a perceptron on two GPUs, and compares the losses with those of the CPU.
func TestTowers(t *testing.T) {
	want := trainOn(t, 10, "/cpu:0", "/cpu:0")
	got := trainOn(t, 10, "/gpu:0", "/gpu:1")
	compareLosses(t, got, want)
}

// compareLosses compares the losses of ten steps with those of the CPU.
func compareLosses(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d < 1e-5) {
			t.Errorf("step %d: the loss is %g, on the CPU %g", i, got[i], want[i])
		}
	}
	if want[9] >= want[0] {
		t.Errorf("the loss does not fall: %v", want)
	}
}

// TestVariablesOnDevice keeps and updates variables in the memory of the device.
func TestVariablesOnDevice(t *testing.T) {
	for _, opts := range [][]train.VariableOption{nil, {train.Resource()}} {
		s := op.NewScope()
		on := s.WithDevice("/gpu:1")
		v := train.NewVariable(on, "v", tensor.Shape{3}, tensor.Float32, train.Values([]float32{1, 2, 3}), opts...)
		add := v.AssignAdd(on, op.Const(on, []float32{10, 20, 30}))
		read := op.Identity(s.WithDevice("/cpu:0"), v.Read(s))
		session := open(t, s)
		for _, n := range []*graph.Node{train.VariablesInitializer(s, v), add, add} {
			if err := session.Exec(t.Context(), nil, n); err != nil {
				t.Fatal(err)
			}
		}
		out, err := session.Fetch(t.Context(), nil, read)
		if err != nil {
			t.Fatal(err)
		}
		if got := tensor.Values[float32](&out[0]); got[0] != 21 || got[2] != 63 {
			t.Errorf("%v", got)
		}
	}
}

// TestOutOfMemory checks that a step without memory fails with TensorFlow's text, and that the next
// step works.
func TestOutOfMemory(t *testing.T) {
	s := op.NewScope()
	on := s.WithDevice("/gpu:0")
	n := op.Placeholder(s, tensor.Int32)
	big := op.Size(on, op.Fill(on, n, op.Const(on, float32(1))))
	session := open(t, s)
	_, err := session.Fetch(t.Context(), weft.Feeds{n: tensor.Vector[int32](1 << 28)}, big)
	want := "OOM when allocating tensor with shape[268435456] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
	if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "--memory-limit") {
		t.Errorf("the error has a hint about the memory of the host: %v", err)
	}
	out, err := session.Fetch(t.Context(), weft.Feeds{n: tensor.Vector[int32](100)}, big)
	if err != nil || tensor.Value[int32](&out[0]) != 100 {
		t.Errorf("the next step: %v, error %v", out, err)
	}
}

func TestNoSuchDevice(t *testing.T) {
	s := op.NewScope()
	x := op.Neg(s.WithDevice("/gpu:7"), op.Const(s, float32(1)))
	session := open(t, s)
	_, err := session.Fetch(t.Context(), nil, x)
	if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "/device:GPU:1 ]. Make sure the device specification refers to a valid device.") ||
		strings.Contains(err.Error(), "CUDA") {
		t.Errorf("got %v", err)
	}
	soft := open(t, s, weft.WithSoftPlacement())
	if _, err := soft.Fetch(t.Context(), nil, x); err != nil {
		t.Errorf("with soft placement: %v", err)
	}
}

// TestMemoryReturns checks that nothing stays in the memory of the devices after the sessions of
// this test.
func TestMemoryReturns(t *testing.T) {
	trainOn(t, 2, "/gpu:0", "/gpu:1")
	set, err := devices.Find("")
	if err != nil {
		t.Fatal(err)
	}
	all, err := set.Devices(&devices.Options{Count: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if s := d.Stats(); s.Peak == 0 || s.Launches == 0 && len(device.Detours()) == 0 {
			t.Errorf("%s was not used: %+v", d.Name(), s)
		}
	}
}
