package stringops

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// cFormat is a conversion specification of C's printf.
type cFormat struct {
	flag      byte // one of " +-0#", or 0
	width     int  // minimum width; negative for none
	precision int  // negative for the default
	verb      byte // verb for floating-point numbers: e, f or g
}

// maxWidth bounds the size of one formatted element, in bytes.
const maxWidth = 1 << 16

// number pads the digits of a number and its minus sign, if any.
func (f cFormat) number(digits string, signed bool) string {
	negative := strings.HasPrefix(digits, "-")
	if signed && !negative && (f.flag == '+' || f.flag == ' ') {
		digits = string(f.flag) + digits
	}
	missing := f.width - len(digits)
	if missing <= 0 {
		return digits
	}
	if f.flag != '0' {
		return f.pad(digits)
	}
	sign := ""
	if negative {
		sign, digits = "-", digits[1:]
	}
	//sizedmake:ok at most maxWidth
	return sign + strings.Repeat("0", missing) + digits
}

// pad pads text with spaces.
func (f cFormat) pad(text string) string {
	missing := f.width - len(text)
	switch {
	case missing <= 0:
		return text
	case f.flag == '-':
		//sizedmake:ok at most maxWidth
		return text + strings.Repeat(" ", missing)
	default:
		//sizedmake:ok at most maxWidth
		return strings.Repeat(" ", missing) + text
	}
}

// float formats a floating-point number.
func (f cFormat) float(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return f.special(v)
	}
	precision := f.precision
	if precision < 0 {
		precision = 6
	}
	if f.flag == '#' {
		return f.number(fmt.Sprintf("%#.*"+string(f.verb), precision, v), true)
	}
	if f.verb == 'g' {
		precision = max(precision, 1)
	}
	return f.number(strconv.FormatFloat(v, f.verb, precision, 64), true)
}

// special formats NaN and infinities, which are never padded with zeros.
func (f cFormat) special(v float64) string {
	text := "inf"
	if math.IsNaN(v) {
		text = "nan"
	}
	switch {
	case math.Signbit(v):
		text = "-" + text
	case f.flag == '+' || f.flag == ' ':
		text = string(f.flag) + text
	}
	return f.pad(text)
}

// string formats a string.
func (f cFormat) string(s string) string {
	if f.precision >= 0 {
		s = s[:min(f.precision, len(s))]
	}
	return f.pad(s)
}
