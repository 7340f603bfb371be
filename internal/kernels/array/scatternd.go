package array

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "ScatterNd",
		Doc: "Scatters updates into a tensor of zeros at the index vectors in the last dimension of " +
			"indices. Updates of the same slice are added.",
		In:    []string{"indices: Tindices", "updates: T", "shape: Tindices"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''"},
		Shape: scatterNdShape,
	}, newScatterNd)
	kernel.RegisterNew(opdef.Def{
		Name: "TensorScatterUpdate",
		Doc:  "Returns a copy of tensor with the slices selected by indices replaced by updates.",
		In:   []string{"tensor: T", "indices: Tindices", "updates: T"},
		Out:  []string{"output: T"},
		Attrs: []string{
			"T: type",
			"Tindices: {int16, int32, int64, uint16}",
			"bad_indices_policy: string = ''",
		},
		Shape: tensorScatterShape,
	}, newTensorScatter(elementwise.Assign))
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name:  "TensorScatterAdd",
			Doc:   "Returns a copy of tensor with updates added to the slices selected by indices.",
			In:    []string{"tensor: T", "indices: Tindices", "updates: T"},
			Out:   []string{"output: T"},
			Attrs: []string{"T: type", "Tindices: {int32, int64}", "bad_indices_policy: string = ''"},
			Shape: tensorScatterShape,
		},
		Kernels: kernel.ForTypes("T", newTensorScatter(elementwise.Add), typeset.Numbers...),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name:  "TensorScatterSub",
			Doc:   "Returns a copy of tensor with updates subtracted from the slices selected by indices.",
			In:    []string{"tensor: T", "indices: Tindices", "updates: T"},
			Out:   []string{"output: T"},
			Attrs: []string{"T: type", "Tindices: {int32, int64}", "bad_indices_policy: string = ''"},
			Shape: tensorScatterShape,
		},
		Kernels: kernel.ForTypes("T", newTensorScatter(elementwise.Sub), typeset.Numbers...),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "TensorScatterMin",
			Doc: "Returns a copy of tensor in which the slices selected by indices are the minimum of " +
				"themselves and updates.",
			In:    []string{"tensor: T", "indices: Tindices", "updates: T"},
			Out:   []string{"output: T"},
			Attrs: []string{"T: type", "Tindices: {int32, int64}", "bad_indices_policy: string = ''"},
			Shape: tensorScatterShape,
		},
		Kernels: kernel.ForTypes("T", newTensorScatter(elementwise.Min), typeset.Real...),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "TensorScatterMax",
			Doc: "Returns a copy of tensor in which the slices selected by indices are the maximum of " +
				"themselves and updates.",
			In:    []string{"tensor: T", "indices: Tindices", "updates: T"},
			Out:   []string{"output: T"},
			Attrs: []string{"T: type", "Tindices: {int32, int64}", "bad_indices_policy: string = ''"},
			Shape: tensorScatterShape,
		},
		Kernels: kernel.ForTypes("T", newTensorScatter(elementwise.Max), typeset.Real...),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "ScatterNdNonAliasingAdd",
			Doc:  "Returns input with updates added to the slices selected by indices.",
			In:   []string{"input: T", "indices: Tindices", "updates: T"},
			Out:  []string{"output: T"},
			Attrs: []string{
				"T: {float32, float64, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, float16, uint32, uint64, bool}",
				"Tindices: {int32, int64}",
				"bad_indices_policy: string = ''",
			},
			Shape: tensorScatterShape,
		},
		Kernels: kernel.ForTypes("T", newScatter(elementwise.Add, gatherscatter.CheckUpdates, true), append([]tensor.DType{tensor.Bool}, typeset.Numbers...)...),
	})
}

func scatterNdShape(c *opdef.ShapeContext) error {
	indices, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	updates, err := opdef.WithRankAtLeast(c.In[1], 1)
	if err != nil {
		return err
	}
	out, err := shapefn.Input(c, 2)
	if err != nil {
		return err
	}
	c.Out[0] = out
	return shapefn.CheckScatterNd(indices, updates, out)
}

func tensorScatterShape(c *opdef.ShapeContext) error {
	out, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	indices, err := opdef.WithRankAtLeast(c.In[1], 1)
	if err != nil {
		return err
	}
	c.Out[0] = out
	return shapefn.CheckScatterNd(indices, c.In[2], out)
}

