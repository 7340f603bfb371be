package optimize

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/tensor"
)

// shapeOps are the operations that depend on the shapes of their inputs only. Each function returns
// one value per output. It returns false if too little is known, or if a value does not fit the
// type of the output.
var shapeOps = map[string]func(n *graph.Node, shapes []tensor.PartialShape) ([]tensor.Tensor, bool){
	"Shape": shapeValues, "ShapeN": shapeValues, "Size": sizeValue, "Rank": rankValue,
}

// foldShapes replaces nodes that compute a known shape by constants. The node whose shape it is
// becomes a control input of the constant, because it may be on a dead branch. The shape of a
// reference is not folded: the step reports an error if the variable has no value. Each constant
// for an output of ShapeN waits for all inputs. Nothing is folded beyond maxDeps such edges.
func foldShapes(g *graph.Graph, o *Options) error {
	if o.Shape == nil {
		return nil
	}
	added := 0 // edges that replacements have in addition to those of the replaced nodes
	for n := range g.Nodes() {
		compute := shapeOps[n.Op.Name]
		if compute == nil || len(n.OutEdges()) == 0 || !complete(n) || takesReference(n) {
			continue
		}
		shapes := make([]tensor.PartialShape, n.NumInputs())
		for i, in := range n.Inputs() {
			shapes[i] = o.Shape(in)
		}
		values, ok := compute(n, shapes)
		if !ok {
			continue
		}
		if added += (len(values) - 1) * (n.NumInputs() + len(n.ControlInputs())); added > maxDeps {
			return nil
		}
		if err := replaceShape(g, n, values); err != nil {
			return err
		}
	}
	return nil
}

func takesReference(n *graph.Node) bool {
	return slices.ContainsFunc(n.Inputs(), func(in graph.Output) bool { return in.DType().IsRef() })
}

func replaceShape(g *graph.Graph, n *graph.Node, values []tensor.Tensor) error {
	edges := append([]graph.Edge(nil), n.OutEdges()...)
	made := make([]*graph.Node, len(values))
	for i := range values {
		var err error
		if made[i], err = addConstant(g, n, i, values[i]); err != nil {
			return err
		}
		for _, in := range n.Inputs() {
			g.ConnectControl(in.Node, made[i])
		}
		for _, src := range n.ControlInputs() {
			g.ConnectControl(src, made[i])
		}
	}
	for _, e := range edges {
		if e.IsControl() {
			g.ConnectControl(made[0], e.Dst)
			continue
		}
		if err := g.Connect(made[e.SrcOut].Out(0), e.Dst, e.DstIn); err != nil {
			return err
		}
	}
	g.Remove(n)
	return nil
}

func shapeValues(n *graph.Node, shapes []tensor.PartialShape) ([]tensor.Tensor, bool) {
	values := make([]tensor.Tensor, len(shapes))
	for i, s := range shapes {
		shape, ok := s.Full()
		if ok {
			values[i], ok = intTensor(n.OutTypes[i], tensor.Shape{int64(len(shape))}, shape)
		}
		if !ok {
			return nil, false
		}
	}
	return values, true
}

func sizeValue(n *graph.Node, shapes []tensor.PartialShape) ([]tensor.Tensor, bool) {
	shape, ok := shapes[0].Full()
	if !ok || shape.Check() != nil {
		return nil, false
	}
	v, ok := intTensor(n.OutTypes[0], tensor.Shape{}, []int64{shape.NumElements()})
	return []tensor.Tensor{v}, ok
}

func rankValue(n *graph.Node, shapes []tensor.PartialShape) ([]tensor.Tensor, bool) {
	v, ok := intTensor(n.OutTypes[0], tensor.Shape{}, []int64{int64(shapes[0].Rank())})
	return []tensor.Tensor{v}, ok && shapes[0].RankKnown()
}

// intTensor returns a tensor of the given integer type. It returns false if a number does not fit
// the type.
func intTensor(dtype tensor.DType, shape tensor.Shape, vals []int64) (tensor.Tensor, bool) {
	if dtype == tensor.Int64 {
		t, err := tensor.FromSlice(shape, append([]int64{}, vals...))
		return t, err == nil
	}
	small := make([]int32, len(vals))
	for i, v := range vals {
		if v > math.MaxInt32 {
			return tensor.Tensor{}, false
		}
		small[i] = int32(v)
	}
	t, err := tensor.FromSlice(shape, small)
	return t, err == nil && dtype == tensor.Int32
}
