package strided

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Masks holds the mask attributes of TensorFlow's strided slices. Bit i applies to entry i of the
// specification.
type Masks struct {
	Begin, End int // the bound is ignored
	Ellipsis   int // stands for all dimensions without an entry of their own
	NewAxis    int // a new dimension of size 1
	Shrink     int // a single index; its dimension is removed
}

// SliceAttrs returns the attribute definitions of operations that write to strided slices.
func SliceAttrs() []string {
	return []string{
		"T: type", "Index: {int32, int64}",
		"begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0", "new_axis_mask: int = 0", "shrink_axis_mask: int = 0",
	}
}

// MasksOf reads the masks from the attributes of an operation.
func MasksOf(a opdef.Attrs) Masks {
	return Masks{
		Begin: a.Int("begin_mask"), End: a.Int("end_mask"), Ellipsis: a.Int("ellipsis_mask"),
		NewAxis: a.Int("new_axis_mask"), Shrink: a.Int("shrink_axis_mask"),
	}
}

// Range is the part of one dimension in a slice: Len indices from Begin on, Stride apart. Len is -1
// if unknown.
type Range struct{ Begin, Len, Stride int }

// Spec is a strided slice of an input of known rank.
type Spec struct {
	Ranges []Range // one for each dimension of the input
	Final  []int64 // dimensions of the result; -1 if unknown
	// Source of each dimension of the result: an input dimension, newAxis or shrunk.
	from []int
}

// Shape returns the shape of the slice of a fully known input.
func (s *Spec) Shape() tensor.Shape { return s.Final }

// View returns the view of the sliced elements in the dimensions of the input.
func (s *Spec) View(shape tensor.Shape) View {
	v := Of(shape)
	for i, r := range s.Ranges {
		v.Slice(i, r.Begin, r.Len, r.Stride)
	}
	return v
}

// Identity reports whether a slice of an input of the given shape is the whole input.
func (s *Spec) Identity(shape tensor.Shape) bool {
	for i, r := range s.Ranges {
		if r.Begin != 0 || r.Stride != 1 || int64(r.Len) != shape[i] {
			return false
		}
	}
	return true
}

// entry is one entry of the dense form of a specification, which has one entry per input dimension.
type entry struct {
	begin, end, stride           int64
	beginMasked, endMasked, sole bool
}

// Values of Spec.from that are not the number of an input dimension.
const (
	newAxis = -1
	shrunk  = -2
)

// ParseSpec parses a specification. begin and end are nil if their values are unknown.
func ParseSpec(in tensor.PartialShape, begin, end, strides *tensor.Tensor, m Masks) (*Spec, error) {
	if err := checkSpec(begin, end, strides, m); err != nil {
		return nil, err
	}
	entries, from, err := dense(in.Rank(), begin, end, strides, m)
	if err != nil {
		return nil, err
	}
	s := &Spec{Ranges: membudget.Make[Range](in.Rank()), from: from}
	for i, e := range entries {
		if s.Ranges[i], err = e.resolve(i, in.Dim(i), begin != nil && end != nil); err != nil {
			return nil, err
		}
	}
	s.Final = membudget.MakeCap[int64](len(from))
	for _, d := range from {
		switch {
		case d >= 0:
			s.Final = append(s.Final, int64(s.Ranges[d].Len))
		case d == newAxis:
			s.Final = append(s.Final, 1)
		}
	}
	return s, nil
}

func checkSpec(begin, end, strides *tensor.Tensor, m Masks) error {
	bad := func(t *tensor.Tensor) bool {
		return t != nil && (t.Rank() != 1 || t.NumElements() != strides.NumElements() || t.NumElements() >= 32)
	}
	switch {
	case !bad(begin) && !bad(end) && strides.Rank() == 1:
	case begin != nil && end != nil:
		return status.InvalidArgumentf("Expected begin, end, and strides to be 1D equal size tensors, "+
			"but got shapes %v, %v, and %v instead.", begin.Shape(), end.Shape(), strides.Shape())
	default:
		return status.InvalidArgumentf("Expected begin, end, and strides to be 1D equal size tensors, "+
			"but got shape %v for strides.", strides.Shape())
	}
	if m.Ellipsis&(m.Ellipsis-1) != 0 {
		return status.InvalidArgumentf("Multiple ellipses in slice spec not allowed")
	}
	return nil
}

