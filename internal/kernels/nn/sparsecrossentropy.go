package nn

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SparseSoftmaxCrossEntropyWithLogits",
			Doc:  "Computes the softmax cross entropy of features and labels, and its gradient with respect to the features. Labels hold one class index per row.",
			In:   []string{"features: T", "labels: Tlabels"}, Out: []string{"loss: T", "backprop: T"},
			Attrs: []string{"T: " + floatTypes, "Tlabels: {int32, int64} = int64"}, Shape: sparseCrossEntropyShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16:  sparseCrossEntropy(sparseEntropyVia32(tensor.Float16Of)),
			tensor.BFloat16: sparseCrossEntropy(sparseEntropyVia32(tensor.BFloat16Of)),
			tensor.Float32:  sparseCrossEntropy(sparseEntropyRows[float32]),
			tensor.Float64:  sparseCrossEntropy(sparseEntropyRows[float64]),
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

// sparseEntropyRows sets loss, with one element per row of cols elements, and grad, which may share
// the memory of the logits.
func sparseEntropyRows[T simd.Float](loss, grad, logits []T, classes []int64, cols int) {
	block := min(len(loss), scratchRows)
	scratch := membudget.Make[T](2 * block)
	for lo := 0; lo < len(loss); lo += block {
		n := min(block, len(loss)-lo)
		largest, sum := scratch[:n], scratch[block:block+n]
		x, z := logits[lo*cols:(lo+n)*cols], grad[lo*cols:(lo+n)*cols]
		losses, chosen := loss[lo:lo+n], classes[lo:lo+n]
		for i, class := range chosen {
			losses[i] = x[i*cols+int(class)] // kept until the gradient has been computed
		}
		simd.SoftmaxRows(z, x, cols, largest, sum)
		for i, class := range chosen {
			z[i*cols+int(class)]--
			losses[i] = T(math.Log(float64(sum[i]))) - (losses[i] - largest[i])
		}
	}
}

func sparseEntropyVia32[H elementwise.Short](round func(float32) H) func(loss, grad, logits []H, classes []int64, cols int) {
	return func(loss, grad, logits []H, classes []int64, cols int) {
		wide, wideLoss := membudget.Make[float32](cols), make([]float32, 1)
		for i := range loss {
			elementwise.Widen(wide, logits[i*cols:(i+1)*cols])
			sparseEntropyRows(wideLoss, wide, wide, classes[i:i+1], cols)
			elementwise.Narrow(grad[i*cols:(i+1)*cols], wide)
			loss[i] = round(wideLoss[0])
		}
	}
}

func sparseCrossEntropy[T tensor.Elem](compute func(loss, grad, logits []T, classes []int64, cols int)) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		logits, labels := ctx.Input(0), ctx.Input(1)
		if err := checkClasses(logits, labels); err != nil {
			return err
		}
		x, classes, n := tensor.Values[T](logits), intarg.Values(labels), logits.Dim(1)
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
			compute(losses[lo:hi], grads[lo*n:hi*n], x[lo*n:hi*n], classes[lo:hi], n)
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
	classes := intarg.Values(labels)
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
