package checkpoint

import (
	"encoding/binary"
	"math/bits"
)

// sliceKey returns the key of the entry of a piece: a zero, the name, the rank, and start and
// length of every extent, in an encoding whose order as bytes is the order of the values.
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

// appendOrdered writes the number of bytes and the bytes, most significant first.
func appendOrdered(b []byte, v uint64) []byte {
	n := (bits.Len64(v) + 7) / 8
	b = append(b, byte(n))
	return append(b, binary.BigEndian.AppendUint64(nil, v)[8-n:]...)
}

// appendOrderedString escapes the bytes 0 and 255 and ends with a mark that is smaller than any
// text.
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

// appendOrderedSigned writes a number in two's complement, most significant byte first, in as few
// bytes as leave room for a header: as many leading ones as there are bytes, all inverted where the
// number is negative.
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