// dense expands the ellipsis. It returns one entry per dimension of the input and the source of
// each dimension of the result.
func dense(rank int, begin, end, strides *tensor.Tensor, m Masks) (entries []entry, from []int, err error) {
	n := strides.NumElements()
	added := 0 // new axes after the ellipsis
	for i := range n {
		if m.Ellipsis != 0 && m.Ellipsis < 1<<i && m.NewAxis&(1<<i) != 0 {
			added++
		}
	}
	if m.Ellipsis&(1<<n-1) == 0 {
		m.Ellipsis, n = 1<<n, n+1
	}
	entries, from = membudget.MakeCap[entry](max(rank, 0)), membudget.MakeCap[int](max(rank, 0)+n)
	for i := range n {
		bit := 1 << i
		switch {
		case m.Ellipsis&bit != 0:
			for next := min(rank-(n-i)+1+added, rank); len(entries) < next; {
				from = append(from, len(entries))
				entries = append(entries, entry{stride: 1, beginMasked: true, endMasked: true})
			}
		case m.NewAxis&bit != 0:
			from = append(from, newAxis)
		case len(entries) == rank && rank == 0:
			return nil, nil, status.InvalidArgumentf("Attempting to slice scalar input.")
		case len(entries) == rank:
			return nil, nil, status.InvalidArgumentf("Index out of range using input dim %d; input has only %d dims", rank, rank)
		default:
			e := entry{
				begin: at(begin, i), end: at(end, i), stride: at(strides, i),
				beginMasked: m.Begin&bit != 0, endMasked: m.End&bit != 0, sole: m.Shrink&bit != 0,
			}
			if e.sole {
				from = append(from, shrunk)
			} else {
				from = append(from, len(entries))
			}
			entries = append(entries, e)
		}
	}
	return entries, from, nil
}

func at(t *tensor.Tensor, i int) int64 {
	if t == nil {
		return 0
	}
	var v [1]int64
	intarg.Read(v[:], t, i)
	return v[0]
}

// resolve converts the entry of dimension i, of the given size, to a range. bounds reports whether
// begin and end are known.
func (e *entry) resolve(i int, size int64, bounds bool) (Range, error) {
	if e.stride == 0 {
		return Range{}, status.InvalidArgumentf("strides[%d] must be non-zero", i)
	}
	if size < 0 {
		if e.sole {
			return Range{Len: 1, Stride: 1}, nil
		}
		return Range{Len: -1, Stride: int(e.stride)}, nil
	}
	if e.sole && e.stride <= 0 {
		return Range{}, status.InvalidArgumentf("only stride 1 allowed on non-range indexing.")
	}
	switch {
	case e.sole && !bounds:
		return Range{Len: 1, Stride: 1}, nil
	case e.sole:
		begin := e.begin
		if begin < 0 {
			begin += size
		}
		if begin < 0 || begin >= size {
			return Range{}, status.InvalidArgumentf("slice index %d of dimension %d out of bounds.", begin, i)
		}
		return Range{Begin: int(begin), Len: 1, Stride: 1}, nil
	case !bounds && !(e.beginMasked && e.endMasked):
		return Range{Len: -1, Stride: int(e.stride)}, nil
	}
	return e.span(size), nil
}

// span clips the bounds of an entry to the size of a dimension.
func (e *entry) span(size int64) Range {
	lo, hi := int64(0), size
	if e.stride < 0 {
		lo, hi = -1, size-1
	}
	clip := func(x int64) int64 {
		if x < 0 {
			x += size
		}
		return min(max(x, lo), hi)
	}
	begin, end := clip(e.begin), clip(e.end)
	if e.beginMasked {
		begin = lo
		if e.stride < 0 {
			begin = hi
		}
	}
	if e.endMasked {
		end = hi
		if e.stride < 0 {
			end = lo
		}
	}
	n := end - begin
	if n == 0 || (n < 0) != (e.stride < 0) {
		return Range{Begin: int(max(begin, 0)), Stride: int(e.stride)}
	}
	count := n / e.stride
	if n%e.stride != 0 {
		count++
	}
	return Range{Begin: int(begin), Len: int(count), Stride: int(e.stride)}
}

// Set copies value, broadcast to the slice's shape, to the slice of dst.
func (s *Spec) Set(dst, value *tensor.Tensor) error {
	v := s.View(dst.Shape())
	final := membudget.Make[int](len(s.Final))
	for i, d := range s.Final {
		final[i] = int(d)
	}
	// Nothing to copy for any value.
	if slices.Contains(final, 0) {
		return nil
	}
	if !broadcasts(value.Shape(), final) {
		return status.InvalidArgumentf("Cannot broadcast input shape %v into final shape %v", value.Shape(), s.Shape())
	}
	Copy(dst, s.finalView(v), value, Of(value.Shape()).Broadcast(final))
	return nil
}

func broadcasts(shape tensor.Shape, dims []int) bool {
	lead := len(dims) - len(shape)
	if lead < 0 {
		return false
	}
	for i, d := range shape {
		if d != 1 && int(d) != dims[lead+i] {
			return false
		}
	}
	return true
}

// finalView converts a view in the dimensions of the input to the dimensions of the result.
func (s *Spec) finalView(v View) View {
	out := View{Offset: v.Offset}
	for _, d := range s.from {
		switch {
		case d >= 0:
			out.Dims, out.Strides = append(out.Dims, v.Dims[d]), append(out.Strides, v.Strides[d])
		case d == newAxis:
			out.Dims, out.Strides = append(out.Dims, 1), append(out.Strides, 0)
		}
	}
	return out
}
