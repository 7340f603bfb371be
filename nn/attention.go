package nn

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// MultiHeadAttention computes, for each step of a query, a mean of the steps of a value whose
// weights depend on the query and a key (Vaswani et al., 2017). Its variables are "query/kernel"
// and "key/kernel" of shape [features, NumHeads, KeyDim], "value/kernel" [features, NumHeads,
// ValueDim], "attention_output/kernel" [NumHeads, ValueDim, features], and a bias for each.
type MultiHeadAttention struct {
	NumHeads, KeyDim int
	ValueDim         int // KeyDim if 0
	OutputDim        int // features of the query if 0
	Dropout          float64
	Causal           bool // a step depends on earlier steps and itself only
	NoBias           bool
}

// Apply implements [Layer]. It is self-attention: x, of shape [batch, time, features], is query,
// key and value, and masked steps of x have no weight.
func (l *MultiHeadAttention) Apply(c *Context, x op.Output) op.Output {
	return l.Attend(c, x, x, x, op.Output{})
}

// Attend adds the attention of a query [batch, times of the query, features] to a value and a key
// [batch, times of the value, features]. mask is a bool tensor [batch, times of the query, times of
// the value] that is false where a step must have no weight, or the zero Output; masks of the value
// and the query count too. The output has shape [batch, times of the query, OutputDim].
func (l *MultiHeadAttention) Attend(c *Context, query, value, key, mask op.Output) op.Output {
	queryMask, valueMask := c.Mask(query), c.Mask(value)
	c = c.Layer(l, "multi_head_attention")
	s := c.Scope
	features := c.size(query, 2, 3)
	if l.NumHeads < 1 || l.KeyDim < 1 {
		c.fail("%d heads of size %d", l.NumHeads, l.KeyDim)
		return op.Output{}
	}
	if features == 0 || c.size(value, 2, 3) == 0 || c.size(key, 2, 3) == 0 {
		return op.Output{}
	}
	values, outputs := l.ValueDim, int64(l.OutputDim)
	if values == 0 {
		values = l.KeyDim
	}
	if outputs == 0 {
		outputs = features
	}
	q := l.heads(c, "query", query, l.KeyDim)
	if q.Node == nil {
		return op.Output{}
	}
	k := l.heads(c, "key", key, l.KeyDim)
	v := l.heads(c, "value", value, values)
	q = op.Mul(s, q, like(s, q, 1/math.Sqrt(float64(l.KeyDim))))
	scores := op.BatchMatMulV2(s, q, k, op.BatchMatMulV2AdjY(true)) // [batch, heads, query, value]
	if allowed := l.allowed(s, scores, mask, queryMask, valueMask); allowed.Node != nil {
		blocked := op.Sub(s, like(s, scores, 1), castLike(s, allowed, scores))
		scores = op.AddV2(s, scores, op.Mul(s, blocked, like(s, scores, -1e9)))
	}
	weights := c.drop(op.Softmax(s, scores), l.Dropout)
	mixed := transpose(s, op.BatchMatMulV2(s, weights, v), 0, 2, 1, 3)
	mixed = reshapeLike(s, mixed, query, s.ShapeOf(query), l.NumHeads*values)
	w := c.Weight(Weight{
		Name: "attention_output/kernel", Shape: tensor.Shape{int64(l.NumHeads), int64(values), outputs}, Init: train.GlorotUniform(),
	})
	y := matMul(s, mixed, reshape(s, w, l.NumHeads*values, int(outputs)))
	if !l.NoBias {
		y = addBias(s, y, c.Weight(Weight{Name: "attention_output/bias", Shape: tensor.Shape{outputs}, Init: train.Zeros}))
	}
	return c.done(query, y, true)
}

// heads projects x to [batch, heads, time, size].
func (l *MultiHeadAttention) heads(c *Context, name string, x op.Output, size int) op.Output {
	s, features := c.Scope, c.size(x, 2, 3)
	shape := tensor.Shape{features, int64(l.NumHeads), int64(size)}
	w := c.Weight(Weight{Name: name + "/kernel", Shape: shape, Init: train.GlorotUniform()})
	y := matMul(s, c.cast(x), reshape(s, w, int(features), l.NumHeads*size))
	if !l.NoBias {
		bias := c.Weight(Weight{Name: name + "/bias", Shape: shape[1:], Init: train.Zeros})
		y = addBias(s, y, reshape(s, bias, l.NumHeads*size))
	}
	if y.Node == nil {
		return y
	}
	return transpose(s, reshapeLike(s, y, x, s.ShapeOf(x), l.NumHeads, size), 0, 2, 1, 3)
}

// allowed combines the masks into a bool tensor that is compatible with the scores, or returns the
// zero Output if there are none.
func (l *MultiHeadAttention) allowed(s *op.Scope, scores, mask, query, value op.Output) op.Output {
	var all op.Output
	and := func(m op.Output) {
		if all.Node == nil {
			all = m
		} else {
			all = op.LogicalAnd(s, all, m)
		}
	}
	axis := func(x op.Output, i int) op.Output { return op.ExpandDims(s, x, op.Const(s, int32(i))) }
	if query.Node != nil {
		and(axis(axis(query, 1), 3))
	}
	if value.Node != nil {
		and(axis(axis(value, 1), 1))
	}
	if mask.Node != nil {
		and(axis(mask, 1))
	}
	if l.Causal {
		zero, one := op.Const(s, int32(0)), op.Const(s, int32(1))
		rows := op.Range(s, zero, dim(s, scores, 2), one)
		cols := op.Range(s, zero, dim(s, scores, 3), one)
		and(op.GreaterEqual(s, axis(rows, 1), axis(cols, 0)))
	}
	return all
}
