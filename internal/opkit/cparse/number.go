// Package cparse parses numbers with the rules of C's strtol and strtod. White space around a
// number is ignored. Integers are decimal; floating-point numbers may be decimal, hexadecimal,
// infinite or NaN.
package cparse

import (
	"errors"
	"strconv"
	"strings"
)

// space holds the white-space bytes of C's isspace.
const space = " \t\n\v\f\r"

// Int parses a signed integer that fits in the given number of bits. It reports whether all of s is
// one.
func Int(s string, bits int) (v int64, ok bool) {
	v, err := strconv.ParseInt(strings.Trim(s, space), 10, bits)
	return v, err == nil
}

// Uint parses an unsigned integer that fits in the given number of bits. It reports whether all of
// s is one.
func Uint(s string, bits int) (v uint64, ok bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.Trim(s, space), "+"), 10, bits)
	return v, err == nil
}

// Float parses a number of 32 or 64 bits. It reports whether all of s is one. A value too large for
// the type becomes infinite.
func Float(s string, bits int) (v float64, ok bool) {
	if v, ok = short(s, bits); ok {
		return v, true
	}
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
		s += "p0" // Go requires an exponent
	}
	v, err := strconv.ParseFloat(s, bits)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}

// Powers of ten that a floating-point type represents exactly.
var (
	tens32 = [...]float32{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10}
	tens64 = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}
)

// short parses a number of few digits without an exponent, the common case. The digits as an
// integer and the power of ten that divides it are both exact, so the quotient is rounded once.
func short(s string, bits int) (v float64, ok bool) {
	const maxDigits = 18 // digits that fit in 64 bits
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	if len(s) > maxDigits {
		return 0, false
	}
	digits, n, point := uint64(0), 0, len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c-'0' <= 9:
			digits = 10*digits + uint64(c-'0')
			n++
		case c == '.' && point == len(s):
			point = i
		default:
			return 0, false
		}
	}
	places := max(0, len(s)-1-point)
	switch {
	case n == 0:
		return 0, false
	case bits == 32 && digits < 1<<24 && places < len(tens32):
		v = float64(float32(digits) / tens32[places])
	case bits == 64 && digits < 1<<53:
		v = float64(digits) / tens64[places]
	default:
		return 0, false
	}
	if negative {
		v = -v
	}
	return v, true
}
