package gradients

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	for _, version := range []string{"", "V2", "V3"} {
		array := func(rule func(c *Call, a gradArray) []Grad, name string) {
			Register(func(c *Call) []Grad { return rule(c, gradArray{c: c, version: version}) }, "TensorArray"+name+version)
		}
		array(readGrad, "Read")
		array(writeGrad, "Write")
		array(arrayGatherGrad, "Gather")
		array(arrayScatterGrad, "Scatter")
		array(arrayConcatGrad, "Concat")
		array(arraySplitGrad, "Split")
		NotDifferentiable("TensorArray"+version, "TensorArrayGrad"+version, "TensorArraySize"+version, "TensorArrayClose"+version)
	}
	NotDifferentiable("TensorArrayGradWithShape")
}

// gradArray is the TensorArray that accumulates the gradients of the elements of another one. There
// is one for each call of [Compute], and its source attribute identifies the call. Values written
// to the same element add up. The flow orders the operations.
type gradArray struct {
	c            *Call
	version      string
	handle, flow op.Output
}

// after returns the array with another flow.
func (a gradArray) after(flow op.Output) gradArray {
	s := a.c.S.ColocateWith(a.c.In(0).Node)
	n := s.Add("TensorArrayGrad"+a.version, []op.Arg{op.One(a.c.In(0)), op.One(flow)}, opdef.Attrs{"source": a.c.source})
	a.handle = output(n, 0)
	a.flow = op.Identity(a.c.S.Named("gradient_flow").WithControlDependencies(n), flow)
	return a
}

// do adds an operation on the array with the flow as its last argument.
func (a gradArray) do(name string, attrs opdef.Attrs, args ...op.Output) *graph.Node {
	list := []op.Arg{op.One(a.handle)}
	for _, o := range args {
		list = append(list, op.One(o))
	}
	return a.c.S.Add("TensorArray"+name+a.version, append(list, op.One(a.flow)), attrs)
}

// written returns the gradient array after the forward array was written, and the flow of that
// write.
func (a gradArray) written() (gradArray, op.Output) {
	done := op.Identity(a.c.S.Named("flow_out"), a.c.Out(0))
	flow := op.Identity(a.c.S.Named("write_barrier").WithControlDependencies(done.Node), a.c.DY(0))
	return a.after(flow), flow
}

func readGrad(c *Call, a gradArray) []Grad {
	done := a.after(c.In(2)).do("Write", nil, c.In(1), c.DY(0))
	return List(op.Output{}, op.Output{}, output(done, 0))
}

func writeGrad(c *Call, a gradArray) []Grad {
	a, flow := a.written()
	return List(op.Output{}, op.Output{}, output(a.do("Read", opdef.Attrs{"dtype": c.In(2).DType().Base()}, c.In(1)), 0), flow)
}

func arrayGatherGrad(c *Call, a gradArray) []Grad {
	done := a.after(c.In(2)).do("Scatter", nil, c.In(1), c.DY(0))
	return List(op.Output{}, op.Output{}, output(done, 0))
}

func arrayScatterGrad(c *Call, a gradArray) []Grad {
	a, flow := a.written()
	return List(op.Output{}, op.Output{}, output(a.do("Gather", opdef.Attrs{"dtype": c.In(2).DType().Base()}, c.In(1)), 0), flow)
}

func arrayConcatGrad(c *Call, a gradArray) []Grad {
	done := a.after(c.In(1)).do("Split", nil, c.DY(0), c.Out(1))
	return List(op.Output{}, output(done, 0))
}

func arraySplitGrad(c *Call, a gradArray) []Grad {
	a, flow := a.written()
	return List(op.Output{}, output(a.do("Concat", opdef.Attrs{"dtype": c.In(1).DType().Base()}), 0), op.Output{}, flow)
}
