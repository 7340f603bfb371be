package string

import (
	"strings"

	"github.com/weft-ml/weft/internal/shapes"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerNew(opdef.Def{
		Name: "StringSplit", Doc: "Splits strings at any byte of a delimiter, or into bytes if it is empty; the parts are a sparse matrix.",
		In:    []string{"input: string", "delimiter: string"},
		Out:   []string{"indices: int64", "values: string", "shape: int64"},
		Attrs: []string{"skip_empty: bool = true"},
		Shape: splitShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		skip := c.Attrs.Bool("skip_empty")
		return splitter("delimiter", func(s, delimiter string) []string { return splitAny(s, delimiter, skip) }), nil
	})
	registerNew(opdef.Def{
		Name: "StringSplitV2", Doc: "Splits strings at a separator, or at runs of space if it is empty; the parts are a sparse matrix.",
		In:    []string{"input: string", "sep: string"},
		Out:   []string{"indices: int64", "values: string", "shape: int64"},
		Attrs: []string{"maxsplit: int = -1"},
		Shape: splitShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		most := c.Attrs.Int("maxsplit")
		return splitter("sep", func(s, sep string) []string { return splitAt(s, sep, most) }), nil
	})
}

func splitShape(c *opdef.ShapeContext) error {
	c.Out[0], c.Out[1], c.Out[2] = shapes.Of(shapes.Unknown, 2), shapes.Of(shapes.Unknown), shapes.Of(2)
	return shapes.CheckRanks(c, 0, 1, 0)
}

// splitter returns the kernel of an operation that splits each string at the second input, which has the given name.
func splitter(name string, split func(s, at string) []string) kernel.Kernel {
	return kernel.Func(func(ctx *kernel.Context) error {
		in, at := ctx.Input(0), ctx.Input(1)
		if in.Rank() != 1 {
			return status.InvalidArgumentf("input must be a vector, got shape: %v", in.Shape())
		}
		if at.Rank() != 0 {
			return status.InvalidArgumentf("%s must be a scalar, got shape: %v", name, at.Shape())
		}
		var indices []int64
		var values []string
		most := 0
		for row, s := range tensor.Values[string](in) {
			parts := split(s, tensor.Value[string](at))
			most = max(most, len(parts))
			values = append(values, parts...)
			for column := range parts {
				indices = append(indices, int64(row), int64(column))
			}
		}
		places, err := tensor.FromSlice(tensor.Shape{int64(len(values)), 2}, indices)
		if err != nil {
			return err
		}
		ctx.SetOutput(0, places)
		ctx.SetOutput(1, tensor.Vector(values...))
		ctx.SetOutput(2, tensor.Vector(int64(in.Dim(0)), int64(most)))
		return nil
	})
}

// splitAny splits at every byte of a set, or into bytes.
func splitAny(s, set string, skipEmpty bool) []string {
	if s == "" {
		return nil
	}
	var parts []string
	if set == "" {
		for i := range len(s) {
			parts = append(parts, s[i:i+1])
		}
		return parts
	}
	start := 0
	for i := range len(s) + 1 {
		if i < len(s) && strings.IndexByte(set, s[i]) < 0 {
			continue
		}
		if !skipEmpty || i > start {
			parts = append(parts, s[start:i])
		}
		start = i + 1
	}
	return parts
}

// splitAt splits as Python does, so many times at most; a negative number stands for no limit.
func splitAt(s, sep string, most int) []string {
	switch {
	case most == 0:
		return []string{s}
	case sep == "":
		return splitSpace(s, most)
	case most < 0:
		return strings.Split(s, sep)
	default:
		return strings.SplitN(s, sep, most+1)
	}
}

func splitSpace(s string, most int) []string {
	var parts []string
	s = strings.TrimLeft(s, space)
	for s != "" {
		n := strings.IndexAny(s, space)
		if n < 0 {
			n = len(s)
		}
		parts = append(parts, s[:n])
		s = strings.TrimLeft(s[n:], space)
		if most > 0 && len(parts) == most {
			return append(parts, s)
		}
	}
	return parts
}
