package function_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/internal/kernels/array"
	_ "github.com/weft-ml/weft/internal/kernels/control"
	_ "github.com/weft-ml/weft/internal/kernels/function"
	_ "github.com/weft-ml/weft/internal/kernels/mathops"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/runtime/function"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestMain(m *testing.M) {
	registerOps()
	code := m.Run()
	parallel.SetThreads(1) // stops the worker goroutines
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// registerOps registers the operations of the tests.
func registerOps() {
	register := func(name string, in, out []string, k kernel.Func) {
		kernel.Register(kernel.Op{
			Def:     opdef.Def{Name: name, Doc: "-", In: in, Out: out, Shape: opdef.UnknownShape},
			Kernels: kernel.Any(kernel.Stateless(k)),
		})
	}
	two, number := []string{"x: int64", "y: int64"}, []string{"z: int64"}
	register("Add2", two, number, binary(func(x, y int64) int64 { return x + y }))
	register("Mul2", two, number, binary(func(x, y int64) int64 { return x * y }))
	register("Less2", two, []string{"z: bool"}, func(c *kernel.Context) error {
		c.SetOutput(0, tensor.Scalar(tensor.Value[int64](c.Input(0)) < tensor.Value[int64](c.Input(1))))
		return nil
	})
	register("Fail", []string{"x: int64"}, number, func(*kernel.Context) error { return status.Abortedf("failed") })
	register("Unused", []string{"x: int64"}, number, func(*kernel.Context) error { return status.Internalf("not pruned") })
	register("InPlace", []string{"x: int64"}, []string{"y: int64", "same: bool"}, inPlace)
	kernel.Register(kernel.Op{
		Def:     opdef.Def{Name: "AddLater", Doc: "-", In: two, Out: number, Shape: opdef.UnknownShape},
		Kernels: kernel.Any(func(*kernel.Construction) (kernel.Kernel, error) { return later{}, nil }),
	})
	kernel.Register(kernel.Op{
		Def:     opdef.Def{Name: "Count", Doc: "-", Stateful: true},
		Kernels: kernel.Any(func(*kernel.Construction) (kernel.Kernel, error) { return kernel.Func(count), nil }),
	})
	kernel.Register(kernel.Op{
		Def:     opdef.Def{Name: "Held", Doc: "-", Stateful: true},
		Kernels: kernel.Any(func(*kernel.Construction) (kernel.Kernel, error) { return held{count}, nil }),
	})
}

func binary(f func(x, y int64) int64) kernel.Func {
	return func(c *kernel.Context) error {
		c.SetOutput(0, tensor.Scalar(f(tensor.Value[int64](c.Input(0)), tensor.Value[int64](c.Input(1)))))
		return nil
	}
}

// inPlace returns whether the kernel may modify its input in place.
func inPlace(c *kernel.Context) error {
	c.SetOutput(1, tensor.Scalar(c.Input(0).Exclusive()))
	_, err := c.Forward(0, 0)
	return err
}

// later adds on another goroutine.
type later struct{}

// closings counts the kernels of operation Held that were closed.
var closings int

type held struct{ kernel.Func }

func (held) Close() { closings++ }

func TestKernelsOfBodiesAreClosed(t *testing.T) {
	l := newLibrary(t, define(t, "f", 1, "x = Held()\n return a0"), define(t, "unused", 1, "x = Held()\n return a0"))
	for range 3 {
		l.want("f", 1, 1)
	}
	l.runtime.Close()
	if closings != 1 {
		t.Errorf("%d kernels were closed, want 1", closings)
	}
	l.wantError("unused", status.Cancelled, "dropped", 1)
}

func (later) Compute(*kernel.Context) error { return status.Internalf("called synchronously") }

func (later) ComputeAsync(c *kernel.Context, done func(error)) {
	go func() {
		c.SetOutput(0, tensor.Scalar(tensor.Value[int64](c.Input(0))+tensor.Value[int64](c.Input(1))))
		done(nil)
	}()
}

var counted struct {
	sync.Mutex
	n int
}

