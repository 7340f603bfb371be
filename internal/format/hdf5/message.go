package hdf5

import (
	"slices"

	"github.com/weft-ml/weft/status"
)

// maxRank is the limit of the format.
const maxRank = 32

// dataspace is the shape of a dataset or of an attribute.
type dataspace struct {
	dims []int64
	null bool // has no elements
}

func (p *parser) dataspace() (*dataspace, error) {
	version, rank, flags := p.uint(1), p.uint(1), p.uint(1)
	space := &dataspace{dims: []int64{}}
	switch version {
	case 1:
		p.bytes(5)
	case 2:
		space.null = p.uint(1) == 2
	default:
		return nil, status.Unimplementedf("version %d of a dataspace", version)
	}
	if rank > maxRank {
		return nil, status.DataLossf("a dataspace of rank %d", rank)
	}
	for range rank {
		d := p.uint(8)
		if d >= 1<<63 {
			return nil, status.DataLossf("a dimension of %d elements", d)
		}
		space.dims = append(space.dims, int64(d))
	}
	if flags&1 != 0 {
		p.bytes(8 * int(rank)) // maximum sizes
	}
	return space, p.err
}

// elements returns the number of elements, and false if it is larger than limit.
func (s *dataspace) elements(limit uint64) (uint64, bool) {
	if s.null {
		return 0, true
	}
	n := uint64(1)
	if slices.Contains(s.dims, 0) {
		return 0, true
	}
	for _, d := range s.dims {
		if n > limit/uint64(d) {
			return 0, false
		}
		n *= uint64(d)
	}
	return n, n <= limit
}

// Class is the class of a datatype.
type Class uint8

// The classes that can be read.
const (
	Fixed  Class = 0 // integers
	Float  Class = 1
	String Class = 3 // of a fixed size
	Opaque Class = 5 // bytes, for instance bfloat16
	Vlen   Class = 9 // of any size; only strings can be read
)

// datatype is the type of an element.
type datatype struct {
	class      Class
	size       uint64 // bytes
	bigEndian  bool
	vlenString bool
}

func (p *parser) datatype() (*datatype, error) {
	first, bits, size := p.uint(1), p.uint(3), p.uint(4)
	t := &datatype{class: Class(first & 15), size: size}
	if p.err != nil {
		return nil, p.err
	}
	switch t.class {
	case Fixed, Float:
		t.bigEndian = bits&1 != 0
	case Vlen:
		t.vlenString = bits&15 == 1
	case String, Opaque:
	default: // such as references; an attribute may have one
	}
	if t.size == 0 {
		return nil, status.DataLossf("a datatype of 0 bytes")
	}
	return t, nil
}

// layout is where the elements of a dataset are.
type layout struct {
	inline  []byte // if they are in the object header
	at      span
	chunked bool
}

func (p *parser) layout() (*layout, error) {
	version := p.uint(1)
	if p.err == nil && version != 3 && version != 4 {
		return nil, status.Unimplementedf("version %d of a data layout", version)
	}
	l := &layout{}
	switch class := p.uint(1); class {
	case 0:
		l.inline = p.bytes(int(p.uint(2)))
	case 1:
		l.at = span{p.uint(8), p.uint(8)}
	default:
		l.chunked = true
	}
	return l, p.err
}

// attribute is a value that belongs to an object.
type attribute struct {
	name  string
	kind  datatype
	space dataspace
	data  []byte
}

func (p *parser) attribute() (attribute, error) {
	version := p.uint(1)
	if p.err == nil && (version < 1 || version > 3) {
		return attribute{}, status.Unimplementedf("version %d of an attribute", version)
	}
	flags := p.uint(1) // reserved in version 1
	sizes := [3]int{int(p.uint(2)), int(p.uint(2)), int(p.uint(2))}
	if version == 3 {
		p.bytes(1) // character set of the name
	}
	if version > 1 && flags != 0 {
		return attribute{}, status.Unimplementedf("shared messages of attributes")
	}
	var parts [3][]byte // name, datatype, dataspace
	for i, n := range sizes {
		if version == 1 { // padded to 8 bytes
			n = (n + 7) &^ 7
		}
		parts[i] = p.bytes(n)
	}
	if p.err != nil {
		return attribute{}, p.err
	}
	a := attribute{name: text(parts[0]), data: p.b}
	kind, err := (&parser{b: parts[1]}).datatype()
	if err != nil {
		return attribute{}, err
	}
	space, err := (&parser{b: parts[2]}).dataspace()
	if err != nil {
		return attribute{}, err
	}
	a.kind, a.space = *kind, *space
	return a, nil
}
