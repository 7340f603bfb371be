package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/internal/simd"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SoftmaxCrossEntropyWithLogits",
			Doc:  "Computes the cross entropy of softmax(features) and labels, a distribution per row, and its gradient by the features.",
			In:   []string{"features: T", "labels: T"}, Out: []string{"loss: T", "backprop: T"},
			Attrs: []string{"T: " + floatTypes}, Shape: crossEntropyShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16:  crossEntropy(crossEntropyVia32(tensor.HalfOf)),
			tensor.BFloat16: crossEntropy(crossEntropyVia32(tensor.BFloatOf)),
			tensor.Float32:  crossEntropy(crossEntropyRow[float32]),
			tensor.Float64:  crossEntropy(crossEntropyRow[float64]),
		}),
	})
}

func crossEntropyShape(c *opdef.ShapeContext) error {
	if s, err := opdef.WithRank(c.In[0], 2); err == nil {
		if s, err = opdef.MergeShapes(s, c.In[1]); err == nil {
			c.Out[0], c.Out[1] = tensor.MakePartial(s.Dim(0)), s
			return nil
		}
	}
	s, err := opdef.BroadcastShapes(c.In[0], c.In[1])
	switch {
	case err != nil:
		return err
	case !s.RankKnown():
		return status.InvalidArgumentf("Shape must be broadcasted with rank 2, but is rank is unknown.")
	case s.Rank() != 2:
		return status.InvalidArgumentf("Shape must be broadcasted with rank 2, but is rank %d", s.Rank())
	}
	c.Out[0], c.Out[1] = tensor.MakePartial(s.Dim(0)), s
	return nil
}

// entropyRow computes one row: it returns the loss and sets grad, which may be the logits.
type entropyRow[T tensor.Elem] func(grad, logits, labels []T) T

// crossEntropyRow computes the loss as Σ labels * (ln Σ e^(logits-m) - (logits-m)) for m the largest logit.
func crossEntropyRow[T simd.Float](grad, logits, labels []T) T {
	largest := simd.MaxOf(logits)
	sum := simd.SumExpSub(logits, largest)
	logSum, loss := T(math.Log(float64(sum))), T(0)
	for i, v := range logits {
		loss += labels[i] * (logSum - (v - largest))
	}
	simd.ExpSubSum(grad, logits, largest)
	simd.MulScalar(grad, grad, 1/sum)
	simd.Sub(grad, grad, labels)
	return loss
}

func crossEntropyVia32[H elementwise.Short](round func(float32) H) entropyRow[H] {
	return func(grad, logits, labels []H) H {
		n := len(grad)
		wide := make([]float32, 2*n)
		elementwise.Widen(wide[:n], logits)
		elementwise.Widen(wide[n:], labels)
		loss := crossEntropyRow(wide[:n], wide[:n], wide[n:])
		elementwise.Narrow(grad, wide[:n])
		return round(loss)
	}
}

func crossEntropy[T tensor.Elem](row entropyRow[T]) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		shape, err := crossEntropySize(ctx.Input(0).Shape(), ctx.Input(1).Shape())
		if err != nil {
			return err
		}
		n := int(shape[1])
		logits, labels := newRows[T](ctx.Input(0), n), newRows[T](ctx.Input(1), n)
		loss, err := ctx.Allocate(0, shape[:1])
		if err != nil {
			return err
		}
		grad, err := ctx.ForwardAny(1, shape, 0)
		if err != nil {
			return err
		}
		losses, grads := tensor.Values[T](loss), tensor.Values[T](grad)
		parallel.For(len(losses), rowGrain(2*n), func(lo, hi int) {
			x, y := logits.reader(), labels.reader()
			for i := lo; i < hi; i++ {
				losses[i] = row(grads[i*n:(i+1)*n], x(i), y(i))
			}
		})
		return nil
	})
}

func crossEntropySize(logits, labels tensor.Shape) (tensor.Shape, error) {
	shape := logits
	if !logits.Equal(labels) {
		var err error
		if shape, err = elementwise.Broadcast(logits, labels); err != nil {
			return nil, status.InvalidArgumentf("logits and labels must be broadcastable: logits_size=%v labels_size=%v", logits, labels)
		}
	}
	if len(shape) != 2 {
		return nil, status.InvalidArgumentf("logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional")
	}
	return shape, nil
}

// rows reads the rows of a matrix, or of what is broadcast to one.
type rows[T tensor.Elem] struct {
	vals   []T
	n      int // columns of the broadcast matrix
	height int
	width  int
}

func newRows[T tensor.Elem](t *tensor.Tensor, n int) rows[T] {
	r := rows[T]{vals: tensor.Values[T](t), n: n, height: 1, width: 1}
	if t.Rank() > 0 {
		r.width = t.Dim(t.Rank() - 1)
	}
	if t.Rank() > 1 {
		r.height = t.Dim(0)
	}
	return r
}

// reader returns a function that returns a row, which is valid until the next call.
func (r *rows[T]) reader() func(i int) []T {
	var repeated []T
	if r.width != r.n {
		repeated = make([]T, r.n)
	}
	return func(i int) []T {
		if r.height == 1 {
			i = 0
		}
		row := r.vals[i*r.width : (i+1)*r.width]
		if repeated == nil {
			return row
		}
		for j := range repeated {
			repeated[j] = row[0]
		}
		return repeated
	}
}