func count(*kernel.Context) error {
	counted.Lock()
	defer counted.Unlock()
	counted.n++
	return nil
}

// define returns a function with int64 arguments and results. Lines of the body have the form "name
// = Op(inputs) attr=value". A line "return a, b" lists the results.
func define(t testing.TB, name string, args int, body string) graph.FunctionDef {
	t.Helper()
	def := graph.FunctionDef{Signature: opdef.Op{Name: name}, Ret: map[string]string{}}
	for i := range args {
		def.Signature.Inputs = append(def.Signature.Inputs, opdef.Arg{Name: fmt.Sprintf("a%d", i), DType: tensor.Int64})
	}
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if rets, ok := strings.CutPrefix(line, "return "); ok {
			for i, ret := range strings.Split(rets, ", ") {
				out := opdef.Arg{Name: fmt.Sprintf("r%d", i), DType: tensor.Int64}
				if dtype, rest, ok := strings.Cut(ret, " "); ok {
					out.DType, _ = tensor.ParseDType(dtype)
					ret = rest
				}
				def.Signature.Outputs = append(def.Signature.Outputs, out)
				def.Ret[out.Name] = ret
			}
			continue
		}
		def.Nodes = append(def.Nodes, parseNode(t, line))
	}
	return def
}

func parseNode(t testing.TB, line string) graph.NodeDef {
	t.Helper()
	name, rest, _ := strings.Cut(line, " = ")
	op, rest, _ := strings.Cut(rest, "(")
	inputs, attrs, ok := strings.Cut(rest, ")")
	if !ok {
		t.Fatalf("not a node: %s", line)
	}
	n := graph.NodeDef{Name: name, Op: op, Attrs: opdef.Attrs{}}
	if inputs != "" {
		n.Inputs = strings.Split(inputs, ", ")
	}
	for attr := range strings.FieldsSeq(attrs) {
		key, value, _ := strings.Cut(attr, "=")
		var v int64
		switch {
		case strings.HasPrefix(value, "@"):
			var funcs []opdef.Func
			for f := range strings.SplitSeq(value[1:], ",@") {
				funcs = append(funcs, opdef.Func{Name: f})
			}
			n.Attrs[key] = funcs[0]
			if key == "branches" {
				n.Attrs[key] = funcs
			}
		case key == "value":
			if _, err := fmt.Sscan(value, &v); err != nil {
				t.Fatal(err)
			}
			n.Attrs[key], n.Attrs["dtype"] = tensor.Scalar(v), tensor.Int64
		default:
			types := []tensor.DType{}
			for name := range strings.SplitSeq(value, ",") {
				dtype, _ := tensor.ParseDType(name)
				types = append(types, dtype)
			}
			n.Attrs[key] = types[0]
			if key == "Tin" || key == "Tout" || key == "T" && op != "Identity" {
				n.Attrs[key] = types
			}
		}
	}
	return n
}

var device = &kernel.Device{
	Name: "/job:localhost/replica:0/task:0/device:CPU:0", Type: kernel.CPU, Incarnation: 1,
	Resources: kernel.NewResources("localhost"),
}

// library is a set of functions to call.
type library struct {
	testing.TB
	graph   *graph.Graph
	runtime *function.Runtime
	step    *kernel.Step
}

func (l *library) add(defs []graph.FunctionDef, gradient map[string]string) {
	l.Helper()
	if err := l.graph.Library.Add(defs, gradient, kernel.Default); err != nil {
		l.Fatal(err)
	}
}

func newLibrary(t testing.TB, defs ...graph.FunctionDef) *library {
	t.Helper()
	g := graph.New(kernel.Default)
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	l := &library{
		TB: t, graph: g, runtime: function.NewRuntime(g.Library, function.Config{Device: device}),
		step: &kernel.Step{ID: 1, Context: ctx, Cancel: func(err error) { cancel(err) }},
	}
	l.add(defs, nil)
	return l
}

