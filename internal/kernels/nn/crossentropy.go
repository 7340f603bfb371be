package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SoftmaxCrossEntropyWithLogits",
			Doc:  "Computes the softmax cross entropy of features and labels, and its gradient with respect to the features. Each row of labels is a probability distribution.",
			In:   []string{"features: T", "labels: T"}, Out: []string{"loss: T", "backprop: T"},
			Attrs: []string{"T: " + floatTypes}, Shape: crossEntropyShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16:  crossEntropy(crossEntropyVia32(tensor.Float16Of)),
			tensor.BFloat16: crossEntropy(crossEntropyVia32(tensor.BFloat16Of)),
			tensor.Float32:  crossEntropy(crossEntropyRows[float32]),
			tensor.Float64:  crossEntropy(crossEntropyRows[float64]),
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

// entropyRows computes rows of cols elements. It sets loss, with one element per row, and grad,
// which may share the memory of the logits.
type entropyRows[T tensor.Elem] func(loss, grad, logits, labels []T, cols int)

// crossEntropyRows computes losses as Σ labels * (ln Σ e^(logits-m) - (logits-m)), where m is the
// largest logit.
func crossEntropyRows[T simd.Float](loss, grad, logits, labels []T, cols int) {
	block := min(len(loss), scratchRows)
	scratch := membudget.Make[T](2 * block)
	for lo := 0; lo < len(loss); lo += block {
		n := min(block, len(loss)-lo)
		largest, sum := scratch[:n], scratch[block:block+n]
		x, y, z := logits[lo*cols:(lo+n)*cols], labels[lo*cols:(lo+n)*cols], grad[lo*cols:(lo+n)*cols]
		simd.ExpSums(largest, sum, x, cols)
		for i := range n {
			loss[lo+i] = entropy(x[i*cols:(i+1)*cols], y[i*cols:(i+1)*cols], largest[i], T(math.Log(float64(sum[i]))))
		}
		simd.SoftmaxRows(z, x, cols, largest, sum)
		simd.Sub(z, z, y)
	}
}

func entropy[T simd.Float](logits, labels []T, largest, logSum T) (loss T) {
	labels = labels[:len(logits)]
	for i, v := range logits {
		loss += labels[i] * (logSum - (v - largest))
	}
	return loss
}

func crossEntropyVia32[H elementwise.Short](round func(float32) H) entropyRows[H] {
	return func(loss, grad, logits, labels []H, cols int) {
		wide, wideLoss := membudget.Make[float32](2*cols), make([]float32, 1)
		for i := range loss {
			row := grad[i*cols : (i+1)*cols]
			elementwise.Widen(wide[:cols], logits[i*cols:(i+1)*cols])
			elementwise.Widen(wide[cols:], labels[i*cols:(i+1)*cols])
			crossEntropyRows(wideLoss, wide[:cols], wide[:cols], wide[cols:], cols)
			elementwise.Narrow(row, wide[:cols])
			loss[i] = round(wideLoss[0])
		}
	}
}

func crossEntropy[T tensor.Elem](compute entropyRows[T]) kernel.New {
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
		whole := logits.whole(len(losses)) && labels.whole(len(losses))
		parallel.For(len(losses), rowGrain(2*n), func(lo, hi int) {
			if whole {
				compute(losses[lo:hi], grads[lo*n:hi*n], logits.vals[lo*n:hi*n], labels.vals[lo*n:hi*n], n)
				return
			}
			x, y := logits.reader(), labels.reader()
			for i := lo; i < hi; i++ {
				compute(losses[i:i+1], grads[i*n:(i+1)*n], x(i), y(i), n)
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

// rows reads the rows of a matrix, or of a tensor that is broadcast to a matrix.
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

// whole reports whether the tensor has n full rows and thus needs no broadcasting.
func (r *rows[T]) whole(n int) bool { return r.height == n && r.width == r.n }

// reader returns a function that returns row i. The row is valid until the next call.
func (r *rows[T]) reader() func(i int) []T {
	var repeated []T
	if r.width != r.n {
		repeated = membudget.Make[T](r.n)
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
