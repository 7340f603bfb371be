package checkpoint

import (
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Slice is a part of a tensor: a range in every dimension.
type Slice []Extent

// Extent is a range of indices in one dimension. A negative Length means the whole dimension; Start
// is then 0.
type Extent struct{ Start, Length int64 }

// FullSlice returns the slice that covers any tensor of the given rank.
func FullSlice(rank int) Slice {
	s := make(Slice, rank)
	for i := range s {
		s[i].Length = -1
	}
	return s
}

// IsFull reports whether s covers the whole of every dimension for any shape.
func (s Slice) IsFull() bool {
	for _, e := range s {
		if e.Length >= 0 {
			return false
		}
	}
	return true
}

// String returns TensorFlow's notation: "0,2:-" is the range of length 2 from index 0 in the first
// dimension, and the whole second dimension.
func (s Slice) String() string {
	var b strings.Builder
	for i, e := range s {
		if i > 0 {
			b.WriteByte(':')
		}
		if e.Length < 0 {
			b.WriteByte('-')
			continue
		}
		b.WriteString(strconv.FormatInt(e.Start, 10) + "," + strconv.FormatInt(e.Length, 10))
	}
	return b.String()
}

// ParseSlice parses the notation of [Slice.String]. The error has the code InvalidArgument.
func ParseSlice(text string) (Slice, error) {
	var s Slice
	for item := range strings.SplitSeq(text, ":") {
		if item == "" {
			continue
		}
		e := Extent{0, -1}
		if item != "-" {
			var ok bool
			if e, ok = parseExtent(item); !ok {
				return nil, status.InvalidArgumentf("Expected a pair of numbers or '-' but got '%s': string = %s", item, text)
			}
			if e.Start < 0 || e.Length <= 0 {
				return nil, status.InvalidArgumentf("Expected non-negative start and positive length but got start = %d, "+
					"length = %d: string = %s", e.Start, e.Length, text)
			}
		}
		if len(s) == tensor.MaxRank { // before the list takes memory
			return nil, status.InvalidArgumentf("A slice has more than %d dimensions: string = %s", tensor.MaxRank, text)
		}
		s = append(s, e)
	}
	return s, nil
}

func parseExtent(text string) (Extent, bool) {
	var words [2]string
	n := 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		if n == len(words) {
			return Extent{}, false
		}
		words[n] = word
		n++
	}
	if n != len(words) {
		return Extent{}, false
	}
	start, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return Extent{}, false
	}
	length, err := strconv.ParseInt(words[1], 10, 64)
	return Extent{start, length}, err == nil
}

// ParseShapeAndSlice parses the specification of a slice that savers use: the dimensions of the
// whole tensor and the slice, as in "4 3 0,2:-". It also returns the shape of the slice. The error
// has the code InvalidArgument, or Internal if the slice is not within the tensor.
func ParseShapeAndSlice(spec string) (full tensor.Shape, s Slice, part tensor.Shape, err error) {
	if n := strings.Count(spec, " "); n > tensor.MaxRank { // before the list takes memory
		return nil, nil, nil, status.InvalidArgumentf("Shape has %d dimensions; at most %d are allowed", n, tensor.MaxRank)
	}
	words := strings.Split(spec, " ")
	if len(words) < 2 {
		return nil, nil, nil, status.InvalidArgumentf("Need least two elements in shape_and_slice specification: %s", spec)
	}
	last := len(words) - 1
	if s, err = ParseSlice(words[last]); err != nil {
		return nil, nil, nil, err
	}
	full = make(tensor.Shape, last)
	for i, word := range words[:last] {
		if full[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return nil, nil, nil, status.InvalidArgumentf("Non numerical dimension in shape_and_slice: %s", spec)
		}
	}
	if err = full.Check(); err != nil {
		return nil, nil, nil, err
	}
	part, err = s.Of(full)
	return full, s, part, err
}

// Of returns the shape of the slice of a tensor with the given shape. The error has the code
// Internal if the slice is not within the tensor.
func (s Slice) Of(full tensor.Shape) (tensor.Shape, error) {
	if len(s) != len(full) {
		return nil, status.Internalf("Mismatching ranks: shape = %v, slice = %v", full, s)
	}
	part := make(tensor.Shape, len(full))
	for i, e := range s {
		switch {
		case e.Length < 0:
			part[i] = full[i]
		case e.Start < 0 || e.Start > full[i] || e.Length > full[i]-e.Start:
			return nil, status.Internalf("Extent in dimension %d out of bounds: shape = %v, slice = %v", i, full, s)
		default:
			part[i] = e.Length
		}
	}
	return part, nil
}

// covers reports whether the slice covers the whole tensor of the given shape.
func (s Slice) covers(full tensor.Shape) bool {
	part, err := s.Of(full)
	return err == nil && part.Equal(full)
}

// bounds returns the slice with non-negative lengths, for a tensor of the given shape.
func (s Slice) bounds(full tensor.Shape) Slice {
	out := make(Slice, len(s))
	for i, e := range s {
		if e.Length < 0 {
			e = Extent{0, full[i]}
		}
		out[i] = e
	}
	return out
}

// intersect returns the intersection of two slices with non-negative lengths, and whether it is not
// empty.
func (s Slice) intersect(t Slice) (Slice, bool) {
	if !s.overlaps(t) {
		return nil, false
	}
	out := make(Slice, len(s))
	for i := range s {
		start, end := s[i].common(t[i])
		out[i] = Extent{start, end - start}
	}
	return out, true
}

// overlaps reports whether two slices with non-negative lengths have common elements.
func (s Slice) overlaps(t Slice) bool {
	for i := range s {
		if start, end := s[i].common(t[i]); end <= start {
			return false
		}
	}
	return true
}

// common returns where the common part of two extents starts and ends. The end is not after the
// start if there is none.
func (e Extent) common(f Extent) (start, end int64) {
	return max(e.Start, f.Start), min(e.Start+e.Length, f.Start+f.Length)
}

func (s Slice) toProto() *pb.TensorSliceProto {
	p := &pb.TensorSliceProto{Extent: make([]*pb.TensorSliceProto_Extent, len(s))}
	for i, e := range s {
		p.Extent[i] = &pb.TensorSliceProto_Extent{}
		if e.Length >= 0 {
			p.Extent[i].Start = e.Start
			p.Extent[i].HasLengthHack = &pb.TensorSliceProto_Extent_Length{Length: e.Length}
		}
	}
	return p
}

// sliceFromProto returns a slice of a tensor of the given shape.
func sliceFromProto(p *pb.TensorSliceProto, full tensor.Shape) (Slice, error) {
	s := make(Slice, len(p.GetExtent()))
	for i, e := range p.GetExtent() {
		s[i] = Extent{0, -1}
		if _, ok := e.GetHasLengthHack().(*pb.TensorSliceProto_Extent_Length); ok {
			s[i] = Extent{e.GetStart(), e.GetLength()}
		} else if e.GetStart() != 0 {
			return nil, status.DataLossf("a slice has start = %d but no length", e.GetStart())
		}
		if s[i].Start < 0 || s[i].Length == 0 || s[i].Length < -1 {
			return nil, status.DataLossf("a slice has start = %d, length = %d", s[i].Start, s[i].Length)
		}
	}
	if _, err := s.Of(full); err != nil {
		return nil, status.DataLossf("%w", err)
	}
	return s, nil
}