// call calls a function as a node of the outermost graph does.
func (l *library) call(name string, args ...int64) ([]tensor.Tensor, error) {
	l.Helper()
	f, err := l.runtime.Instantiate(opdef.Func{Name: name})
	if err != nil {
		return nil, err
	}
	tensors := make([]tensor.Tensor, len(args))
	for i, a := range args {
		tensors[i] = tensor.Scalar(a)
	}
	var out []tensor.Tensor
	came := make(chan error, 1)
	f.Call(&kernel.Context{Step: l.step, Device: device}, tensors, func(rets []tensor.Tensor, err error) {
		out = append(out, rets...)
		came <- err
	})
	return out, <-came
}

func (l *library) want(name string, want int64, args ...int64) {
	l.Helper()
	rets, err := l.call(name, args...)
	if err != nil {
		l.Fatalf("%s%v: %v", name, args, err)
	}
	if got := tensor.Value[int64](&rets[0]); got != want {
		l.Errorf("%s%v = %d, want %d", name, args, got, want)
	}
}

func (l *library) wantError(name string, code status.Code, contains string, args ...int64) {
	l.Helper()
	_, err := l.call(name, args...)
	if status.CodeOf(err) != code || !strings.Contains(err.Error(), contains) {
		l.Errorf("%s%v: got %v: %v", name, args, status.CodeOf(err), err)
	}
}

const oneArg = "Tin=int64 Tout=int64"

func TestCalls(t *testing.T) {
	double := define(t, "double", 1, "d = Add2(a0, a0)\n return d:z:0")
	l := newLibrary(t, double,
		define(t, "quadruple", 1, "x = PartitionedCall(a0) "+oneArg+" f=@double\n y = StatefulPartitionedCall(x:output:0) "+oneArg+
			" f=@double\n return y:output:0"),
		define(t, "direct", 1, "x = double(a0)\n y = quadruple(x:r0:0)\n return y:r0:0"),
		define(t, "second", 2, "return a1"),
		define(t, "twice", 1, "return a0, a0"),
		define(t, "pruned", 1, "u = Unused(a0)\n c = Count()\n return a0"),
		define(t, "wrong", 1, "x = PartitionedCall(a0) Tin=int64 Tout=int64,int64 f=@double\n return x:output:0"),
		define(t, "few", 1, "x = PartitionedCall() Tin= Tout=int64 f=@double\n return x:output:0"),
		define(t, "missing", 1, "x = PartitionedCall(a0) "+oneArg+" f=@nothing\n return x:output:0"),
	)
	for range 3 {
		l.want("double", 14, 7)
		l.want("quadruple", 28, 7)
		l.want("direct", 56, 7)
		l.want("second", 2, 1, 2)
		l.want("twice", 7, 7)
	}
	before := counted.n
	l.want("pruned", 5, 5)
	if counted.n != before+1 {
		t.Errorf("an operation with effects ran %d times", counted.n-before)
	}
	l.wantError("missing", status.NotFound, "Function nothing is not defined.", 1)
	l.wantError("nowhere", status.NotFound, "Function nowhere is not defined.", 1)
	l.wantError("double", status.InvalidArgument, "takes 1 arguments, got 2", 1, 2)
	l.wantError("wrong", status.Internal, "Expect to produce 2 tensors, but only get 1", 1)
}

func TestErrorsNameTheNode(t *testing.T) {
	fails := define(t, "fails", 1, "culprit = Fail(a0)\n return culprit:z:0")
	l := newLibrary(t, fails, define(t, "outer", 1, "x = PartitionedCall(a0) "+oneArg+" f=@fails\n return x:output:0"))
	_, err := l.call("outer", 1)
	if status.CodeOf(err) != status.Aborted || err.Error() != "failed\n\t [[{{node culprit}}]]\n\t [[x]]" || status.IsDerived(err) {
		t.Errorf("got %v, derived %t", err, status.IsDerived(err))
	}
	if !status.IsDerived(context.Cause(l.step.Context)) {
		t.Errorf("the step was not cancelled: %v", context.Cause(l.step.Context))
	}
}

