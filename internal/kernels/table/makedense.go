package table

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// createDense creates a dense table whose empty and deleted keys are the inputs. The first form
// lacks the deleted key and fails, as in TensorFlow.
func createDense(ctx *kernel.Context, c *kernel.Construction) (contents, layout, error) {
	l := layout{keyType: c.Attrs.Type("key_dtype"), valueType: c.Attrs.Type("value_dtype")}
	maxLoad := c.Attrs.Float("max_load_factor")
	if !(maxLoad > 0 && maxLoad < 1) {
		return nil, l, status.InvalidArgumentf("max_load_factor must be between 0 and 1, got: %g", maxLoad)
	}
	shape, ok := c.Attrs.Shape("value_shape").Full()
	if !ok || len(shape) > 1 {
		return nil, l, status.InvalidArgumentf("Empty value must be a scalar or a vector, got shape %v", c.Attrs.Shape("value_shape"))
	}
	empty := ctx.Input(0)
	if empty.Rank() > 1 {
		return nil, l, status.InvalidArgumentf("Empty key must be a scalar or a vector, got shape %v", empty.Shape())
	}
	l.valueShape, l.keyShape = shape, empty.Shape()
	if ctx.NumInputs() < 2 {
		return nil, l, status.InvalidArgumentf("Unknown input name: deleted_key")
	}
	deleted := ctx.Input(1)
	if !deleted.Shape().Equal(empty.Shape()) {
		return nil, l, status.InvalidArgumentf("Empty and deleted keys must have same shape, got shapes: %v and %v",
			empty.Shape(), deleted.Shape())
	}
	t, err := newDense(resource.Account(ctx), l, empty, deleted, maxLoad, c.Attrs.Int("initial_num_buckets"))
	return t, l, err
}

func newDense(a *membudget.Account, l layout, empty, deleted *tensor.Tensor, maxLoad float32, buckets int) (contents, error) {
	switch l.keyType {
	case tensor.Int32:
		return newDenseOf[int32](a, l, empty, deleted, maxLoad, buckets)
	case tensor.Int64:
		return newDenseOf[int64](a, l, empty, deleted, maxLoad, buckets)
	case tensor.String:
		return newDenseOf[string](a, l, empty, deleted, maxLoad, buckets)
	}
	return nil, wrongKeyType(l.keyType)
}
