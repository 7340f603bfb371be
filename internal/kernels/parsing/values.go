package parsing

import (
	"strings"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// values is how the values of one type are read from the list of them in a feature.
type values struct {
	noun string // what errors call them
	list string // the name of the field that holds them
	// count returns the number of values and whether they can be read at all. There are no more
	// than bytes in the list.
	count func(list message) (n int, ok bool)
	// read sets the elements of dst from at on, of which there are enough for count values.
	read func(dst *tensor.Tensor, at int, list message) (ok bool)
	// fill sets elements lo to hi of dst to the only element of v.
	fill func(dst *tensor.Tensor, lo, hi int, v *tensor.Tensor)
}

var valuesOf = map[tensor.DType]*values{
	tensor.String:  {"bytes", "bytes_list", countTexts, readTexts, fill[string]},
	tensor.Float32: {"float", "float_list", countFloats, readFloats, fill[float32]},
	tensor.Int64:   {"int64", "int64_list", countInts, readInts, fill[int64]},
}

// featureTypes are the types of values by the tag of the list of them.
var featureTypes = map[uint64]tensor.DType{tag(1, wireBytes): tensor.String, tag(2, wireBytes): tensor.Float32, tag(3, wireBytes): tensor.Int64}

// open returns the type of the values in a message Feature, and the list of them. It tells a
// feature of an unknown type from one that cannot be read (list is then empty, and ok false).
func open(feature message) (dtype tensor.DType, list message, ok bool, err error) {
	t, ok := feature.varint()
	if !ok {
		return tensor.Invalid, "", false, nil
	}
	if dtype = featureTypes[t]; dtype == tensor.Invalid {
		return tensor.Invalid, "", false, status.InvalidArgumentf("Unsupported datatype.")
	}
	list, ok = feature.part()
	return dtype, list, ok, nil
}

func fill[T tensor.Elem](dst *tensor.Tensor, lo, hi int, v *tensor.Tensor) {
	d, x := tensor.Values[T](dst)[lo:hi], tensor.Value[T](v)
	for i := range d {
		d[i] = x
	}
}

func countTexts(list message) (n int, ok bool) {
	for list != "" {
		if _, ok := list.item(); !ok {
			return 0, false
		}
		n++
	}
	return n, true
}

// readTexts copies the list as a whole, so that its values keep neither the record alive that they
// came from nor cost an allocation each.
func readTexts(dst *tensor.Tensor, at int, list message) bool {
	d := tensor.Values[string](dst)
	for list = message(strings.Clone(string(list))); list != ""; at++ {
		b, ok := list.item()
		if !ok {
			return false
		}
		d[at] = string(b)
	}
	return true
}

// numbers takes the next numbers of a list: a block of them packed together, or one alone of the
// given wire type as it stands.
func (m *message) numbers(wire int) (b message, ok bool) {
	switch t, ok := m.varint(); {
	case !ok:
		return "", false
	case t == tag(1, wireBytes) && wire == wireVarint:
		return m.part()
	case t == tag(1, wireBytes):
		return m.block()
	case t != tag(1, wire):
		return "", false
	}
	before := *m
	if !m.skip(uint64(wire)) {
		return "", false
	}
	return before[:len(before)-len(*m)], true
}

func countFloats(list message) (n int, ok bool) {
	for list != "" {
		b, ok := list.numbers(wireFixed4)
		if !ok || len(b)%4 != 0 {
			return 0, false
		}
		n += len(b) / 4
	}
	return n, true
}

func readFloats(dst *tensor.Tensor, at int, list message) bool {
	mem := dst.Bytes()[4*at:]
	for list != "" {
		b, ok := list.numbers(wireFixed4)
		if !ok {
			return false
		}
		mem = mem[copy(mem, b):]
	}
	return true
}

func countInts(list message) (n int, ok bool) {
	for list != "" {
		b, ok := list.numbers(wireVarint)
		if !ok || b != "" && b[len(b)-1] >= 0x80 {
			return 0, false
		}
		for i := range len(b) {
			n += int(^b[i] >> 7) // every number ends with a byte below 0x80
		}
	}
	return n, true
}

func readInts(dst *tensor.Tensor, at int, list message) bool {
	d := tensor.Values[int64](dst)[at:]
	for list != "" {
		b, ok := list.numbers(wireVarint)
		if !ok {
			return false
		}
		for b != "" {
			v, ok := b.varint()
			if !ok {
				return false
			}
			d[0], d = int64(v), d[1:]
		}
	}
	return true
}
