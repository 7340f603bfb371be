package stringops

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// cFormat is a conversion of the function printf of the language C.
type cFormat struct {
	flag      byte // one of " +-0#", or 0
	width     int  // the least; negative for none
	precision int  // negative for the default
	verb      byte // of floating-point numbers: e, f or g
}

// maxWidth bounds what one element may grow to.
const maxWidth = 1 << 16

// number pads the digits of a number, with its minus sign if it has one.
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
	return sign + strings.Repeat("0", missing) + digits
}

// pad fills a text up with spaces.
func (f cFormat) pad(text string) string {
	missing := f.width - len(text)
	switch {
	case missing <= 0:
		return text
	case f.flag == '-':
		return text + strings.Repeat(" ", missing)
	default:
		return strings.Repeat(" ", missing) + text
	}
}

// float writes a floating-point number.
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

// special writes what is not finite, which is never filled with zeros.
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

// string writes a text.
func (f cFormat) string(s string) string {
	if f.precision >= 0 {
		s = s[:min(f.precision, len(s))]
	}
	return f.pad(s)
}
