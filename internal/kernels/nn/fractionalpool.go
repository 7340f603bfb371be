package nn

import (
	"math"
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const fractionalTypes = "T: {float32, float64, int32, int64}"

func init() {
	const doc = " pooling (Graham, \"Fractional Max-Pooling\", 2014): over windows of varying size with randomly drawn boundaries. Also returns the boundaries."
	outputs := []string{"output: T", "row_pooling_sequence: int64", "col_pooling_sequence: int64"}
	attrs := []string{
		"pooling_ratio: list(float) >= 4", "pseudo_random: bool = false", "overlapping: bool = false",
		"deterministic: bool = false", "seed: int = 0", "seed2: int = 0", fractionalTypes,
	}
	for _, op := range []struct {
		name, doc string
		kernels   kernel.Table
	}{
		{"FractionalMaxPool", "Performs fractional max" + doc, kernel.Table{
			tensor.Float32: newFractional("max", ordered32.maxRegion), tensor.Float64: newFractional("max", ordered64.maxRegion),
			tensor.Int32: newFractional("max", orderedInt32.maxRegion), tensor.Int64: newFractional("max", orderedInt64.maxRegion),
		}},
		{"FractionalAvgPool", "Performs fractional average" + doc, kernel.Table{
			tensor.Float32: newFractional("average", meanRegion[float32]), tensor.Float64: newFractional("average", meanRegion[float64]),
			tensor.Int32: newFractional("average", meanRegion[int32]), tensor.Int64: newFractional("average", meanRegion[int64]),
		}},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: op.name, Doc: op.doc, In: []string{"value: T"}, Out: outputs, Attrs: attrs, Shape: fractionalShape,
			},
			Kernels: kernel.ByType("T", op.kernels),
		})
	}
}

// Orders of the element types that fractional pooling supports.
var (
	ordered32    = floatOrder[float32](-math.MaxFloat32)
	ordered64    = floatOrder[float64](-math.MaxFloat64)
	orderedInt32 = intOrder[int32](math.MinInt32)
	orderedInt64 = intOrder[int64](math.MinInt64)
)

func fractionalShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRank(c.In[0], 4)
	if err != nil {
		return err
	}
	ratios := c.Attrs.Floats("pooling_ratio")
	if len(ratios) != 4 {
		return status.InvalidArgumentf("pooling_ratio field must specify 4 dimensions")
	}
	out := make([]int64, 4)
	for i, r := range ratios {
		out[i] = in.Dim(i)
		if out[i] < 0 {
			continue
		}
		if out[i] = int64(math.Floor(float64(float32(out[i]) / r))); out[i] < 0 {
			return status.InvalidArgumentf("Size computed for dim %d is negative: %d", i, out[i])
		}
	}
	if err := checkRatios(ratios); err != nil {
		return err
	}
	c.Out[0] = tensor.MakePartial(out...)
	c.Out[1], c.Out[2] = tensor.MakePartial(out[1]), tensor.MakePartial(out[2])
	return nil
}

func checkRatios(ratios []float32) error {
	for _, r := range ratios {
		if r < 1 {
			return status.InvalidArgumentf("pooling_ratio cannot be smaller than 1, got: %s", tensor.FormatFloat(float64(r), 32))
		}
	}
	return nil
}

// fractional holds the attributes of a fractional pooling. reduce computes one output pixel from a
// region.
type fractional[T tensor.Elem] struct {
	ratios                    []float32
	pseudoRandom, overlapping bool
	seed, seed2               int
	reduce                    regionFunc[T]
}

// regionFunc sets row, the channels of an output pixel, from a region of an image.
type regionFunc[T tensor.Elem] func(g *grid, row, x []T, image int, r *region)

func newFractional[T tensor.Elem](what string, reduce regionFunc[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		a := c.Attrs
		f := &fractional[T]{
			ratios: a.Floats("pooling_ratio"), pseudoRandom: a.Bool("pseudo_random"), overlapping: a.Bool("overlapping"),
			seed: a.Int("seed"), seed2: a.Int("seed2"), reduce: reduce,
		}
		if len(f.ratios) != 4 {
			return nil, status.InvalidArgumentf("pooling_ratio field must specify 4 dimensions")
		}
		if err := checkRatios(f.ratios); err != nil {
			return nil, err
		}
		if f.ratios[0] != 1 || f.ratios[3] != 1 {
			return nil, status.Unimplementedf("Fractional %s pooling is not yet supported on the batch nor channel dimension.", what)
		}
		switch {
		case a.Bool("deterministic") && f.seed == 0 && f.seed2 == 0:
			f.seed, f.seed2 = int(rand.Uint64()), int(rand.Uint64())
		case !a.Bool("deterministic") && (f.seed != 0 || f.seed2 != 0):
			return nil, status.InvalidArgumentf("Both seed and seed2 should be 0 if deterministic is false.")
		}
		return f, nil
	}
}

