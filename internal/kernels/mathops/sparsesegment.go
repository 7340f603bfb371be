package mathops

import (
	"context"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// segmentScale is what the sum of a segment is divided by.
type segmentScale int

const (
	scaleSum   segmentScale = iota // 1
	scaleMean                      // the number of rows
	scaleSqrtN                     // the square root of the number of rows
)

// factor returns the factor of a segment with n rows.
func (s segmentScale) factor(n int) float64 {
	switch s {
	case scaleMean:
		return 1 / float64(max(n, 1))
	case scaleSqrtN:
		return 1 / math.Sqrt(float64(max(n, 1)))
	case scaleSum:
	}
	return 1
}

func init() {
	for _, s := range []struct {
		name, doc, types string
		scale            segmentScale
	}{
		{"SparseSegmentSum", "Sums the rows of data selected by indices in each segment of sorted ids", "realnumbertype", scaleSum},
		{"SparseSegmentMean", "Computes the mean of the rows of data selected by indices in each segment of sorted ids", floats, scaleMean},
		{"SparseSegmentSqrtN", "Sums the rows of data selected by indices in each segment of sorted ids and divides by the square root of their number",
			floats, scaleSqrtN},
	} {
		registerSegments(s.name, s.doc, s.types, s.scale)
		registerSegmentGrads(s.name, s.scale)
	}
}

func registerSegments(name, doc, types string, scale segmentScale) {
	in := []string{"data: T", "indices: Tidx", "segment_ids: Tsegmentids"}
	attrs := []string{"T: " + types, "Tidx: {int32, int64} = int32"}
	last := []string{"Tsegmentids: {int32, int64} = int32", "sparse_gradient: bool = false"}
	kernels := byT(allowed(types, sparseSegmentTable(scale)))
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc + ".", In: in, Out: []string{"output: T"}, Attrs: slices.Concat(attrs, last),
			Shape: func(c *opdef.ShapeContext) error { return sparseSegmentShape(c, shapefn.Unknown) },
		},
		Kernels: kernels,
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name + "WithNumSegments", Doc: doc + ". There are num_segments segments.",
			In: append(slices.Clone(in), "num_segments: Tnumsegments"), Out: []string{"output: T"},
			Attrs: slices.Concat(attrs, []string{"Tnumsegments: {int32, int64} = int32"}, last),
			Shape: func(c *opdef.ShapeContext) error {
				n, err := rowCount(c, "num_segments")
				if err != nil {
					return err
				}
				return sparseSegmentShape(c, n)
			},
		},
		Kernels: kernels,
	})
}

// rowCount returns the number of rows in input 3, if it is known.
func rowCount(c *opdef.ShapeContext, name string) (int64, error) {
	if err := shapefn.CheckRanks(c, 3, 0); err != nil {
		return shapefn.Unknown, err
	}
	n, known := c.ScalarValue(3)
	if !known {
		return shapefn.Unknown, nil
	}
	if n < 0 {
		return shapefn.Unknown, status.InvalidArgumentf("Cannot specify a negative value for %s", name)
	}
	return n, nil
}

func sparseSegmentShape(c *opdef.ShapeContext, n int64) error {
	data, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	if err := shapefn.CheckRanks(c, 1, 1, 1); err != nil {
		return err
	}
	if _, err := opdef.MergeShapes(c.In[1], c.In[2]); err != nil {
		return err
	}
	c.Out[0] = shapefn.Concat(shapefn.Of(n), shapefn.From(data, 1))
	return nil
}

func sparseSegmentTable(scale segmentScale) kernel.Table {
	t := kernel.Table{
		tensor.Float16:  kernel.Stateless(shortSegments[tensor.Float16Elem](scale)),
		tensor.BFloat16: kernel.Stateless(shortSegments[tensor.BFloat16Elem](scale)),
	}
	segmentsOf[float32](t, scale)
	segmentsOf[float64](t, scale)
	segmentsOf[int8](t, scale)
	segmentsOf[int16](t, scale)
	segmentsOf[int32](t, scale)
	segmentsOf[int64](t, scale)
	segmentsOf[uint8](t, scale)
	segmentsOf[uint16](t, scale)
	segmentsOf[uint32](t, scale)
	segmentsOf[uint64](t, scale)
	return t
}

