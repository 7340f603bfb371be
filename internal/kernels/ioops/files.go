package ioops

import (
	"slices"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/unsized"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "ReadFile", Doc: "Returns the contents of a file.",
		In:    []string{"filename: string"},
		Out:   []string{"contents: string"},
		Class: opdef.FilesRead, Shape: scalars,
	}, kernel.WithFiles(readFile))
	kernel.RegisterNew(opdef.Def{
		Name: "WriteFile", Doc: "Writes a string to a file atomically, and creates missing directories.",
		In:       []string{"filename: string", "contents: string"},
		Stateful: true, Class: opdef.FilesWrite, Shape: scalars,
	}, kernel.WithFiles(writeFile))
	kernel.RegisterNew(opdef.Def{
		Name: "MatchingFiles", Doc: "Returns the sorted names of the files that match one or more glob patterns.",
		In:    []string{"pattern: string"},
		Out:   []string{"filenames: string"},
		Class: opdef.FilesRead,
		Shape: func(c *opdef.ShapeContext) error {
			if _, err := opdef.WithRankAtMost(c.In[0], 1); err != nil {
				return err
			}
			c.Out[0] = shapefn.Of(shapefn.Unknown)
			return nil
		},
	}, kernel.WithFiles(matchingFiles))
}

func readFile(ctx *kernel.Context, files fileio.Files) error {
	name, err := scalarString(ctx, 0, "Input filename")
	if err != nil {
		return err
	}
	text, err := wholeFile(files, name)
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(text))
	}
	return err
}

// wholeFile returns the contents of a file. It asks for the memory of both copies.
func wholeFile(files fileio.Files, path string) (string, error) {
	b, err := files.Read(path)
	if err != nil {
		return "", err
	}
	return unsized.String(b)
}

func writeFile(ctx *kernel.Context, files fileio.Files) error {
	name, err := scalarString(ctx, 0, "Input filename")
	if err != nil {
		return err
	}
	contents, err := scalarString(ctx, 1, "Contents")
	if err != nil {
		return err
	}
	membudget.MustTake(int64(len(contents))) // of the copy
	return files.Write(name, []byte(contents))
}

// scalarString returns the string that is input i, which must be a scalar.
func scalarString(ctx *kernel.Context, i int, name string) (string, error) {
	t := ctx.Input(i)
	if t.Rank() != 0 {
		return "", status.InvalidArgumentf("%s tensor must be scalar, but had shape: %v", name, t.Shape())
	}
	return tensor.Value[string](t), nil
}

func matchingFiles(ctx *kernel.Context, files fileio.Files) error {
	t := ctx.Input(0)
	if t.Rank() > 1 {
		return status.InvalidArgumentf("Input patterns tensor must be scalar or vector, but had shape: %v", t.Shape())
	}
	var names []string
	var meter membudget.Meter // a file may match many patterns
	for _, pattern := range tensor.Values[string](t) {
		found, err := files.Match(pattern)
		if err != nil {
			return err
		}
		for _, name := range found {
			meter.MustTake(len(name))
		}
		names = membudget.AppendAll(names, found...)
	}
	slices.Sort(names)
	ctx.SetOutput(0, tensor.Vector(names...))
	return nil
}
