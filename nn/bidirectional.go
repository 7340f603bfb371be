package nn

import "github.com/weft-ml/weft/op"

// Merge says how [Bidirectional] combines the outputs of both directions.
type Merge string

// The ways to combine.
const (
	MergeConcat Merge = "concat" // one after the other, 2 * Units features
	MergeSum    Merge = "sum"
	MergeMean   Merge = "ave"
	MergeMul    Merge = "mul"
)

// Bidirectional runs a recurrent layer over the time in both directions, with separate variables:
// those of the names "forward_lstm" and "backward_lstm", for instance. Its mask is that of the
// input.
type Bidirectional struct {
	Layer RecurrentLayer
	Merge Merge // [MergeConcat] if ""
}

// half identifies the variables of one direction of a layer.
type half struct {
	l        *Bidirectional
	backward bool
}

// Apply implements [Layer].
func (l *Bidirectional) Apply(c *Context, x op.Output) op.Output {
	mask := c.Mask(x)
	c = c.Layer(l, "bidirectional")
	s := c.Scope
	r, cell := l.Layer.settings()
	forth := r.apply(c.enter(half{l, false}, "forward_"+cell.kind), cell, x, mask, r.GoBackwards)
	back := r.apply(c.enter(half{l, true}, "backward_"+cell.kind), cell, x, mask, !r.GoBackwards)
	if forth.Node == nil || back.Node == nil {
		return op.Output{}
	}
	if r.ReturnSequences {
		back = op.ReverseV2(s, back, ints(s, 1))
	}
	var y op.Output
	switch l.Merge {
	case MergeConcat, "":
		y = op.ConcatV2(s, []op.Output{forth, back}, op.Const(s, int32(-1)))
	case MergeSum:
		y = op.AddV2(s, forth, back)
	case MergeMean:
		y = op.Mul(s, op.AddV2(s, forth, back), like(s, forth, 0.5))
	case MergeMul:
		y = op.Mul(s, forth, back)
	default:
		c.fail("there is no merge %q", l.Merge)
	}
	return c.done(x, y, r.ReturnSequences)
}
