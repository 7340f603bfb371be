package stringops

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "StringNGrams", Doc: "Creates n-grams from the rows of a ragged string matrix, with optional padding.",
		In:  []string{"data: string", "data_splits: Tsplits"},
		Out: []string{"ngrams: string", "ngrams_splits: Tsplits"},
		Attrs: []string{
			"separator: string", "ngram_widths: list(int) >= 0", "left_pad: string", "right_pad: string", "pad_width: int",
			"preserve_short_sequences: bool", "Tsplits: {int32, int64} = int64",
		},
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0], c.Out[1] = shapefn.Of(shapefn.Unknown), c.In[1]
			return shapefn.CheckRanks(c, 0, 1, 1)
		},
	}, newNGrams)
}

// ngrams holds the attributes.
type ngrams struct {
	separator, left, right string
	widths                 []int64
	// padding at either end; negative for the maximum that a width permits
	padding   int64
	keepShort bool // whether a row too short for every width becomes one n-gram
}

func newNGrams(c *kernel.Construction) (kernel.Kernel, error) {
	for _, w := range c.Attrs.Ints("ngram_widths") {
		if int64(int32(w)) != w {
			return nil, status.InvalidArgumentf("Attr ngram_widths has value %d out of range for an int32", w)
		}
	}
	return &ngrams{
		separator: c.Attrs.String("separator"), left: c.Attrs.String("left_pad"), right: c.Attrs.String("right_pad"),
		widths: c.Attrs.Ints("ngram_widths"), padding: int64(c.Attrs.Int("pad_width")), keepShort: c.Attrs.Bool("preserve_short_sequences"),
	}, nil
}

// Compute implements kernel.Kernel.
func (g *ngrams) Compute(ctx *kernel.Context) error {
	for _, w := range g.widths {
		if w <= 0 {
			return status.InvalidArgumentf("ngram_widths must contain positive values")
		}
	}
	data, splits := tensor.Values[string](ctx.Input(0)), intarg.Values(ctx.Input(1))
	if err := checkSplits(splits, int64(len(data))); err != nil {
		return err
	}
	ends := membudget.Make[int64](len(splits))
	// without rows the output is empty strings in the shape of the data
	if len(data) == 0 || len(splits) == 0 {
		out, err := ctx.AllocateLike(0, ctx.Input(0))
		if err != nil {
			return err
		}
		clear(tensor.Values[string](out))
		return setEnds(ctx, ends)
	}
	var out []string
	for i := 1; i < len(splits); i++ {
		var err error
		if out, err = g.row(ctx, out, data[splits[i-1]:splits[i]]); err != nil {
			return err
		}
		ends[i] = int64(len(out))
	}
	ctx.SetOutput(0, tensor.Vector(out...))
	return setEnds(ctx, ends)
}

// setEnds sets the splits output.
func setEnds(ctx *kernel.Context, ends []int64) error {
	t, err := ctx.AllocateLike(1, ctx.Input(1))
	if err == nil {
		intarg.Set(t, ends)
	}
	return err
}

// maxParts bounds the total number of parts in the n-grams of a row.
const maxParts = 1 << 28

func checkSplits(splits []int64, n int64) error {
	if len(splits) == 0 {
		return nil
	}
	last := splits[0]
	if last != 0 {
		return status.InvalidArgumentf("First split value must be 0, got %d", last)
	}
	for _, s := range splits[1:] {
		if s < last || s > n {
			return status.InvalidArgumentf("Invalid split value %d, must be in [%d, %d]", s, last, n)
		}
		last = s
	}
	if last != n {
		return status.InvalidArgumentf("Last split value must be data size. Expected %d, got %d", n, last)
	}
	return nil
}

// pad returns the padding at either end of a row for n-grams of a width.
func (g *ngrams) pad(width int64) int64 {
	if g.padding < 0 {
		return width - 1
	}
	return min(g.padding, width-1)
}

// row appends the n-grams of a row. The parts of many n-grams may be empty, so that they take time
// and no memory.
func (g *ngrams) row(ctx *kernel.Context, out, row []string) ([]string, error) {
	before := len(out)
	var meter membudget.Meter
	for _, width := range g.widths {
		pad := g.pad(width)
		if pad > math.MaxInt32/2-int64(len(row)) {
			return nil, status.InvalidArgumentf("Pad width could lead to integer overflow, got pad_width = %d", pad)
		}
		n := max(0, int64(len(row))+2*pad-width+1)
		if n > maxParts/width {
			return nil, status.ResourceExhaustedf("%d n-grams of width %d are too many for one row", n, width)
		}
		for i := range n {
			if ctx.Context().Err() != nil {
				return nil, ctx.Context().Err()
			}
			out = membudget.Append(out, g.gram(&meter, row, i, n, width))
		}
	}
	if !g.keepShort || len(out) > before || len(row) == 0 {
		return out, nil
	}
	if g.padding < 0 {
		return nil, status.InvalidArgumentf("Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths are not "+
			"provided, got %d", g.padding)
	}
	return append(out, g.gram(&meter, row, 0, 1, int64(len(row))+2*g.padding)), nil
}

// gram returns n-gram i of the n n-grams of the given width in a row.
func (g *ngrams) gram(meter *membudget.Meter, row []string, i, n, width int64) string {
	pad := g.pad(width)
	left, right := max(0, pad-i), max(0, pad-(n-i-1))
	start := int64(0)
	if left == 0 {
		start = i - pad
	}
	parts := membudget.MakeCap[string](width)
	for range left {
		parts = append(parts, g.left)
	}
	parts = append(parts, row[start:start+max(0, width-left-right)]...)
	for range right {
		parts = append(parts, g.right)
	}
	return meter.Join(parts, g.separator)
}
