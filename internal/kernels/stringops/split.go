package stringops

import (
	"strings"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "StringSplit", Doc: "Splits strings at any byte of a delimiter, or into bytes if it is empty. Returns " +
			"the parts as a sparse matrix.",
		In:    []string{"input: string", "delimiter: string"},
		Out:   []string{"indices: int64", "values: string", "shape: int64"},
		Attrs: []string{"skip_empty: bool = true"},
		Shape: splitShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		skip := c.Attrs.Bool("skip_empty")
		return splitter("delimiter", func(parts []string, s, delimiter string) []string { return splitAny(parts, s, delimiter, skip) }), nil
	})
	kernel.RegisterNew(opdef.Def{
		Name: "StringSplitV2", Doc: "Splits strings at a separator, or at runs of whitespace if it is empty. Returns " +
			"the parts as a sparse matrix.",
		In:    []string{"input: string", "sep: string"},
		Out:   []string{"indices: int64", "values: string", "shape: int64"},
		Attrs: []string{"maxsplit: int = -1"},
		Shape: splitShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		most := c.Attrs.Int("maxsplit")
		return splitter("sep", func(parts []string, s, sep string) []string { return splitAt(parts, s, sep, most) }), nil
	})
}

func splitShape(c *opdef.ShapeContext) error {
	c.Out[0], c.Out[1], c.Out[2] = shapefn.Of(shapefn.Unknown, 2), shapefn.Of(shapefn.Unknown), shapefn.Of(2)
	return shapefn.CheckRanks(c, 0, 1, 0)
}

// splitter returns the kernel of an operation that splits each string at the delimiter in the
// second input, which has the given name. split appends the parts to a list.
func splitter(name string, split func(parts []string, s, at string) []string) kernel.Kernel {
	return kernel.Func(func(ctx *kernel.Context) error {
		in, at := ctx.Input(0), ctx.Input(1)
		if in.Rank() != 1 {
			return status.InvalidArgumentf("input must be a vector, got shape: %v", in.Shape())
		}
		if at.Rank() != 0 {
			return status.InvalidArgumentf("%s must be a scalar, got shape: %v", name, at.Shape())
		}
		texts, separator := tensor.Values[string](in), tensor.Value[string](at)
		var values []string
		ends := membudget.Make[int](len(texts))
		for row, s := range texts {
			if row == 8 { // the remaining rows probably have similar lengths
				values = append(membudget.MakeCap[string](len(values)+len(values)/4*len(texts)/7), values...)
			}
			values = split(values, s, separator)
			ends[row] = len(values)
		}
		places, err := ctx.Allocate(0, tensor.Shape{int64(len(values)), 2})
		if err != nil {
			return err
		}
		indices := tensor.Values[int64](places)
		lo, most := 0, 0
		for row, hi := range ends {
			for i := lo; i < hi; i++ {
				indices[2*i], indices[2*i+1] = int64(row), int64(i-lo)
			}
			lo, most = hi, max(most, hi-lo)
		}
		ctx.SetOutput(1, tensor.Vector(values...))
		ctx.SetOutput(2, tensor.Vector(int64(in.Dim(0)), int64(most)))
		return nil
	})
}

// splitAny splits at every byte of a set, or into bytes if the set is empty.
func splitAny(parts []string, s, set string, skipEmpty bool) []string {
	if s == "" {
		return parts
	}
	if set == "" {
		for i := range len(s) {
			parts = membudget.Append(parts, s[i:i+1])
		}
		return parts
	}
	var delimits [256]bool // a search in the set would take time for each byte of both
	for i := range len(set) {
		delimits[set[i]] = true
	}
	start := 0
	for i := range len(s) + 1 {
		if i < len(s) && !delimits[s[i]] {
			continue
		}
		if !skipEmpty || i > start {
			parts = membudget.Append(parts, s[start:i])
		}
		start = i + 1
	}
	return parts
}

// splitAt splits like Python's str.split, at most most times; a negative number means no limit.
func splitAt(parts []string, s, sep string, most int) []string {
	if most != 0 && sep == "" {
		return splitSpace(parts, s, most)
	}
	for ; most != 0; most-- {
		n := strings.Index(s, sep)
		if n < 0 {
			break
		}
		parts, s = membudget.Append(parts, s[:n]), s[n+len(sep):]
	}
	return membudget.Append(parts, s)
}

func splitSpace(parts []string, s string, most int) []string {
	s = strings.TrimLeft(s, space)
	for n := 1; s != ""; n++ {
		end := strings.IndexAny(s, space)
		if end < 0 {
			end = len(s)
		}
		parts = membudget.Append(parts, s[:end])
		s = strings.TrimLeft(s[end:], space)
		if n == most {
			return membudget.Append(parts, s)
		}
	}
	return parts
}
