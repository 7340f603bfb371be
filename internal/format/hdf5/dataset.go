package hdf5

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Dataset is an array in a file.
type Dataset struct {
	file   *File
	path   string
	shape  []int64
	empty  bool // has no elements, whatever the shape
	kind   datatype
	layout layout
}

// Shape returns the sizes of the dimensions. The caller must not modify them.
func (d *Dataset) Shape() []int64 { return d.shape }

// Type returns the class and the size, in bytes, of the elements.
func (d *Dataset) Type() (c Class, size int) { return d.kind.class, int(d.kind.size) }

// Bytes returns the elements as they are in the file.
func (d *Dataset) Bytes() ([]byte, error) {
	if d.layout.chunked {
		return nil, status.Unimplementedf("%s: the data is in chunks", d.path)
	}
	n, ok := (&dataspace{d.shape, d.empty}).elements(d.file.size / d.kind.size)
	if !ok {
		return nil, status.DataLossf("%s: elements of shape %v are more than the file has", d.path, d.shape)
	}
	n *= d.kind.size
	switch {
	case n == 0:
		return nil, nil
	case d.layout.inline != nil:
		if uint64(len(d.layout.inline)) < n {
			return nil, status.DataLossf("%s: %d bytes of data, want %d", d.path, len(d.layout.inline), n)
		}
		return slices.Clone(d.layout.inline[:n]), nil
	case d.layout.at.address == undefined: // never written
		return make([]byte, n), nil
	case d.layout.at.size < n:
		return nil, status.DataLossf("%s: %d bytes of data, want %d", d.path, d.layout.at.size, n)
	}
	return d.file.read(d.layout.at.address, n)
}

// Floats returns the elements of a dataset of floating-point numbers of 2, 4 or 8 bytes.
func (d *Dataset) Floats() ([]float32, error) {
	if d.kind.class != Float || d.kind.size != 2 && d.kind.size != 4 && d.kind.size != 8 {
		return nil, status.Unimplementedf("%s: elements of class %d with %d bytes are not floating-point numbers", d.path, d.kind.class, d.kind.size)
	}
	b, err := d.Bytes()
	if err != nil {
		return nil, err
	}
	var order binary.ByteOrder = binary.LittleEndian
	if d.kind.bigEndian {
		order = binary.BigEndian
	}
	size := int(d.kind.size)
	out := make([]float32, len(b)/size)
	for i := range out {
		switch at := b[i*size:]; size {
		case 2:
			out[i] = tensor.Float16Elem(order.Uint16(at)).Float32()
		case 4:
			out[i] = math.Float32frombits(order.Uint32(at))
		default:
			out[i] = float32(math.Float64frombits(order.Uint64(at)))
		}
	}
	return out, nil
}

// Strings returns the value of an attribute of strings, and false if there is none of the name. A
// scalar is one string.
func (o *Object) Strings(name string) (values []string, ok bool, err error) {
	i := slices.IndexFunc(o.attributes, func(a attribute) bool { return a.name == name })
	if i < 0 {
		return nil, false, nil
	}
	a := &o.attributes[i]
	n, fits := a.space.elements(uint64(len(a.data)) / a.kind.size)
	if !fits {
		return nil, true, status.DataLossf("%s: attribute %q has %d bytes for elements of shape %v", o.path, name, len(a.data), a.space.dims)
	}
	values = make([]string, n)
	left := o.file.size // bound of the memory for references that all mean one string
	for i := range values {
		b := a.data[uint64(i)*a.kind.size:][:a.kind.size]
		switch {
		case a.kind.class == String:
			values[i] = text(b)
		case a.kind.class == Vlen && a.kind.vlenString && a.kind.size == 16:
			if values[i], err = o.file.heapString(b); err != nil {
				return nil, true, status.Errorf(status.CodeOf(err), "%s: attribute %q: %w", o.path, name, err)
			}
			if uint64(len(values[i])) > left {
				return nil, true, status.DataLossf("%s: attribute %q has more text than the file", o.path, name)
			}
			left -= uint64(len(values[i]))
		default:
			if a.space.null || len(values) == 0 {
				return nil, true, nil
			}
			return nil, true, status.Unimplementedf("%s: attribute %q has elements of class %d, want strings", o.path, name, a.kind.class)
		}
	}
	return values, true, nil
}

// heapString returns the string in the global heap that a reference of 16 bytes means.
func (f *File) heapString(reference []byte) (string, error) {
	length, address := uint64(binary.LittleEndian.Uint32(reference)), binary.LittleEndian.Uint64(reference[4:])
	index := binary.LittleEndian.Uint32(reference[12:])
	if length == 0 {
		return "", nil
	}
	head, err := f.read(address, 16)
	if err != nil {
		return "", err
	}
	size := binary.LittleEndian.Uint64(head[8:])
	if string(head[:4]) != "GCOL" || size < 16 {
		return "", status.DataLossf("no global heap at byte %d", address)
	}
	b, err := f.read(address+16, size-16)
	if err != nil {
		return "", err
	}
	for len(b) >= 16 {
		id, n := uint32(binary.LittleEndian.Uint16(b)), binary.LittleEndian.Uint64(b[8:])
		b = b[16:]
		if n > uint64(len(b)) || id == 0 { // object 0 is the free space, the last one
			break
		}
		if id == index {
			if length > n {
				return "", status.DataLossf("a string of %d bytes in an object of %d", length, n)
			}
			return string(b[:length]), nil
		}
		b = b[min(uint64(len(b)), (n+7)&^7):]
	}
	return "", status.DataLossf("object %d is not in the global heap at byte %d", index, address)
}
