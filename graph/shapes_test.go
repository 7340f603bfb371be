package graph_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestShapeScripts infers shapes and prints those of the nodes that a test case lists, or of all
// nodes.
func TestShapeScripts(t *testing.T) {
	ops := testOps(t)
	graphtext.RunScripts(t, "testdata/shapes.txt", func(t *testing.T, c *graphtext.Case) string {
		g, err := graphtext.Parse(ops, c.Input)
		if err != nil {
			t.Fatal(err)
		}
		shapes, err := graph.InferShapes(g)
		var b strings.Builder
		if err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
		}
		names := c.Args("of")
		for n := range g.Nodes() {
			if len(names) == 0 || slices.Contains(names, n.Name) {
				printShapes(&b, shapes, n)
			}
		}
		return b.String()
	})
}

func printShapes(b *strings.Builder, shapes *graph.Shapes, n *graph.Node) {
	fmt.Fprintf(b, "%s:", n.Name)
	for i := range n.OutTypes {
		fmt.Fprintf(b, " %v", shapes.Of(n.Out(i)))
		if h := shapes.HandlesOf(n.Out(i)); h != nil {
			fmt.Fprintf(b, "%v", h)
		}
	}
	b.WriteByte('\n')
}

// TestIncrementalShapes infers one node at a time, as builders do.
func TestIncrementalShapes(t *testing.T) {
	g := graph.New(testOps(t))
	s := graph.NewShapes()
	p := mustAdd(t, g, "p", "Placeholder", attrs{"dtype": tensor.Float32})
	if err := s.Infer(p); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(p.Out(0), tensor.MakePartial(2, -1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(p.Out(0), tensor.MakePartial(-1, 3)); err != nil {
		t.Fatal(err)
	}
	const want = "Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are [2,3] and [2,4].\n\t [[{{node p}}]]"
	if err := s.Set(p.Out(0), tensor.MakePartial(2, 4)); err == nil || err.Error() != want {
		t.Errorf("incompatible shape: got %v", err)
	}
	id := mustAdd(t, g, "id", "Identity", attrs{"T": tensor.Float32})
	if got := s.Of(id.Out(0)); got.RankKnown() {
		t.Errorf("before Infer: got %v", got)
	}
	if err := g.Connect(p.Out(0), id, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Infer(id); err != nil {
		t.Fatal(err)
	}
	if got := s.Of(id.Out(0)).String(); got != "[2,3]" {
		t.Errorf("shape is %s", got)
	}
}

func TestValueOf(t *testing.T) {
	g, err := graphtext.Parse(testOps(t), `
f = Const() value=float[2]{1, 2}
g = Identity(f)
p = Placeholder() dtype=float shape=[2,3]
s = Shape(p) out_type=int64
`)
	if err != nil {
		t.Fatal(err)
	}
	shapes, err := graph.InferShapes(g)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"g": "Tensor<type: float shape: [2] values: 1 2>", "s": "Tensor<type: int64 shape: [2] values: 2 3>", "p": "nil",
	} {
		got := "nil"
		if v := shapes.ValueOf(g.Node(name).Out(0)); v != nil {
			got = v.String()
		}
		if got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// Many nodes may have the same large constant as their input.
func TestShapesOfLargeConstants(t *testing.T) {
	ops := testOps(t)
	ops["Fill"].Shape = func(c *opdef.ShapeContext) error {
		opdef.IntValues(c.Value(0))
		return nil
	}
	value, err := tensor.FromSlice(tensor.Shape{8 << 20}, make([]int32, 8<<20))
	if err != nil {
		t.Fatal(err)
	}
	g := graph.New(ops)
	dims := mustAdd(t, g, "dims", "Const", attrs{"dtype": tensor.Int32, "value": value})
	x := mustAdd(t, g, "x", "Placeholder", attrs{"dtype": tensor.Float32})
	for i := range 1000 {
		y := mustAdd(t, g, fmt.Sprint("y", i), "Fill", attrs{"T": tensor.Float32, "I": tensor.Int32})
		if err := errors.Join(g.Connect(dims.Out(0), y, 0), g.Connect(x.Out(0), y, 1)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if _, err := graph.InferShapes(g); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestDeepValues checks that long chains of arithmetic take linear time.
func TestDeepValues(t *testing.T) {
	g := graph.New(testOps(t))
	last := mustAdd(t, g, "c", "Const", attrs{"dtype": tensor.Int32, "value": tensor.Scalar(int32(0))})
	for i := range 20_000 {
		n := mustAdd(t, g, fmt.Sprintf("n%d", i), "Add", attrs{"T": tensor.Int32})
		for in := range 2 {
			if err := g.Connect(last.Out(0), n, in); err != nil {
				t.Fatal(err)
			}
		}
		last = n
	}
	pack := mustAdd(t, g, "pack", "Pack", attrs{"T": tensor.Int32, "N": int64(1)})
	fill := mustAdd(t, g, "fill", "Fill", attrs{"T": tensor.Int32, "I": tensor.Int32})
	for _, e := range []struct {
		src, dst *graph.Node
		in       int
	}{{last, pack, 0}, {pack, fill, 0}, {last, fill, 1}} {
		if err := g.Connect(e.src.Out(0), e.dst, e.in); err != nil {
			t.Fatal(err)
		}
	}
	shapes, err := graph.InferShapes(g)
	if err != nil {
		t.Fatal(err)
	}
	if got := shapes.Of(fill.Out(0)).String(); got != "[?]" {
		t.Errorf("shape is %s", got)
	}
}

// TestManyLoopsSettle checks that a chain of loops with changing shapes does not need one pass for
// each loop.
func TestManyLoopsSettle(t *testing.T) {
	g := graph.New(testOps(t))
	src := mustAdd(t, g, "p", "Placeholder", attrs{"dtype": tensor.Float32, "shape": tensor.MakePartial(2)})
	var end *graph.Node
	for i := range 200 {
		add := func(op string, more opdef.Attrs) *graph.Node {
			all := attrs{"T": tensor.Float32}
			maps.Copy(all, more)
			return mustAdd(t, g, fmt.Sprintf("%s%d", op, i), op, all)
		}
		connect := func(src, dst *graph.Node, in int) {
			if err := g.Connect(src.Out(0), dst, in); err != nil {
				t.Fatal(err)
			}
		}
		enter, merge := add("Enter", attrs{"frame_name": fmt.Sprint(i)}), add("Merge", attrs{"N": int64(2)})
		double, next, exit := add("Double", nil), add("NextIteration", nil), add("Exit", nil)
		connect(src, enter, 0)
		connect(enter, merge, 0)
		connect(next, merge, 1)
		connect(merge, double, 0)
		connect(double, next, 0)
		connect(merge, exit, 0)
		src, end = exit, exit
	}
	shapes, err := graph.InferShapes(g)
	if err != nil {
		t.Fatal(err)
	}
	if got := shapes.Of(end.Out(0)); got.RankKnown() && got.Dim(0) >= 0 {
		t.Errorf("shape is %v", got)
	}
}

// The numbers that are known before a graph runs have a bound for all nodes together.
func TestNumbersAreBounded(t *testing.T) {
	const n = 8000
	var text strings.Builder
	text.WriteString("c = Const() value=int32[4096]{1...}\n")
	for i := range n {
		fmt.Fprintf(&text, "a%d = Add(c, c)\n", i)
	}
	g, err := graphtext.Parse(testOps(t), text.String())
	if err != nil {
		t.Fatal(err)
	}
	shapes, err := graph.InferShapes(g)
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for i := range n {
		if shapes.ValueOf(g.Node(fmt.Sprint("a", i)).Out(0)) != nil {
			known++
		}
	}
	if known < 4000 || known > 4200 {
		t.Errorf("%d values are known", known)
	}
}
