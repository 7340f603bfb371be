package optimize

import (
	"math"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// notFolded are operations that are not stateful but whose results are not a function of their
// inputs: they are control flow, can be fed, cross a boundary, or depend on the device.
var notFolded = map[string]bool{
	"Switch": true, "RefSwitch": true, "_SwitchN": true, "Merge": true, "RefMerge": true, "Enter": true, "RefEnter": true, "Exit": true,
	"RefExit": true, "NextIteration": true, "RefNextIteration": true, "LoopCond": true, "ControlTrigger": true,
	"Placeholder": true, "PlaceholderV2": true, "PlaceholderWithDefault": true, "FakeParam": true,
	"_Send": true, "_Recv": true, "_HostSend": true, "_HostRecv": true, "_Arg": true, "_Retval": true,
	"GetSessionHandle": true, "GetSessionHandleV2": true, "GetSessionTensor": true, "DeleteSessionTensor": true,
	"StatelessRandomGetKeyCounter": true,
}

// foldable reports whether the outputs of a node are a function of its inputs and can be stored in
// a constant.
func foldable(n *graph.Node) bool {
	if n.Op.Stateful || n.Op.Distributed || notFolded[n.Op.Name] || len(n.OutTypes) == 0 || n.Attrs["_scoped_allocator"] != nil {
		return false
	}
	for _, t := range n.InTypes {
		if t.IsRef() {
			return false
		}
	}
	for _, t := range n.OutTypes {
		if t.IsRef() || t == tensor.Resource || t == tensor.Variant {
			return false
		}
	}
	for i := range n.Op.Attrs {
		// A call may take arbitrarily long.
		if kind := n.Op.Attrs[i].Kind; kind == "func" || kind == "list(func)" {
			return false
		}
	}
	return true
}

// fits reports whether the shape function of a node bounds each output to limit bytes.
func fits(n *graph.Node, inputs []tensor.Tensor, limit int64) bool {
	if n.Op.Shape == nil {
		return false
	}
	c := &opdef.ShapeContext{
		Op: n.Op, Attrs: n.Attrs,
		In: make([]tensor.PartialShape, len(inputs)), InHandles: make([][]tensor.HandleElem, len(inputs)),
		Out: make([]tensor.PartialShape, len(n.OutTypes)), OutHandles: make([][]tensor.HandleElem, len(n.OutTypes)),
		Value:        func(i int) *tensor.Tensor { return &inputs[i] },
		ValueAsShape: func(i int) tensor.PartialShape { return asShape(&inputs[i]) },
	}
	for i := range inputs {
		c.In[i] = inputs[i].Shape().Partial()
	}
	if err := n.Op.Shape(c); err != nil { // reported by the step
		return false
	}
	for i, s := range c.Out {
		shape, ok := s.Full()
		if !ok || shape.Check() != nil {
			return false
		}
		width := int64(max(n.OutTypes[i].Size(), 1))
		if count := shape.NumElements(); count > math.MaxInt64/width || count*width > limit {
			return false
		}
	}
	return true
}

// asShape converts a vector of sizes to a shape. Negative sizes are unknown.
func asShape(t *tensor.Tensor) tensor.PartialShape {
	sizes := opdef.IntValues(t)
	if sizes == nil || t.Rank() != 1 {
		return tensor.PartialShape{}
	}
	return tensor.MakePartial(sizes...)
}
