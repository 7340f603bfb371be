// Package rawstrings is the binary form of strings in the Open Inference Protocol: each has its
// length before it, as four little-endian bytes.
package rawstrings

import (
	"encoding/binary"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// header is the memory of a string in a list, in bytes.
const header = 16

// Decode returns the n strings that b consists of. Errors call them by a noun, such as "element".
// The error is ResourceExhausted if there is no memory for the strings: a request may use the same
// bytes for many tensors.
func Decode(b []byte, n int64, noun string) ([]string, error) {
	if n > int64(len(b)/4) {
		return nil, status.InvalidArgumentf("%d bytes are too few for %d %ss", len(b), n, noun)
	}
	if !membudget.Take(n*header + int64(len(b))) {
		return nil, status.ResourceExhaustedf("there is no memory for %d %ss (--memory-limit)", n, noun)
	}
	vals := make([]string, n)
	for i := range vals {
		if len(b) < 4 || int64(binary.LittleEndian.Uint32(b)) > int64(len(b)-4) {
			return nil, status.InvalidArgumentf("%s %d is incomplete", noun, i)
		}
		size := int(binary.LittleEndian.Uint32(b))
		vals[i], b = string(b[4:4+size]), b[4+size:]
	}
	if len(b) > 0 {
		return nil, status.InvalidArgumentf("%d bytes are left after the last %s", len(b), noun)
	}
	return vals, nil
}

// Size returns the number of bytes that [Append] appends.
func Size(vals []string) int64 {
	n := int64(0)
	for _, s := range vals {
		n += 4 + int64(len(s))
	}
	return n
}

// Append appends strings to b.
func Append(b []byte, vals []string) []byte {
	for _, s := range vals {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...) //nolint:gosec // a string is smaller
	}
	return b
}
