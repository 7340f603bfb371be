package jsondoc

import (
	"bytes"
	"iter"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// document is a parsed text.
type document struct {
	text  []byte
	nodes []node
}

// Value is a value of a document. It may be used concurrently.
type Value struct {
	doc *document
	at  int32
}

func (v Value) node() *node { return &v.doc.nodes[v.at] }

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.node().kind }

// Len returns the number of elements of a list or of members of an object.
func (v Value) Len() int { return int(v.node().count) }

// Elements returns the elements of a list.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		at := v.at + 1
		for range v.Len() {
			if !yield(Value{v.doc, at}) {
				return
			}
			at = v.doc.nodes[at].next
		}
	}
}

// First returns the first element of a list that is not empty.
func (v Value) First() Value { return Value{v.doc, v.at + 1} }

// Members returns the names and values of an object, in the order of the text.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		at := v.at + 1
		for range v.Len() {
			if !yield(Value{v.doc, at}.Text(), Value{v.doc, at + 1}) {
				return
			}
			at = v.doc.nodes[at+1].next
		}
	}
}

// Member returns the first member of an object with a name. ok is false if there is none, or if the
// value is no object.
func (v Value) Member(name string) (member Value, ok bool) {
	if v.Kind() != Object {
		return Value{}, false
	}
	at := v.at + 1
	for range v.Len() {
		if (Value{v.doc, at}).isText(name) {
			return Value{v.doc, at + 1}, true
		}
		at = v.doc.nodes[at+1].next
	}
	return Value{}, false
}

// isText reports whether a string is s. It does not copy a long string.
func (v Value) isText(s string) bool {
	const longest = len(`\u0000`) // of the escape sequence of a byte
	switch raw := v.raw(); {
	case v.node().plain:
		return string(raw) == s
	case len(raw) > longest*len(s):
		return false
	}
	return v.Text() == s
}

// TextMemory returns the memory that Text takes for a string, in bytes.
func (v Value) TextMemory() int64 {
	if v.node().plain {
		return int64(len(v.raw()))
	}
	return 2 * int64(len(v.raw())) // a list of the bytes, and a string
}

func (v Value) raw() []byte { return v.doc.text[v.node().start:v.node().end] }

// Text returns a string.
func (v Value) Text() string {
	if v.node().plain {
		return string(v.raw())
	}
	return unescape(v.raw())
}

// unescape replaces the escape sequences of a string, which are valid.
func unescape(b []byte) string {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return string(append(out, b...))
		}
		out = append(out, b[:i]...)
		c := b[i+1]
		b = b[i+2:]
		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(b)
			b = b[4:]
			if utf16.IsSurrogate(r) {
				low, _ := hex4(b[2:])
				r, b = utf16.DecodeRune(r, low), b[6:]
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// IsInteger reports whether a number was written without fraction and exponent, and fits a signed
// or unsigned integer of 64 bits.
func (v Value) IsInteger() bool {
	_, signed := v.Int64()
	_, unsigned := v.Uint64()
	return signed || unsigned
}

// Int64 returns an integer. ok is false for another number, and for one that does not fit.
func (v Value) Int64() (i int64, ok bool) {
	if !v.node().plain {
		return 0, false
	}
	i, err := strconv.ParseInt(string(v.raw()), 10, 64)
	return i, err == nil
}

// Uint64 returns an integer that is not negative. ok is false for another number, and for one that
// does not fit.
func (v Value) Uint64() (u uint64, ok bool) {
	if !v.node().plain {
		return 0, false
	}
	u, err := strconv.ParseUint(string(v.raw()), 10, 64)
	return u, err == nil
}

// Float64 returns a number.
func (v Value) Float64() float64 {
	switch raw := v.raw(); string(raw) {
	case "NaN", "-NaN":
		return math.NaN()
	case "Inf", "Infinity":
		return math.Inf(1)
	case "-Inf", "-Infinity":
		return math.Inf(-1)
	default:
		f, _ := strconv.ParseFloat(string(raw), 64) // the text is valid
		return f
	}
}

// tooBig reports whether a number exceeds float64.
func tooBig(text []byte) bool {
	if len(text) < 20 && bytes.IndexByte(text, 'e') < 0 && bytes.IndexByte(text, 'E') < 0 {
		return false
	}
	f, _ := strconv.ParseFloat(string(text), 64)
	return math.IsInf(f, 0)
}

// maxDebug is the number of bytes of a value that an error shows.
const maxDebug = 256

// String returns the value as text without white space, cut at 256 bytes.
func (v Value) String() string {
	start, end := int(v.node().start), int(v.node().end)
	if v.Kind() == String {
		start, end = start-1, end+1
	}
	out := make([]byte, 0, min(end-start, maxDebug))
	quoted := false
	for i := start; i < end && len(out) < maxDebug; i++ {
		c := v.doc.text[i]
		switch {
		case quoted && c == '\\':
			out = append(out, c)
			i++
			c = v.doc.text[i]
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		out = append(out, c)
	}
	return string(bytes.ToValidUTF8(out, nil))
}
