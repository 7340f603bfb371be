// Package number reads numbers from text as the functions of the language C do, with space around them: decimal integers, and
// floating-point numbers in decimal or hexadecimal, infinities and NaN.
package number

import (
	"errors"
	"strconv"
	"strings"
)

// space are the bytes that count as space in the language C.
const space = " \t\n\v\f\r"

// Int reads a signed integer of so many bits and reports whether the whole text is one.
func Int(s string, bits int) (v int64, ok bool) {
	v, err := strconv.ParseInt(strings.Trim(s, space), 10, bits)
	return v, err == nil
}

// Uint reads an unsigned integer of so many bits and reports whether the whole text is one.
func Uint(s string, bits int) (v uint64, ok bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.Trim(s, space), "+"), 10, bits)
	return v, err == nil
}

// Float reads a number of 32 or 64 bits and reports whether the whole text is one. What is too large is infinite.
func Float(s string, bits int) (v float64, ok bool) {
	s = strings.Trim(s, space)
	if strings.ContainsRune(s, '_') {
		return 0, false
	}
	digits := strings.ToLower(strings.TrimLeft(s, "+-"))
	switch {
	case len(s)-len(digits) > 1:
		return 0, false
	case strings.HasPrefix(digits, "nan(") && strings.HasSuffix(digits, ")"), digits == "nan":
		s = "nan" // neither the sign nor the payload is kept
	case strings.HasPrefix(digits, "0x") && !strings.Contains(digits, "p"):
		s += "p0" // Go wants an exponent
	}
	v, err := strconv.ParseFloat(s, bits)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}
