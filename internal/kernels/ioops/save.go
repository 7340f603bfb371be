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
		Name: "SaveV2", Doc: "Saves tensors, or slices of larger tensors, to a checkpoint. The files are on " +
			"disk when the operation returns.",
		In:       []string{"prefix: string", "tensor_names: string", "shape_and_slices: string", "tensors: dtypes"},
		Attrs:    []string{"dtypes: list(type) >= 1"},
		Stateful: true, Class: opdef.FilesWrite, Shape: savingShape(3),
	}, counted("SaveV2", saveV2))
	kernel.RegisterNew(opdef.Def{
		Name: "MergeV2Checkpoints", Doc: "Merges checkpoints written by different tasks into one.",
		In:       []string{"checkpoint_prefixes: string", "destination_prefix: string"},
		Attrs:    []string{"delete_old_dirs: bool = true", "allow_missing_files: bool = false"},
		Stateful: true, Class: opdef.FilesWrite,
		Shape: func(c *opdef.ShapeContext) error { return shapefn.CheckRanks(c, 0, 1, 0) },
	}, newMerge)
	kernel.RegisterNew(opdef.Def{
		Name: "Save", Doc: "Saves tensors to a checkpoint in format V1.",
		In:       []string{"filename: string", "tensor_names: string", "data: T"},
		Attrs:    []string{"T: list(type) >= 1"},
		Stateful: true, Class: opdef.FilesWrite, Shape: savingShape(2),
	}, counted("Save", func(ctx *kernel.Context, files fileio.Files) error { return saveV1(ctx, files, 2) }))
	kernel.RegisterNew(opdef.Def{
		Name: "SaveSlices", Doc: "Saves tensors, or slices of larger tensors, to a checkpoint in format V1.",
		In:       []string{"filename: string", "tensor_names: string", "shapes_and_slices: string", "data: T"},
		Attrs:    []string{"T: list(type) >= 1"},
		Stateful: true, Class: opdef.FilesWrite, Shape: savingShape(3),
	}, counted("SaveSlices", func(ctx *kernel.Context, files fileio.Files) error { return saveV1(ctx, files, 3) }))
}

// savingShape is the shape function of operations whose first inputs are a file name and vectors
// with one element for each remaining input.
func savingShape(fixed int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		if err := shapefn.CheckRanks(c, 0, 0); err != nil {
			return err
		}
		for i := 1; i < fixed; i++ {
			if err := shapefn.CheckRanks(c, i, 1); err != nil {
				return err
			}
			if err := shapefn.CheckDim(c.In[i].Dim(0), int64(len(c.In)-fixed)); err != nil {
				return err
			}
		}
		return nil
	}
}

func saveV2(ctx *kernel.Context, files fileio.Files) error {
	r, err := requested(ctx)
	if err != nil {
		return err
	}
	if len(r.names) != ctx.NumInputs()-3 {
		return status.InvalidArgumentf("Got %d tensor names but %d tensors.", len(r.names), ctx.NumInputs()-3)
	}
	w, err := checkpoint.In(files).Create(r.prefix)
	if err != nil {
		return err
	}
	defer w.Abort()
	for i, name := range r.names {
		if err := addTensor(w, name, r.slices[i], ctx.Input(3+i)); err != nil {
			return err
		}
	}
	return w.Close()
}

// adder is a checkpoint writer of either format.
type adder interface {
	Add(name string, t *tensor.Tensor) error
	AddSlice(name string, full tensor.Shape, s checkpoint.Slice, t *tensor.Tensor) error
}

// addTensor adds a tensor, or a slice if spec is not empty.
func addTensor(w adder, name, spec string, t *tensor.Tensor) error {
	if spec == "" {
		return w.Add(name, t)
	}
	full, slice, part, err := checkpoint.ParseShapeAndSlice(spec)
	if err != nil {
		return err
	}
	if !part.Equal(t.Shape()) {
		return status.InvalidArgumentf("Slice in shape_and_slice specification does not match the shape of the tensor to  save: "+
			"%s, tensor: %v", spec, t.Shape())
	}
	return w.AddSlice(name, full, slice, t)
}

// saveV1 saves a checkpoint in format V1. The first fixed inputs are the file name, the tensor
// names and, if fixed is three, the slices.
func saveV1(ctx *kernel.Context, files fileio.Files, fixed int) error {
	if n := ctx.Input(0).NumElements(); n != 1 {
		return status.InvalidArgumentf("Input 0 (filename) must be a string scalar; got a tensor of %delements", n)
	}
	names := tensor.Values[string](ctx.Input(1))
	specs := membudget.Make[string](len(names))
	if fixed == 3 {
		if specs = tensor.Values[string](ctx.Input(2)); len(specs) != len(names) {
			return status.InvalidArgumentf("Expected %d elements for the tensor shapes and slices but got %d", len(names), len(specs))
		}
	}
	if got := ctx.NumInputs(); got != len(names)+fixed {
		return status.InvalidArgumentf("Expected totally %d inputs as input #1 (which is a string tensor of saved names) contains "+
			"%d names, but received %d inputs", len(names)+fixed, len(names), got)
	}
	w := checkpoint.In(files).CreateV1(tensor.Value[string](ctx.Input(0)))
	for i, name := range names {
		if err := addTensor(w, name, specs[i], ctx.Input(fixed+i)); err != nil {
			return err
		}
	}
	return w.Close()
}

func newMerge(c *kernel.Construction) (kernel.Kernel, error) {
	deleteDirs, allowMissing := c.Attrs.Bool("delete_old_dirs"), c.Attrs.Bool("allow_missing_files")
	return kernel.WithFiles(func(ctx *kernel.Context, files fileio.Files) error {
		if t := ctx.Input(0); t.Rank() != 1 {
			return status.InvalidArgumentf("Input checkpoint_prefixes should be an 1-D tensor, got %v instead.", t.Shape())
		}
		if t := ctx.Input(1); t.Rank() != 0 {
			return status.InvalidArgumentf("Input destination_prefix should be a scalar tensor, got %v instead.", t.Shape())
		}
		prefixes, into := tensor.Values[string](ctx.Input(0)), tensor.Value[string](ctx.Input(1))
		if err := checkpoint.In(files).Merge(prefixes, into, allowMissing); err != nil {
			return err
		}
		for _, prefix := range prefixes {
			if dir := fileio.Dir(prefix); deleteDirs && dir != fileio.Dir(into) {
				// the first of several tasks in one directory removes it; a directory with other
				// files remains
				_ = files.Remove(dir)
			}
		}
		return nil
	})(c)
}
