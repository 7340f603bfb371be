package parsing

import (
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// values describes how values of one dtype are read from the list in a feature.
type values struct {
	noun string // name in errors
	list string // name of the field with the values
	// count returns the number of values, at most the number of bytes in the list, and whether they
	// can be read.
	count func(list message) (n int, ok bool)
	// read stores count values in dst, which is large enough, from index at on.
	read func(dst *tensor.Tensor, at int, list message) (ok bool)
	// fill sets elements lo to hi of dst to the single element of v.
	fill func(dst *tensor.Tensor, lo, hi int, v *tensor.Tensor)
}

var valuesOf = map[tensor.DType]*values{
	tensor.String:  {"bytes", "bytes_list", countTexts, readTexts, fill[string]},
	tensor.Float32: {"float", "float_list", countFloats, readFloats, fill[float32]},
	tensor.Int64:   {"int64", "int64_list", countInts, readInts, fill[int64]},
}

// featureTypes maps the tag of a value list to its dtype.
var featureTypes = map[uint64]tensor.DType{tag(1, wireBytes): tensor.String, tag(2, wireBytes): tensor.Float32, tag(3, wireBytes): tensor.Int64}

// open returns the dtype and the list of values in a Feature message. For an unknown type ok is
// true; for an unreadable feature ok is false and list is empty.
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

// readTexts copies the list once, so that the strings do not keep the record alive and need no
// allocation each.
func readTexts(dst *tensor.Tensor, at int, list message) bool {
	d := tensor.Values[string](dst)
	membudget.MustTake(int64(len(list))) // records may share their text
	for list = message(strings.Clone(string(list))); list != ""; at++ {
		b, ok := list.item()
		if !ok {
			return false
		}
		d[at] = string(b)
	}
	return true
}

// numbers consumes the next numbers of a list: a packed block, or a single number of the given wire
// type.
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
