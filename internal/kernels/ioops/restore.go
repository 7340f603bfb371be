package ioops

import (
	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "RestoreV2", Doc: "Restores tensors, or slices of them, from a checkpoint in either format.",
		In:       []string{"prefix: string", "tensor_names: string", "shape_and_slices: string"},
		Out:      []string{"tensors: dtypes"},
		Attrs:    []string{"dtypes: list(type) >= 1"},
		Stateful: true, Class: opdef.FilesRead, Shape: restoreShape,
	}, counted("RestoreV2", restoreV2))
	kernel.RegisterNew(opdef.Def{
		Name: "Restore", Doc: "Restores a tensor from a checkpoint in format V1.",
		In:       []string{"file_pattern: string", "tensor_name: string"},
		Out:      []string{"tensor: dt"},
		Attrs:    []string{"dt: type", "preferred_shard: int = -1"},
		Stateful: true, Class: opdef.FilesRead,
		Shape: func(c *opdef.ShapeContext) error { return shapefn.CheckRanks(c, 0, 0, 0) },
	}, counted("Restore", restoreV1))
	kernel.RegisterNew(opdef.Def{
		Name: "RestoreSlice", Doc: "Restores a slice of a tensor from a checkpoint in format V1.",
		In:       []string{"file_pattern: string", "tensor_name: string", "shape_and_slice: string"},
		Out:      []string{"tensor: dt"},
		Attrs:    []string{"dt: type", "preferred_shard: int = -1"},
		Stateful: true, Class: opdef.FilesRead, Shape: restoreSliceShape,
	}, counted("RestoreSlice", restoreV1))
}

func restoreShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 0, 1, 1); err != nil {
		return err
	}
	if _, err := opdef.MergeShapes(c.In[1], c.In[2]); err != nil {
		return err
	}
	t := c.Value(2)
	if t == nil {
		return nil
	}
	specs := tensor.Values[string](t)
	if len(specs) != len(c.Out) {
		return status.InvalidArgumentf("The number of shape_and_slice doesn't match tensor outputs.")
	}
	for i, spec := range specs {
		if err := specShape(c, i, spec); err != nil {
			return err
		}
	}
	return nil
}

func restoreSliceShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 0, 0, 0); err != nil {
		return err
	}
	if t := c.Value(2); t != nil {
		return specShape(c, 0, tensor.Value[string](t))
	}
	return nil
}

// specShape sets the shape of output i to that of the slice specification.
func specShape(c *opdef.ShapeContext, i int, spec string) error {
	if spec == "" {
		return nil
	}
	_, _, part, err := checkpoint.ParseShapeAndSlice(spec)
	c.Out[i] = part.Partial()
	return err
}

// request holds the first three inputs of SaveV2 and RestoreV2.
type request struct {
	prefix        string
	names, slices []string // of equal length
}

func requested(ctx *kernel.Context) (request, error) {
	prefix, names, slices := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	if n := prefix.NumElements(); n != 1 {
		return request{}, status.InvalidArgumentf("Input prefix should have a single element, got %d instead.", n)
	}
	if names.Rank() != 1 || slices.Rank() != 1 {
		return request{}, status.InvalidArgumentf("Input tensor_names and shape_and_slices should be an 1-D tensors, got %v and %v "+
			"instead.", names.Shape(), slices.Shape())
	}
	if n, m := names.NumElements(), slices.NumElements(); n != m {
		return request{}, status.InvalidArgumentf("tensor_names and shape_and_slices have different number of elements: %d vs. %d", n, m)
	}
	return request{tensor.Value[string](prefix), tensor.Values[string](names), tensor.Values[string](slices)}, nil
}

func restoreV2(ctx *kernel.Context, files fileio.Files) error {
	if n := ctx.Input(1).NumElements(); n != ctx.NumOutputs() {
		return status.InvalidArgumentf("Got %d tensor names, but %d expected dtypes.", n, ctx.NumOutputs())
	}
	r, err := requested(ctx)
	if err != nil {
		return err
	}
	c, err := checkpoint.In(files).Open(r.prefix)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := checkTypes(ctx, c, r.names); err != nil {
		return err
	}
	for i, name := range r.names {
		t, err := readTensor(c, name, r.slices[i])
		if err != nil {
			return err
		}
		ctx.SetOutput(i, t)
	}
	return nil
}

// checkTypes checks that all tensors exist and have the dtypes of the outputs.
func checkTypes(ctx *kernel.Context, c *checkpoint.Reader, names []string) error {
	var wrong []string
	var meter membudget.Meter // names may share their text
	for i, name := range names {
		info, err := c.Lookup(name)
		if err != nil {
			return err
		}
		if want := ctx.OutputType(i); info.DType != want {
			meter.MustTake(len(name) + 128)
			wrong = append(wrong, "tensor_name = "+name+"; expected dtype "+want.String()+" does not equal original dtype "+
				info.DType.String())
		}
	}
	if wrong != nil {
		return status.InvalidArgumentf("%s", meter.Join(wrong, "\n"))
	}
	return nil
}

// readTensor reads a tensor, or a slice of it if spec is not empty.
func readTensor(c *checkpoint.Reader, name, spec string) (tensor.Tensor, error) {
	if spec == "" {
		return c.Read(name)
	}
	full, slice, _, err := checkpoint.ParseShapeAndSlice(spec)
	if err != nil {
		return tensor.Tensor{}, err
	}
	info, err := c.Lookup(name)
	if err != nil {
		return tensor.Tensor{}, err
	}
	if !info.Shape.Equal(full) {
		return tensor.Tensor{}, status.InvalidArgumentf("tensor_name = %s; shape in shape_and_slice spec %v does not match the shape "+
			"stored in checkpoint: %v", name, full, info.Shape)
	}
	return c.ReadSlice(name, slice)
}

// restoreV1 reads a tensor, or a slice of it if there is a third input.
func restoreV1(ctx *kernel.Context, files fileio.Files) error {
	if n := ctx.Input(0).NumElements(); n != 1 {
		return status.InvalidArgumentf("Input 0 (file_pattern) must be a string scalar; got a tensor of %d elements", n)
	}
	if n := ctx.Input(1).NumElements(); n < 1 {
		return status.InvalidArgumentf("Input 1 (file_pattern) must be a have at least 1 elements")
	}
	pattern, name := tensor.Value[string](ctx.Input(0)), tensor.Values[string](ctx.Input(1))[0]
	c, err := checkpoint.In(files).OpenV1(pattern)
	if err != nil {
		return err
	}
	defer c.Close()
	info, err := c.Lookup(name)
	if err != nil {
		return status.NotFoundf("Tensor name \"%s\" not found in checkpoint files %s", name, pattern)
	}
	if want := ctx.OutputType(0); info.DType != want {
		return status.InvalidArgumentf("Expected to restore a tensor of type %v, got a tensor of type %v instead: tensor_name = %s",
			want, info.DType, name)
	}
	slice := checkpoint.FullSlice(len(info.Shape))
	if ctx.NumInputs() == 3 && ctx.Input(2).NumElements() > 0 && tensor.Values[string](ctx.Input(2))[0] != "" {
		var full tensor.Shape
		if full, slice, _, err = checkpoint.ParseShapeAndSlice(tensor.Values[string](ctx.Input(2))[0]); err != nil {
			return err
		}
		if !full.Equal(info.Shape) {
			return status.InvalidArgumentf("Shape in shape_and_slice spec does not match the shape in the save file: %v, "+
				"save file shape: %v", full, info.Shape)
		}
	}
	t, err := c.ReadSlice(name, slice)
	if err == nil {
		ctx.SetOutput(0, t)
	}
	return err
}