func newScatterNd(c *kernel.Construction) (kernel.Kernel, error) {
	skip, err := gatherscatter.SkipsBad(c.Attrs)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		indices, updates, shapeTensor := ctx.Input(0), ctx.Input(1), ctx.Input(2)
		if shapeTensor.Rank() != 1 {
			return status.InvalidArgumentf("Shape must be a vector")
		}
		shape, err := intarg.Shape(intarg.Values(shapeTensor))
		if err != nil {
			return err
		}
		if err := checkScatterNd(indices, updates, shape); err != nil {
			return err
		}
		out, err := ctx.AllocateZeros(0, shape)
		if err != nil {
			return err
		}
		return gatherscatter.ScatterVectors(elementwise.Add, out, indices, updates, skip)
	}), nil
}

// checkScatterNd checks the shapes of ScatterNd, which has its own error texts.
func checkScatterNd(indices, updates *tensor.Tensor, shape tensor.Shape) error {
	switch {
	case indices.Rank() < 1:
		return status.InvalidArgumentf("Indices shape must have rank at least one. Found:%v", indices.Shape())
	case updates.Rank() < 1:
		return status.InvalidArgumentf("Updates shape must have rank at least one. Found:%v", updates.Shape())
	}
	outer := indices.Rank() - 1
	depth := indices.Dim(outer)
	if updates.Rank() < outer || !updates.Shape()[:outer].Equal(indices.Shape()[:outer]) {
		return status.InvalidArgumentf("Dimensions [0,%d) of indices[shape=%v] must match dimensions [0,%d) of updates[shape=%v]",
			outer, indices.Shape(), outer, updates.Shape())
	}
	if depth > len(shape) || !updates.Shape()[outer:].Equal(shape[depth:]) {
		return status.InvalidArgumentf("Dimensions [%d,%d) of input[shape=%v] must match dimensions [%d,%d) of updates[shape=%v]",
			depth, len(shape), shape, outer, updates.Rank(), updates.Shape())
	}
	return gatherscatter.CheckUpdates(indices, updates, shape)
}

func newTensorScatter(op elementwise.Op) kernel.New { return newScatter(op, checkTensorScatter, false) }

// newScatter returns the kernel of an operation that updates its first input. check validates the
// shapes. With listed, each element of an indices vector selects a slice.
func newScatter(op elementwise.Op, check func(indices, updates *tensor.Tensor, shape tensor.Shape) error, listed bool) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		skip, err := gatherscatter.SkipsBad(c.Attrs)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			in, indices, updates := ctx.Input(0), ctx.Input(1), ctx.Input(2)
			if listed {
				column, err := gatherscatter.Column(indices)
				if err != nil {
					return err
				}
				indices = column
			}
			if err := check(indices, updates, in.Shape()); err != nil {
				return err
			}
			out, err := owned(in)
			if err != nil {
				return err
			}
			if err := gatherscatter.ScatterVectors(op, &out, indices, updates, skip); err != nil {
				out.Release()
				return err
			}
			ctx.SetOutput(0, out)
			return nil
		}), nil
	}
}

// owned returns in itself if this step holds the only reference, and a copy otherwise.
func owned(in *tensor.Tensor) (tensor.Tensor, error) {
	if !in.Exclusive() {
		return in.Clone()
	}
	out := *in
	*in = tensor.Tensor{}
	return out, nil
}

// checkTensorScatter checks the shapes of the TensorScatter operations.
func checkTensorScatter(indices, updates *tensor.Tensor, shape tensor.Shape) error {
	switch {
	case indices.Rank() < 1:
		return status.InvalidArgumentf("Indices shape must have rank at least one. Found:%v", indices.Shape())
	case updates.Rank() < 1:
		return status.InvalidArgumentf("Updates shape must have rank at least one. Found:%v", updates.Shape())
	case shape.NumElements() == 0 && (indices.NumElements() > 0 || updates.NumElements() > 0):
		return status.InvalidArgumentf("Indices and updates specified for empty output shape")
	}
	outer := indices.Rank() - 1
	depth := indices.Dim(outer)
	if updates.Rank() < outer || !updates.Shape()[:outer].Equal(indices.Shape()[:outer]) {
		return status.InvalidArgumentf("Outer dimensions of indices and update must match. Indices shape: %v, updates shape:%v",
			indices.Shape(), updates.Shape())
	}
	if updates.Rank()-outer != len(shape)-depth {
		return status.InvalidArgumentf("Inner dimensions of output shape must match inner dimensions of updates shape. "+
			"Output: %v updates: %v", shape, updates.Shape())
	}
	if !updates.Shape()[outer:].Equal(shape[depth:]) {
		return status.InvalidArgumentf("The inner %d dimensions of output.shape=%v must match the inner %d dimensions of updates.shape=%v",
			len(shape)-depth, shape, updates.Rank()-outer, updates.Shape())
	}
	return nil
}