func segmentsOf[T elementwise.Real](t kernel.Table, scale segmentScale) {
	t[tensor.DTypeOf[T]()] = kernel.Stateless(func(ctx *kernel.Context) error {
		if d := ctx.GPU(); d != nil {
			return sparseSegmentsOnDevice(ctx, d, scale)
		}
		s, out, err := readSegments(ctx)
		defer s.release()
		if err != nil {
			return err
		}
		z := tensor.Values[T](out)
		if err := addRows(ctx.Context(), z, tensor.Values[T](ctx.Input(0)), s); err != nil {
			return err
		}
		from, to, factor := 0, 0, 1.0 // range of segments with the same pending factor
		s.each(func(segment int, listed []int64) {
			if f := scale.factor(len(listed)); f != factor || segment != to {
				scaleBy(z[from*s.width:to*s.width], factor)
				from, factor = segment, f
			}
			to = segment + 1
		})
		scaleBy(z[from*s.width:to*s.width], factor)
		return nil
	})
}

// addRows adds the listed rows of x to the segments z, until ctx ends. The indices of a large row
// may be many.
func addRows[T tensor.Elem](ctx context.Context, z, x []T, s *sparseSegments) error {
	const piece = 1 << 22 // elements between two looks at ctx
	to, from, step := s.ids.Rows, s.list.Rows, max(1, piece/max(1, s.width))
	for ; len(to) > step; to, from = to[step:], from[step:] {
		gatherscatter.Add(z, x, to[:step], from[:step], s.width)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	gatherscatter.Add(z, x, to, from, s.width)
	return nil
}

// scaleBy multiplies by f and rounds once.
func scaleBy[T elementwise.Real](x []T, f float64) {
	if f == 1 {
		return
	}
	switch y := any(x).(type) {
	case []float32:
		if float64(float32(f)) == f {
			simd.MulScalar(y, y, float32(f))
			return
		}
	case []float64:
		simd.MulScalar(y, y, f)
		return
	}
	for i, v := range x {
		x[i] = T(float64(v) * f)
	}
}

// shortSegments sums in float32 and rounds once.
func shortSegments[H elementwise.Short](scale segmentScale) kernel.Func {
	return func(ctx *kernel.Context) error {
		if d := ctx.GPU(); d != nil {
			return sparseSegmentsOnDevice(ctx, d, scale)
		}
		s, out, err := readSegments(ctx)
		defer s.release()
		if err != nil {
			return err
		}
		z, x := tensor.Values[H](out), tensor.Values[H](ctx.Input(0))
		sum, row32 := membudget.Make[float32](s.width), membudget.Make[float32](s.width)
		p := stepctx.Progress{Context: ctx.Context(), Each: 16}
		s.each(func(segment int, listed []int64) {
			clear(sum)
			for _, row := range listed {
				if err == nil {
					err = p.Pass(s.width)
				}
				if err != nil {
					return
				}
				elementwise.Widen(row32, x[int(row)*s.width:])
				elementwise.Sum(sum, sum, row32)
			}
			f := float32(scale.factor(len(listed)))
			for i := range sum {
				sum[i] *= f
			}
			elementwise.Narrow(z[segment*s.width:(segment+1)*s.width], sum)
		})
		return err
	}
}

// sparseSegments holds the row numbers of a sparse segment operation and the segment of each.
type sparseSegments struct {
	list, ids gatherscatter.List
	limit     int // number of rows in data
	count     int // number of segments
	width     int
}

// release frees the lists. s may be nil.
func (s *sparseSegments) release() {
	if s != nil {
		s.list.Release()
		s.ids.Release()
	}
}

// readSegments checks the inputs of a sparse segment operation and allocates its zeroed output. The
// caller must release the result, also after an error.
func readSegments(ctx *kernel.Context) (*sparseSegments, *tensor.Tensor, error) {
	data, indices, ids := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	if err := checkLists(indices, ids); err != nil {
		return nil, nil, err
	}
	if data.Rank() < 1 {
		return nil, nil, status.InvalidArgumentf("Shape must be at least rank 1")
	}
	s := &sparseSegments{limit: data.Dim(0), width: int(data.Shape()[1:].NumElements())}
	var err error
	if s.list, err = gatherscatter.ReadUnchecked(indices); err != nil {
		return s, nil, err
	}
	if s.ids, err = gatherscatter.ReadUnchecked(ids); err != nil {
		return s, nil, err
	}
	count, err := segmentCount(ctx, indices.DType(), s.ids.Rows)
	if err != nil {
		return s, nil, err
	}
	s.count = int(count)
	out, err := ctx.AllocateZeros(0, append(tensor.Shape{count}, data.Shape()[1:]...))
	if err != nil {
		return s, nil, err
	}
	return s, out, s.check()
}

// segmentCount returns the number of segments: input 3, if there is one, or else what the last id
// says. index is the type of the indices.
func segmentCount(ctx *kernel.Context, index tensor.DType, ids []int64) (int64, error) {
	count := int64(0)
	if n := len(ids); n > 0 {
		if last := ids[n-1]; index == tensor.Int32 && last >= math.MaxInt32 {
			return 0, status.InvalidArgumentf("Last segment id must be < kintmax, got %d limit %d", last, math.MaxInt32)
		}
		count = ids[n-1] + 1
	}
	if ctx.NumInputs() > 3 {
		given, err := givenSegments(ctx)
		if err != nil {
			return 0, err
		}
		if given < count {
			return 0, status.InvalidArgumentf("segment ids must be < num_segments")
		}
		count = given
	}
	if count < 0 || count == 0 && len(ids) > 0 {
		return 0, status.InvalidArgumentf("segment ids must be >= 0")
	}
	return count, nil
}

// givenSegments returns input 3, the number of segments.
func givenSegments(ctx *kernel.Context) (int64, error) {
	n := ctx.Input(3)
	if n.Rank() != 0 {
		return 0, status.InvalidArgumentf("num_segments should be a scalar, not shape %v", n.Shape())
	}
	given := intarg.Scalar(n)
	if given < 0 {
		return 0, status.InvalidArgumentf("segment ids must be >= 0")
	}
	return given, nil
}

func checkLists(indices, ids *tensor.Tensor) error {
	switch {
	case indices.Rank() != 1:
		return status.InvalidArgumentf("indices should be a vector.")
	case ids.Rank() != 1:
		return status.InvalidArgumentf("segment_ids should be a vector.")
	case indices.NumElements() != ids.NumElements():
		return status.InvalidArgumentf("segment_ids and indices should have same size.")
	}
	return nil
}

// check checks the segment ids and, unless they are in the memory of a device, the row numbers,
// segment by segment.
func (s *sparseSegments) check() error {
	ids := s.ids.Rows
	for lo := 0; lo < len(ids); {
		id, hi := ids[lo], s.end(lo)
		if hi < len(ids) && ids[hi] < id {
			return status.InvalidArgumentf("segment ids are not increasing")
		}
		if id < 0 || id >= int64(s.count) {
			return status.InvalidArgumentf("Segment id %d out of range [0, %d), possibly because 'segment_ids' input is not sorted.", id, s.count)
		}
		for i, row := range s.list.Rows[min(lo, len(s.list.Rows)):min(hi, len(s.list.Rows))] {
			if row < 0 || row >= int64(s.limit) {
				return status.InvalidArgumentf("Bad: indices[%d] == %d out of range [0, %d)", lo+i, row, s.limit)
			}
		}
		lo = hi
	}
	return nil
}

// end returns the end of the segment that starts at lo.
func (s *sparseSegments) end(lo int) int {
	ids := s.ids.Rows
	hi := lo + 1
	for hi < len(ids) && ids[hi] == ids[lo] {
		hi++
	}
	return hi
}

// each calls f for each non-empty segment.
func (s *sparseSegments) each(f func(segment int, listed []int64)) {
	for lo := 0; lo < len(s.ids.Rows); {
		hi := s.end(lo)
		f(int(s.ids.Rows[lo]), s.list.Rows[lo:hi])
		lo = hi
	}
}
