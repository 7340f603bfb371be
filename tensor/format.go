package tensor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// String returns the type, the shape and the first values of t, as in TensorFlow's errors.
func (t Tensor) String() string { //nolint:recvcheck // values are printed, too
	if !t.Initialized() {
		return "Tensor<uninitialized>"
	}
	return fmt.Sprintf("Tensor<type: %v shape: %v values: %s>", t.dtype, t.shape, t.Summary(3))
}

// Summary returns the first n elements of t, or all if n is negative, in the format of TensorFlow's
// Print and Assert: rows in brackets, except the outermost, and "..." for omitted elements.
func (t *Tensor) Summary(n int) string {
	total := t.NumElements()
	if n < 0 || n > total {
		n = total
	}
	s := summarizer{shape: t.shape, limit: n, element: t.elementText()}
	if t.dtype == String {
		s.texts = Values[string](t)
		size := int64(0)
		for _, text := range s.texts[:n] {
			size += int64(len(text))
		}
		if !membudget.Take(copies * size) {
			s.limit = 0
		}
	}
	if len(t.shape) == 0 {
		if n > 0 {
			s.write()
		}
	} else {
		s.dim(0)
	}
	if total > s.next {
		s.text("...")
	}
	return s.out.String()
}

type summarizer struct {
	out     membudget.Text
	meter   membudget.Meter
	shape   Shape
	limit   int      // end of the elements that are written
	next    int      // position of the next element
	texts   []string // the elements of a tensor of strings
	element func(i int) string
}

// copies is the number of copies that are made of a summary, which mostly is a part of an error.
// Without memory for them a summary ends early, as it may be made where nothing handles a panic.
const copies = 8

// write writes the next element. If there is no memory for it, the summary ends.
func (s *summarizer) write() {
	if s.next >= s.limit {
		return
	}
	text := s.element(s.next)
	if !s.meter.Take(copies * (len(text) + 1 + 2*len(s.shape))) {
		s.limit = s.next
		return
	}
	if s.text(text) {
		s.next++
	}
}

// text writes text, or ends the summary.
func (s *summarizer) text(text string) bool {
	ok := s.out.TryWrite(text)
	if !ok {
		s.limit = s.next
	}
	return ok
}

func (s *summarizer) dim(d int) {
	if d == len(s.shape)-1 {
		s.row(d)
		return
	}
	for i := int64(0); i < s.shape[d] && s.next < s.limit; i++ {
		s.text("[")
		s.dim(d + 1)
		s.text("]")
	}
}

func (s *summarizer) row(d int) {
	for i := range s.shape[d] {
		if s.next >= s.limit {
			if d > 0 {
				s.text("...")
			}
			return
		}
		if i > 0 {
			s.text(" ")
		}
		s.write()
	}
}

// elementText returns a function that formats element i.
func (t *Tensor) elementText() func(i int) string {
	switch t.dtype {
	case Float32:
		return eachText(t, func(v float32) string { return FormatFloat(float64(v), 32) })
	case Float64:
		return eachText(t, func(v float64) string { return FormatFloat(v, 64) })
	case Float16:
		return eachText(t, func(v Float16Elem) string { return FormatFloat(float64(v.Float32()), 32) })
	case BFloat16:
		return eachText(t, func(v BFloat16Elem) string { return FormatFloat(float64(v.Float32()), 32) })
	case String:
		return eachText(t, func(v string) string { return Escape(v, true) })
	case Bool:
		return eachText(t, func(v bool) string { return strconv.Itoa(boolToInt(v)) })
	case Uint64:
		return eachText(t, func(v uint64) string { return strconv.FormatUint(v, 10) })
	case Int64:
		return eachText(t, func(v int64) string { return strconv.FormatInt(v, 10) })
	case Resource:
		return eachText(t, (*Handle).String)
	default:
		return t.narrowText()
	}
}

func (t *Tensor) narrowText() func(i int) string {
	switch t.dtype {
	case Int32:
		return eachText(t, intText[int32])
	case Int16:
		return eachText(t, intText[int16])
	case Int8:
		return eachText(t, intText[int8])
	case Uint32:
		return eachText(t, intText[uint32])
	case Uint16:
		return eachText(t, intText[uint16])
	case Uint8:
		return eachText(t, intText[uint8])
	case QInt32:
		return eachText(t, intText[QInt32Elem])
	case QInt16:
		return eachText(t, intText[QInt16Elem])
	case QInt8:
		return eachText(t, intText[QInt8Elem])
	case QUint16:
		return eachText(t, intText[QUint16Elem])
	case QUint8:
		return eachText(t, intText[QUint8Elem])
	case Int4:
		return eachText(t, intText[Int4Elem])
	case Uint4:
		return eachText(t, intText[Uint4Elem])
	default:
		return func(int) string { return "?" }
	}
}

func eachText[T Elem](t *Tensor, text func(T) string) func(i int) string {
	vals := Values[T](t)
	return func(i int) string { return text(vals[i]) }
}

func intText[T ~int8 | ~int16 | ~int32 | ~uint8 | ~uint16 | ~uint32](v T) string {
	return strconv.FormatInt(int64(v), 10)
}

// String returns the handle in TensorFlow's format.
func (h *Handle) String() string {
	if h == nil {
		h = &Handle{}
	}
	var elems strings.Builder
	for _, e := range h.Elems {
		fmt.Fprintf(&elems, "DType enum: %d, Shape: %v, ", e.DType, e.Shape)
	}
	return fmt.Sprintf("<ResourceHandle(name=%q, device=%q, container=%q, type=%q, dtype and shapes : \"[ %s ]\")>",
		h.Name, h.Device, h.Container, h.TypeName, elems.String())
}

// FormatFloat formats a number of 32 or 64 bits as TensorFlow does: with 6 digits (15 for 64 bits)
// if these distinguish it from its neighbours, and otherwise with 9 (17).
func FormatFloat(v float64, bits int) string {
	short, long := 6, 9
	if bits == 64 {
		short, long = 15, 17
	}
	switch s := strconv.FormatFloat(v, 'g', short, bits); s {
	case "NaN":
		return "nan"
	case "+Inf":
		return "inf"
	case "-Inf":
		return "-inf"
	default:
		if back, err := strconv.ParseFloat(s, bits); err == nil && back == v {
			return s
		}
		return strconv.FormatFloat(v, 'g', long, bits)
	}
}

// Escape returns text as a C string literal without quotes. With keepUTF8, bytes outside of ASCII
// stay as they are; otherwise they are octal escapes.
func Escape(s string, keepUTF8 bool) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '"', c == '\'', c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20, c == 0x7f, c > 0x7f && !keepUTF8:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