func TestBranches(t *testing.T) {
	const two = "Tin=int64,int64 Tout=int64"
	l := newLibrary(t,
		define(t, "sum", 2, "z = AddLater(a0, a1)\n return z:z:0"),
		define(t, "product", 2, "z = Mul2(a0, a1)\n return z:z:0"),
		define(t, "less", 2, "c = Less2(a0, a1)\n x = If(c:z:0, a0, a1) Tcond=bool "+two+" then_branch=@sum else_branch=@product\n return x:output:0"),
		define(t, "nonzero", 1, "x = StatelessIf(a0, a0, a0) Tcond=int64 "+two+" then_branch=@sum else_branch=@product\n return x:output:0"),
	)
	l.want("less", 5, 2, 3)
	l.want("less", 6, 3, 2)
	l.want("nonzero", 10, 5)
	l.want("nonzero", 0, 0)
}

func TestCase(t *testing.T) {
	l := newLibrary(t,
		define(t, "plus", 1, "z = Add2(a0, a0)\n return z:z:0"),
		define(t, "times", 1, "z = Mul2(a0, a0)\n return z:z:0"),
		define(t, "same", 1, "return a0"),
	)
	for index, want := range map[int32]int64{0: 10, 1: 25, 2: 5, 3: 5, -1: 5} {
		n := newNode(l, "Case", opdef.Attrs{
			"Tin": []tensor.DType{tensor.Int64}, "Tout": []tensor.DType{tensor.Int64},
			"branches": []opdef.Func{{Name: "plus"}, {Name: "times"}, {Name: "same"}},
		})
		out, err := n.run(tensor.Scalar(index), tensor.Scalar(int64(5)))
		if err != nil {
			t.Fatal(err)
		}
		if got := tensor.Value[int64](&out[0]); got != want {
			t.Errorf("branch %d: got %d, want %d", index, got, want)
		}
	}
}

// node is an operation outside of a graph.
type node struct {
	*library
	kern    kernel.Kernel
	outputs []tensor.DType
}

func newNode(l *library, op string, attrs opdef.Attrs) *node {
	l.Helper()
	def, _ := kernel.Default.LookupOp(op)
	attrs, err := def.CheckAttrs("node", attrs)
	if err != nil {
		l.Fatal(err)
	}
	c := &kernel.Construction{Node: "node", Op: def, Attrs: attrs, Device: device, Functions: l.runtime}
	if c.Outputs, err = def.OutputTypes(attrs); err != nil {
		l.Fatal(err)
	}
	k, err := kernel.Default.Find(op, kernel.CPU, attrs).New(c)
	if err != nil {
		l.Fatal(err)
	}
	return &node{l, k, c.Outputs}
}

func (n *node) run(in ...tensor.Tensor) ([]tensor.Tensor, error) {
	ctx := &kernel.Context{Step: n.step, Device: device, Node: "node"}
	ins, outs := make([]kernel.Value, len(in)), make([]kernel.Value, len(n.outputs))
	for i := range in {
		ins[i].Tensor = in[i]
	}
	ctx.Bind(ins, outs, n.outputs)
	err := n.kern.Compute(ctx)
	rets := make([]tensor.Tensor, len(outs))
	for i := range outs {
		rets[i] = outs[i].Tensor
	}
	return rets, err
}

type collector struct {
	sync.Mutex
	nodes map[string]int // depth by name
}

func (c *collector) Collect(s *executor.NodeStats) {
	c.Lock()
	defer c.Unlock()
	c.nodes[s.Node] = s.Depth
}

func TestStatisticsOfBodies(t *testing.T) {
	l := newLibrary(t, define(t, "inner", 1, "deep = AddLater(a0, a0)\n return deep:z:0"),
		define(t, "outer", 1, "call = inner(a0)\n return call:r0:0"))
	f, err := l.runtime.Instantiate(opdef.Func{Name: "outer"})
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{nodes: map[string]int{}}
	done := make(chan error, 1)
	ctx := &kernel.Context{Step: l.step, Device: device, Stats: executor.Collector(c)}
	f.Call(ctx, []tensor.Tensor{tensor.Scalar(int64(1))}, func(_ []tensor.Tensor, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c.nodes["call"] != 1 || c.nodes["deep"] != 2 {
		t.Errorf("got %v", c.nodes)
	}
}