func (f *fractional[T]) Compute(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.Rank() != 4 {
		return status.InvalidArgumentf("tensor_in must be 4-dimensional")
	}
	shape := make(tensor.Shape, 4)
	for i, r := range f.ratios {
		n := in.Dim(i)
		if float32(n) < r {
			return status.InvalidArgumentf("Pooling ratio is higher than input dimension size for dimension %d. Input dim size: %d pooling ratio: %s",
				i, n, tensor.FormatFloat(float64(r), 32))
		}
		shape[i] = int64(float32(n) / r)
	}
	source := philox.NewSource(f.seed, f.seed2)
	rows := f.cuts(in.Dim(1), int(shape[1]), source)
	cols := f.cuts(in.Dim(2), int(shape[2]), source)
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	for i, cuts := range [][]int64{rows, cols} {
		t, err := ctx.Allocate(i+1, tensor.Shape{int64(len(cuts))})
		if err != nil {
			return err
		}
		intarg.Set(t, cuts)
	}
	g := cutGrid(in.Shape(), rows, cols)
	x, z := tensor.Values[T](in), tensor.Values[T](out)
	cutRegions(&g, rows, cols, f.overlapping, func(o, image int, r *region) {
		f.reduce(&g, z[o*g.channels:(o+1)*g.channels], x, image, r)
	})
	return nil
}

// cuts returns out+1 boundaries of windows, from 0 to in.
func (f *fractional[T]) cuts(in, out int, source *philox.Source) []int64 {
	sizes := f.randomSizes(in, out, source)
	cuts := membudget.Make[int64](out + 1)
	for i, n := range sizes {
		cuts[i+1] = cuts[i] + n
	}
	return cuts
}

// randomSizes returns window sizes in random order, each in/out or one more.
func (f *fractional[T]) randomSizes(in, out int, source *philox.Source) []int64 {
	if f.pseudoRandom {
		return pseudoRandomSizes(in, out, philox.NewWords(source.TakeWords(2)))
	}
	sizes := membudget.Make[int64](out)
	for i := range sizes {
		sizes[i] = int64(in / out)
		if i < in%out {
			sizes[i]++
		}
	}
	words := philox.NewWords(source.TakeWords(out))
	for i := range out - 1 {
		j := i + int(words.Next()%uint32(out-i))
		sizes[i], sizes[j] = sizes[j], sizes[i]
	}
	return sizes
}

// pseudoRandomSizes returns window sizes that depend on a single random number u: boundary i is at
// ceil(alpha*(i+u)).
func pseudoRandomSizes(in, out int, words *philox.Words) []int64 {
	alpha, k := float64(in)/float64(out), in/out
	limit := min(float64(k+2)/alpha-1, float64(in+1-k)/alpha-float64(out-1))
	u := words.Unit64() * limit
	sizes, last := membudget.Make[int64](out), int64(1)
	for i := range sizes {
		next := int64(in + 1)
		if i < out-1 {
			next = int64(math.Ceil(alpha * (float64(i+1) + u)))
		}
		sizes[i], last = next-last, next
	}
	return sizes
}

// cutGrid returns the grid for an input and window boundaries.
func cutGrid(in tensor.Shape, rows, cols []int64) grid {
	return grid{
		batch: int(in[0]), channels: int(in[3]),
		spans: [3]span{one, {in: int(in[1]), out: len(rows) - 1}, {in: int(in[2]), out: len(cols) - 1}},
	}
}

// cutRegions calls visit with each output and its window. Overlapping windows share the elements at
// their common boundary.
func cutRegions(g *grid, rows, cols []int64, overlapping bool, visit func(out, image int, r *region)) {
	bounds := func(cuts []int64, i, size int) [2]int {
		end := int(cuts[i+1])
		if overlapping {
			end++
		}
		return [2]int{int(cuts[i]), min(end, size)}
	}
	r := region{plane: [2]int{0, 1}}
	for image := range g.batch {
		for y := range len(rows) - 1 {
			r.row = bounds(rows, y, g.spans[1].in)
			for x := range len(cols) - 1 {
				r.col = bounds(cols, x, g.spans[2].in)
				visit((image*g.spans[1].out+y)*g.spans[2].out+x, image, &r)
			}
		}
	}
}

func (o order[T]) maxRegion(g *grid, row, x []T, image int, r *region) {
	for i := range row {
		row[i] = o.lowest
	}
	g.pixels(image, r, func(in int) { o.max(row, x[in*g.channels:(in+1)*g.channels]) })
}

// number is the constraint of the types that fractional pooling supports.
type number interface {
	float32 | float64 | int32 | int64
}

func meanRegion[T number](g *grid, row, x []T, image int, r *region) {
	clear(row)
	g.pixels(image, r, func(in int) {
		for c, v := range x[in*g.channels : (in+1)*g.channels] {
			row[c] += v
		}
	})
	n := T(r.count())
	for c := range row {
		row[c] /= n
	}
}
