package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Embedding looks up rows of a table. Its input has integers in [0, InputDim) and any shape, such
// as [batch, time]; its output has one more dimension, of size OutputDim.
type Embedding struct {
	InputDim, OutputDim int
	// MaskZero makes 0 mean padding: layers and losses that support masks skip it.
	MaskZero bool
	// Parts is the number of variables that the rows are split over, for tables that are spread
	// over parameter servers; one if 0.
	Parts int

	Init        train.Initializer // uniform over [-0.05, 0.05) if nil
	Regularizer Regularizer       // of a table of one part
}

// Apply implements [Layer].
func (l *Embedding) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "embedding")
	s := c.Scope
	if x.Node == nil {
		return x
	}
	if t := x.DType().Base(); !t.IsInteger() {
		c.fail("the input is of type %s, want int32 or int64", t.Name())
		return op.Output{}
	}
	ids := x
	if t := x.DType().Base(); t != tensor.Int64 && t != tensor.Int32 {
		ids = op.Cast(s, x, tensor.Int32)
	}
	w := Weight{
		Name: "embeddings", Shape: tensor.Shape{int64(l.InputDim), int64(l.OutputDim)},
		Init: or(l.Init, train.RandomUniform(-0.05, 0.05)), Regularizer: l.Regularizer,
	}
	var y op.Output
	if l.Parts > 1 {
		y = c.Table(w, l.Parts).Lookup(s, ids)
	} else {
		y = c.Variable(w).Gather(s, ids)
	}
	y = c.cast(y)
	if l.MaskZero && y.Node != nil {
		c.SetMask(y, op.NotEqual(s, x, like(s, x, 0)))
	}
	return c.done(x, y, false)
}
