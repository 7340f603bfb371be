package data

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	convert := func(name, doc string, f func(*tensor.Tensor) (tensor.Tensor, error)) {
		kernel.RegisterFunc(opdef.Def{
			Name: name, Doc: doc, In: []string{"input_handle: variant"}, Out: []string{"output_handle: variant"}, Shape: opdef.ScalarShape,
		}, func(ctx *kernel.Context) error {
			out, err := f(ctx.Input(0))
			if err == nil {
				ctx.SetOutput(0, out)
			}
			return err
		})
	}
	convert("WrapDatasetVariant", "Wraps a dataset in a variant, so that it is passed as an ordinary value.", func(t *tensor.Tensor) (tensor.Tensor, error) {
		if _, err := datasetOf(t); err != nil {
			return tensor.Tensor{}, err
		}
		return tensor.Scalar(tensor.VariantValue{Value: wrapped{t.Retain()}}), nil
	})
	convert("UnwrapDatasetVariant", "Returns the dataset in a variant that WrapDatasetVariant created.", func(t *tensor.Tensor) (tensor.Tensor, error) {
		if t.Rank() != 0 {
			return tensor.Tensor{}, status.InvalidArgumentf("Dataset tensor must be a scalar of dtype DT_VARIANT.")
		}
		w, ok := tensor.Value[tensor.VariantValue](t).Value.(wrapped)
		if !ok {
			return tensor.Tensor{}, status.InvalidArgumentf("Tensor must be a WrappedDataset variant object.")
		}
		return w.dataset.Retain(), nil
	})
}

// wrapped is the value of a variant that holds the variant of a dataset.
type wrapped struct{ dataset tensor.Tensor }
