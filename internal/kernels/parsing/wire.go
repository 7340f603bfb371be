package parsing

// message is the unread rest of a serialized protocol buffer message. Values read from it share its
// memory.
type message string

// Wire types: the low three bits of a tag. The other bits are the field number.
const (
	wireVarint   = 0
	wireFixed8   = 1
	wireBytes    = 2
	wireGroup    = 3
	wireGroupEnd = 4
	wireFixed4   = 5
)

// tag returns the tag of a field.
func tag(field, wire int) uint64 { return uint64(field<<3 | wire) }

// maxVarint is the maximum size of a varint in bytes.
const maxVarint = 10

// varint consumes a varint.
func (m *message) varint() (v uint64, ok bool) {
	if *m != "" && (*m)[0] < 0x80 {
		v, *m = uint64((*m)[0]), (*m)[1:]
		return v, true
	}
	return m.longVarint()
}

func (m *message) longVarint() (v uint64, ok bool) {
	for i := range min(len(*m), maxVarint) {
		b := (*m)[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			*m = (*m)[i+1:]
			return v, true
		}
	}
	return 0, false
}

// take consumes n bytes.
func (m *message) take(n uint64) (b message, ok bool) {
	if n > uint64(len(*m)) {
		return "", false
	}
	b, *m = (*m)[:n], (*m)[n:]
	return b, true
}

// block consumes a length and that many bytes.
func (m *message) block() (b message, ok bool) {
	n, ok := m.varint()
	if !ok {
		return "", false
	}
	return m.take(n)
}

// part is like block for nested messages, but stops at the end of the outer message if the length
// exceeds it, as TensorFlow's reader does.
func (m *message) part() (b message, ok bool) {
	n, ok := m.varint()
	if !ok {
		return "", false
	}
	return m.take(min(n&0xffffffff, uint64(len(*m))))
}

// partItem is like item, but uses part to read the value.
func (m *message) partItem() (b message, ok bool) {
	if t, ok := m.varint(); !ok || t != tag(1, wireBytes) {
		return "", false
	}
	return m.part()
}

// item consumes the next value of a repeated bytes field, which has number 1 in all messages read
// here.
func (m *message) item() (b message, ok bool) {
	if t, ok := m.varint(); !ok || t != tag(1, wireBytes) {
		return "", false
	}
	return m.block()
}

// skip consumes the value of an ignored field. It does not support groups.
func (m *message) skip(tag uint64) (ok bool) {
	switch tag & 7 {
	case wireVarint:
		_, ok = m.varint()
	case wireFixed8:
		_, ok = m.take(8)
	case wireBytes:
		_, ok = m.block()
	case wireFixed4:
		_, ok = m.take(4)
	}
	return ok
}

// maxGroups is the maximum nesting depth of groups.
const maxGroups = 100

// skipAny is like skip, but supports groups up to the given nesting depth.
func (m *message) skipAny(tag uint64, groups int) bool {
	if tag&7 != wireGroup {
		return m.skip(tag)
	}
	for groups > 0 {
		t, ok := m.varint()
		switch {
		case !ok || t>>3 == 0:
			return false
		case t&7 == wireGroupEnd:
			return t>>3 == tag>>3
		case !m.skipAny(t, groups-1):
			return false
		}
	}
	return false
}

// entry consumes the key and the value of a map entry, in either order.
func (m *message) entry() (key string, value message, ok bool) {
	for range 2 {
		t, ok := m.varint()
		if !ok {
			return "", "", false
		}
		b, ok := m.block()
		switch {
		case ok && t == tag(1, wireBytes):
			key = string(b)
		case ok && t == tag(2, wireBytes):
			value = b
		default:
			return "", "", false
		}
	}
	return key, value, *m == ""
}
