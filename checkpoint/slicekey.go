package checkpoint

import (
	"encoding/binary"
	"math/bits"
)

// sliceKey returns the key of the entry of a slice: a zero, the name, the rank, and the start and
// length of every extent. The order of the keys as bytes is the order of these values.
func sliceKey(name string, s Slice) []byte {
	b := appendOrdered(nil, 0)
	b = appendOrderedString(b, name)
	b = appendOrdered(b, uint64(len(s)))
	for _, e := range s {
		b = appendOrderedSigned(b, e.Start)
		b = appendOrderedSigned(b, e.Length)
	}
	return b
}

// appendOrdered appends the number of significant bytes and then these bytes, most significant
// first.
func appendOrdered(b []byte, v uint64) []byte {
	n := (bits.Len64(v) + 7) / 8
	b = append(b, byte(n))
	return append(b, binary.BigEndian.AppendUint64(nil, v)[8-n:]...)
}

// appendOrderedString appends a string with the bytes 0 and 255 escaped, and a terminator that is
// smaller than any continuation.
func appendOrderedString(b []byte, s string) []byte {
	for i := range len(s) {
		switch s[i] {
		case 0:
			b = append(b, 0, 0xff)
		case 0xff:
			b = append(b, 0xff, 0)
		default:
			b = append(b, s[i])
		}
	}
	return append(b, 0, 1)
}

// appendOrderedSigned appends a number in two's complement, most significant byte first, in the
// fewest bytes that leave room for a header. The header has as many leading one bits as there are
// bytes; it is inverted for a negative number.
func appendOrderedSigned(b []byte, v int64) []byte {
	magnitude := v
	if v < 0 {
		magnitude = ^v
	}
	n := bits.Len64(uint64(magnitude))/7 + 1
	if n == 1 {
		return append(b, 0x80^byte(v))
	}
	var buf [10]byte
	if v < 0 {
		buf[0], buf[1] = 0xff, 0xff
	}
	binary.BigEndian.PutUint64(buf[2:], uint64(v))
	out := buf[len(buf)-n:]
	header := uint16(0xffff) << (16 - n)
	out[0] ^= byte(header >> 8)
	out[1] ^= byte(header)
	return append(b, out...)
}
