// Package boosted implements the operations of gradient boosted trees: quantiles of features,
// statistics of gradients per node and bucket, the choice of splits, and ensembles of decision
// trees. The estimators BoostedTreesClassifier and BoostedTreesRegressor of TensorFlow 1.8 to 2.10
// use them.
//
// A feature is bucketized before a tree sees it: its value is the number of a quantile. Statistics
// of a feature have the shape [nodes, dimensions, buckets+1, gradients and hessians]. The last
// bucket is for missing values. Trees grow one layer per step, and a new layer corrects the logits
// of the layers before it.
package boosted

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// vector returns the elements of input i.
func vector[T tensor.Elem](ctx *kernel.Context, i int, name string) ([]T, error) {
	t := ctx.Input(i)
	if t.Rank() != 1 {
		return nil, status.InvalidArgumentf("%s must be a vector, got a tensor of shape %v", name, t.Shape())
	}
	return tensor.Values[T](t), nil
}

// matrix is a tensor of rank 2.
type matrix[T tensor.Elem] struct {
	values     []T
	rows, cols int
}

func (m *matrix[T]) row(i int) []T { return m.values[i*m.cols : (i+1)*m.cols] }

func matrixOf[T tensor.Elem](ctx *kernel.Context, i int, name string) (matrix[T], error) {
	t := ctx.Input(i)
	if t.Rank() != 2 {
		return matrix[T]{}, status.InvalidArgumentf("%s must be a matrix, got a tensor of shape %v", name, t.Shape())
	}
	return matrix[T]{tensor.Values[T](t), t.Dim(0), t.Dim(1)}, nil
}

// scalar returns the element of input i.
func scalar[T tensor.Elem](ctx *kernel.Context, i int, name string) (T, error) {
	t := ctx.Input(i)
	if t.Rank() != 0 {
		var none T
		return none, status.InvalidArgumentf("%s must be a scalar, got a tensor of shape %v", name, t.Shape())
	}
	return tensor.Value[T](t), nil
}

// setVector sets output i to a vector.
func setVector[T tensor.Elem](ctx *kernel.Context, i int, values []T) error {
	return set(ctx, i, tensor.Shape{int64(len(values))}, values)
}

// set sets output i to a copy of values.
func set[T tensor.Elem](ctx *kernel.Context, i int, shape tensor.Shape, values []T) error {
	out, err := ctx.Allocate(i, shape)
	if err == nil {
		copy(tensor.Values[T](out), values)
	}
	return err
}

// registerHandle registers the operation that returns a handle to a resource.
func registerHandle[T kernel.Resource](name, doc string) {
	var none T
	kernel.RegisterNew(opdef.Def{
		Name: name, Doc: "Returns a handle to " + doc + ".",
		Out: []string{"resource: resource"}, Attrs: []string{"container: string = ''", "shared_name: string = ''"},
		Stateful: true, Shape: opdef.ScalarShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		p, err := resource.PlaceOf(c, true)
		if err != nil {
			return nil, err
		}
		handle := tensor.Scalar(p.Handle(c.Device, none.TypeName()))
		return kernel.Func(func(ctx *kernel.Context) error {
			ctx.SetOutput(0, handle.Retain())
			return nil
		}), nil
	})
}

// registerInitialized registers the operation that tells whether a resource exists.
func registerInitialized[T kernel.Resource](name, arg, doc string) {
	kernel.RegisterFunc(opdef.Def{
		Name: name, Doc: "Returns true if " + doc + " has been created.",
		In: []string{arg + ": resource"}, Out: []string{"is_initialized: bool"}, Stateful: true, Shape: scalarsShape,
	}, func(ctx *kernel.Context) error {
		_, err := resource.Find[T](ctx, 0)
		if err != nil && status.CodeOf(err) != status.NotFound {
			return err
		}
		ctx.SetOutput(0, tensor.Scalar(err == nil))
		return nil
	})
}

// create adds the resource that the handle in input 0 names, unless there is one already.
func create[T kernel.Resource](ctx *kernel.Context, r T) error {
	h, err := resource.Handle(ctx, 0)
	if err != nil {
		return err
	}
	if h.TypeName != r.TypeName() {
		return status.InvalidArgumentf("Trying to access resource %s of another type than %s", h.Name, r.TypeName())
	}
	err = kernel.CreateResource(ctx.Device.Resources, h.Container, h.Name, r)
	if status.CodeOf(err) == status.AlreadyExists {
		return nil
	}
	return err
}

// scalarsShape is the shape function of operations whose inputs and outputs are scalars.
func scalarsShape(c *opdef.ShapeContext) error {
	for _, in := range c.In {
		if _, err := opdef.WithRank(in, 0); err != nil {
			return err
		}
	}
	return opdef.ScalarShape(c)
}
