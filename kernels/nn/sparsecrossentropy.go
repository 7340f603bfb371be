package nn

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/internal/ints"
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
			Name: "SparseSoftmaxCrossEntropyWithLogits",
			Doc:  "Computes the cross entropy of softmax(features) and labels, a class per row, and its gradient by the features.",
			In:   []string{"features: T", "labels: Tlabels"}, Out: []string{"loss: T", "backprop: T"},
			Attrs: []string{"T: " + floatTypes, "Tlabels: {int32, int64} = int64"}, Shape: sparseCrossEntropyShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16:  sparseCrossEntropy(sparseEntropyVia32(tensor.HalfOf)),
			tensor.BFloat16: sparseCrossEntropy(sparseEntropyVia32(tensor.BFloatOf)),
			tensor.Float32:  sparseCrossEntropy(sparseEntropyRow[float32]),
			tensor.Float64:  sparseCrossEntropy(sparseEntropyRow[float64]),
		}),
	})
}

func sparseCrossEntropyShape(c *opdef.ShapeContext) error {
	features, err := opdef.WithRank(c.In[0], 2)
	if err != nil {
		return err
	}
	labels, err := opdef.WithRank(c.In[1], 1)
	if err != nil {
		return err
	}
	batch, err := opdef.MergeDims(features.Dim(0), labels.Dim(0))
	if err != nil {
		return err
	}
	c.Out[0], c.Out[1] = tensor.MakePartial(batch), tensor.MakePartial(batch, features.Dim(1))
	return nil
}

// sparseEntropyRow returns the loss of one row and sets grad, which may be the logits.
func sparseEntropyRow[T simd.Float](grad, logits []T, label int64) T {
	largest := simd.MaxOf(logits)
	chosen := logits[label] - largest
	sum := simd.ExpSubSum(grad, logits, largest)
	simd.MulScalar(grad, grad, 1/sum)
	grad[label]--
	return T(math.Log(float64(sum))) - chosen
}

func sparseEntropyVia32[H elementwise.Short](round func(float32) H) func(grad, logits []H, label int64) H {
	return func(grad, logits []H, label int64) H {
		wide := make([]float32, len(grad))
		elementwise.Widen(wide, logits)
		loss := sparseEntropyRow(wide, wide, label)
		elementwise.Narrow(grad, wide)
		return round(loss)
	}
}

func sparseCrossEntropy[T tensor.Elem](row func(grad, logits []T, label int64) T) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		logits, labels := ctx.Input(0), ctx.Input(1)
		if err := checkClasses(logits, labels); err != nil {
			return err
		}
		x, classes, n := tensor.Values[T](logits), ints.Values(labels), logits.Dim(1)
		loss, err := ctx.Allocate(0, labels.Shape())
		if err != nil {
			return err
		}
		grad, err := ctx.Forward(0, 1)
		if err != nil {
			return err
		}
		losses, grads := tensor.Values[T](loss), tensor.Values[T](grad)
		parallel.For(len(losses), rowGrain(n), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				losses[i] = row(grads[i*n:(i+1)*n], x[i*n:(i+1)*n], classes[i])
			}
		})
		return nil
	})
}

func checkClasses(logits, labels *tensor.Tensor) error {
	switch {
	case logits.Rank() != 2:
		return status.InvalidArgumentf("logits must be 2-D, but got shape %v", logits.Shape())
	case labels.Rank() != 1:
		return status.InvalidArgumentf("labels must be 1-D, but got shape %v", labels.Shape())
	case logits.Dim(0) != labels.Dim(0):
		return status.InvalidArgumentf("logits and labels must have the same first dimension, got logits shape %v and labels shape %v",
			logits.Shape(), labels.Shape())
	case logits.Dim(1) == 0:
		return status.InvalidArgumentf("Must have at least one class, but got logits shape %v", logits.Shape())
	case logits.Dim(0) == 0:
		return nil
	}
	classes := ints.Values(labels)
	bad, largest := slices.Min(classes), slices.Max(classes)
	if bad >= 0 {
		bad = largest
	}
	if bad < 0 || bad >= int64(logits.Dim(1)) {
		return status.InvalidArgumentf(
			"Received a label value of %d which is outside the valid range of [0, %d).  Label values: %s",
			bad, logits.Dim(1), labels.Summary(-1))
	}
	return nil
}
