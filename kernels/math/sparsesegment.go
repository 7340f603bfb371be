package math

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/internal/ints"
	"github.com/weft-ml/weft/internal/shapes"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// segmentScale gives the factor of a segment by its number of rows.
type segmentScale func(n int) float64

func scaleSum(int) float64     { return 1 }
func scaleMean(n int) float64  { return 1 / float64(max(n, 1)) }
func scaleSqrtN(n int) float64 { return 1 / math.Sqrt(float64(max(n, 1))) }

func init() {
	for _, s := range []struct {
		name, doc, types string
		scale            segmentScale
	}{
		{"SparseSegmentSum", "Adds up the rows of data that indices list, by segments of sorted ids", "realnumbertype", scaleSum},
		{"SparseSegmentMean", "The mean of the rows of data that indices list, by segments of sorted ids", floats, scaleMean},
		{"SparseSegmentSqrtN", "Adds up the rows of data that indices list, by segments of sorted ids, and divides by the root of their number",
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
			Shape: func(c *opdef.ShapeContext) error { return sparseSegmentShape(c, shapes.Unknown) },
		},
		Kernels: kernels,
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name + "WithNumSegments", Doc: doc + ", of which there are num_segments.",
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

// rowCount returns the number of rows that input 3 gives, if it is known.
func rowCount(c *opdef.ShapeContext, name string) (int64, error) {
	if err := shapes.CheckRanks(c, 3, 0); err != nil {
		return shapes.Unknown, err
	}
	n, known := c.ScalarValue(3)
	if !known {
		return shapes.Unknown, nil
	}
	if n < 0 {
		return shapes.Unknown, status.InvalidArgumentf("Cannot specify a negative value for %s", name)
	}
	return n, nil
}

func sparseSegmentShape(c *opdef.ShapeContext, n int64) error {
	data, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	if err := shapes.CheckRanks(c, 1, 1, 1); err != nil {
		return err
	}
	if _, err := opdef.MergeShapes(c.In[1], c.In[2]); err != nil {
		return err
	}
	c.Out[0] = shapes.Concat(shapes.Of(n), shapes.From(data, 1))
	return nil
}

func sparseSegmentTable(scale segmentScale) kernel.Table {
	t := kernel.Table{
		tensor.Float16:  kernel.Stateless(shortSegments[tensor.Half](scale)),
		tensor.BFloat16: kernel.Stateless(shortSegments[tensor.BFloat](scale)),
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
	add := elementwise.Arithmetic[T](elementwise.Add)
	t[tensor.DTypeOf[T]()] = kernel.Stateless(func(ctx *kernel.Context) error {
		s, out, err := readSegments(ctx)
		if err != nil {
			return err
		}
		z, x := tensor.Values[T](out), tensor.Values[T](ctx.Input(0))
		return s.each(func(segment int, rows []int64) {
			sum := z[segment*s.width : (segment+1)*s.width]
			for _, row := range rows {
				add(sum, sum, x[int(row)*s.width:])
			}
			if f := scale(len(rows)); f != 1 {
				for i, v := range sum {
					sum[i] = T(float64(v) * f)
				}
			}
		})
	})
}

// shortSegments adds up in float32 and rounds once.
func shortSegments[H elementwise.Short](scale segmentScale) kernel.Func {
	return func(ctx *kernel.Context) error {
		s, out, err := readSegments(ctx)
		if err != nil {
			return err
		}
		z, x := tensor.Values[H](out), tensor.Values[H](ctx.Input(0))
		sum, row32 := make([]float32, s.width), make([]float32, s.width)
		return s.each(func(segment int, rows []int64) {
			clear(sum)
			for _, row := range rows {
				elementwise.Widen(row32, x[int(row)*s.width:])
				elementwise.Sum(sum, sum, row32)
			}
			f := float32(scale(len(rows)))
			for i := range sum {
				sum[i] *= f
			}
			elementwise.Narrow(z[segment*s.width:(segment+1)*s.width], sum)
		})
	}
}

// sparseSegments are the listed rows of a sparse segment operation, with the segment of each.
type sparseSegments struct {
	rows, ids []int64
	limit     int // rows of the data
	count     int // segments
	width     int
}

// readSegments checks the inputs of a sparse segment operation and makes its output, of zeros.
func readSegments(ctx *kernel.Context) (*sparseSegments, *tensor.Tensor, error) {
	data, indices, ids := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	given := int64(-1)
	if ctx.NumInputs() > 3 {
		n := ctx.Input(3)
		if n.Rank() != 0 {
			return nil, nil, status.InvalidArgumentf("num_segments should be a scalar, not shape %v", n.Shape())
		}
		if given = ints.Scalar(n); given < 0 {
			return nil, nil, status.InvalidArgumentf("segment ids must be >= 0")
		}
	}
	if err := checkLists(indices, ids); err != nil {
		return nil, nil, err
	}
	if data.Rank() < 1 {
		return nil, nil, status.InvalidArgumentf("Shape must be at least rank 1")
	}
	s := &sparseSegments{rows: ints.Values(indices), ids: ints.Values(ids), limit: data.Dim(0), width: int(data.Shape()[1:].NumElements())}
	count := int64(0)
	if n := len(s.ids); n > 0 {
		count = s.ids[n-1] + 1
	}
	if given >= 0 {
		if given < count {
			return nil, nil, status.InvalidArgumentf("segment ids must be < num_segments")
		}
		count = given
	}
	if count < 0 || count == 0 && len(s.ids) > 0 {
		return nil, nil, status.InvalidArgumentf("segment ids must be >= 0")
	}
	s.count = int(count)
	out, err := ctx.AllocateZeros(0, append(tensor.Shape{count}, data.Shape()[1:]...))
	return s, out, err
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

// each calls f for every segment that has rows, after checking them.
func (s *sparseSegments) each(f func(segment int, rows []int64)) error {
	for lo := 0; lo < len(s.ids); {
		id, hi := s.ids[lo], lo+1
		for hi < len(s.ids) && s.ids[hi] == id {
			hi++
		}
		if hi < len(s.ids) && s.ids[hi] < id {
			return status.InvalidArgumentf("segment ids are not increasing")
		}
		if id < 0 || id >= int64(s.count) {
			return status.InvalidArgumentf("Segment id %d out of range [0, %d), possibly because 'segment_ids' input is not sorted.", id, s.count)
		}
		for i, row := range s.rows[lo:hi] {
			if row < 0 || row >= int64(s.limit) {
				return status.InvalidArgumentf("Bad: indices[%d] == %d out of range [0, %d)", lo+i, row, s.limit)
			}
		}
		f(int(id), s.rows[lo:hi])
		lo = hi
	}
	return nil
}
