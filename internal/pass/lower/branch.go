package lower

import (
	"path"
	"strconv"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// conditional is an If or Case that is being lowered.
type conditional struct {
	*lowerer
	*site
	selector graph.Output // selects the branch
	branches []branch
	// split adds a Switch or _SwitchN that forwards a value to the output of the selected branch.
	split func(name, device string, attrs opdef.Attrs, value graph.Output) *graph.Node
}

// maxEdges bounds the edges to and from the branches of a conditional that is lowered.
const maxEdges = 1 << 20

// branch is one of the functions of a conditional.
type branch struct {
	name string
	fn   opdef.Func
}

func (l *lowerer) lowerIf(n *graph.Node) {
	onTrue, onFalse := n.Attrs.Func("then_branch"), n.Attrs.Func("else_branch")
	if !l.known(onTrue, onFalse) {
		return
	}
	s := l.detach(n)
	c := &conditional{
		lowerer: l, site: s, selector: l.bool(s.name+"/cond", s.device, s.in[0]),
		// in the order of the outputs of Switch
		branches: []branch{{"else", onFalse}, {"then", onTrue}},
	}
	c.split = func(name, device string, attrs opdef.Attrs, value graph.Output) *graph.Node {
		attrs["T"] = base(value)
		return l.add(name, "Switch", device, attrs, value, c.selector)
	}
	c.lower()
}

func (l *lowerer) lowerCase(n *graph.Node) {
	fns := n.Attrs.Funcs("branches")
	// Each branch takes all inputs and returns all outputs.
	if !l.known(fns...) || len(fns)*(n.NumInputs()+len(n.OutTypes)) > maxEdges {
		return
	}
	s := l.detach(n)
	c := &conditional{lowerer: l, site: s, selector: s.in[0]}
	for i, fn := range fns {
		c.branches = append(c.branches, branch{"branch" + strconv.Itoa(i), fn})
	}
	c.split = func(name, device string, attrs opdef.Attrs, value graph.Output) *graph.Node {
		attrs["T"], attrs["num_outs"] = base(value), int64(len(fns))
		return l.add(name, "_SwitchN", device, attrs, value, c.selector)
	}
	c.lower()
}

// lower replaces the node by calls of the branches. A branch runs if its pivot, an output of the
// selector's own switch, is live. A Merge of the pivots runs after the selected branch.
func (c *conditional) lower() {
	pick := c.split(c.name+"/switch_pred", c.device, c.attrs(opdef.Attrs{}), c.selector)
	for _, src := range c.controls {
		c.order(src, pick)
	}
	args := make([][]graph.Output, len(c.branches))
	for _, in := range c.in[1:] {
		sw := c.split(c.name+"/"+path.Base(in.Node.Name), in.Node.Device, opdef.Attrs{}, in)
		c.follow(sw)
		for i := range args {
			args[i] = append(args[i], sw.Out(i))
		}
	}
	calls := make([]*graph.Node, len(c.branches))
	pivots := make([]graph.Output, len(c.branches))
	for i, b := range c.branches {
		pivot := c.add(c.name+"/pivot_"+b.name, "Identity", c.device, c.attrs(opdef.Attrs{"T": base(c.selector)}), pick.Out(i))
		calls[i] = c.call(c.site, b.name, b.fn, c.outTypes, args[i])
		pivots[i] = pivot.Out(0)
		c.order(pivot, calls[i])
	}
	values := make([]graph.Output, len(c.outTypes))
	for i := range values {
		results := make([]graph.Output, len(calls))
		for j, call := range calls {
			results[j] = graph.Output{Node: call, Index: i}
		}
		values[i] = c.merge("output", c.outTypes[i].Base(), results)
	}
	executed := c.merge("branch_executed", base(c.selector), pivots)
	for _, call := range calls {
		c.order(call, executed.Node)
	}
	c.replace(c.site, values, executed.Node)
}

func (c *conditional) merge(name string, dtype tensor.DType, from []graph.Output) graph.Output {
	attrs := c.attrs(opdef.Attrs{"T": dtype, "N": int64(len(from))})
	return c.add(c.name+"/"+name, "Merge", c.device, attrs, from...).Out(0)
}

// base returns the type of a value without the reference mark.
func base(v graph.Output) tensor.DType {
	if v.Node == nil { // after an error
		return tensor.Invalid
	}
	return v.DType().Base()
}
