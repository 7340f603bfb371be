package jsondoc

import (
	"math"
	"unicode/utf8"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	False
	True
	Object
	Array
	String
	Number
)

// String returns the name of the kind in TensorFlow Serving's errors.
func (k Kind) String() string {
	return [...]string{"Null", "False", "True", "Object", "Array", "String", "Number"}[k]
}

// node is one value, or the name of a member of an object. The children of a list or an object
// follow it.
type node struct {
	kind       Kind
	plain      bool  // an integer, or a string without escapes
	start, end int32 // in the text; of a string without its quotation marks
	count      int32 // elements, or members
	next       int32 // the node after this one and its children
}

// maxText is the size of the largest document, in bytes.
const maxText = math.MaxInt32

// parser turns text into nodes.
type parser struct {
	text  []byte
	at    int
	nodes []node
	open  []int32 // lists and objects that are not complete, from the outermost
}

// Parse parses the first value of a text, which must not be modified while the value is used. The
// error is InvalidArgument, with TensorFlow Serving's text. It panics with a
// [*membudget.Exceeded] if there is no memory for the values.
func Parse(text []byte) (Value, error) {
	if len(text) > maxText {
		return Value{}, status.ResourceExhaustedf("a document of %d bytes is too large", len(text))
	}
	p := &parser{text: text}
	if p.space(); p.at == len(text) {
		return Value{}, status.InvalidArgumentf("JSON Parse error: The document is empty")
	}
	if reason := p.run(); reason != "" {
		return Value{}, status.InvalidArgumentf("JSON Parse error: %s at offset: %d", reason, p.at)
	}
	return Value{&document{text, p.nodes}, 0}, nil
}

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// run parses one value. It returns the reason of a mistake, which is at p.at.
func (p *parser) run() (reason string) {
	for {
		p.space()
		opened, reason := p.value()
		if reason != "" {
			return reason
		}
		for !opened {
			if len(p.open) == 0 {
				return ""
			}
			if opened, reason = p.afterElement(); reason != "" {
				return reason
			}
		}
	}
}

// value parses a scalar, or the beginning of a list or an object up to its first element. more
// reports that an element must follow.
func (p *parser) value() (more bool, reason string) {
	switch c := p.peek(); c {
	case '{':
		return p.begin(Object, '}')
	case '[':
		return p.begin(Array, ']')
	case '"':
		return false, p.quoted()
	case 'n':
		return false, p.word("null", Null)
	case 't':
		return false, p.word("true", True)
	case 'f':
		return false, p.word("false", False)
	default:
		return false, p.number()
	}
}

func (p *parser) begin(kind Kind, closing byte) (more bool, reason string) {
	p.open = membudget.Append(p.open, int32(len(p.nodes)))
	p.nodes = membudget.Append(p.nodes, node{kind: kind, start: int32(p.at)})
	p.at++
	if p.space(); p.peek() == closing {
		p.finish()
		return false, ""
	}
	if kind == Object {
		return true, p.name()
	}
	return true, ""
}

// finish ends the innermost list or object at its closing bracket.
func (p *parser) finish() {
	p.at++
	last := len(p.open) - 1
	n := &p.nodes[p.open[last]]
	n.end, n.next = int32(p.at), int32(len(p.nodes))
	p.open = p.open[:last]
}

// afterElement continues after an element of the innermost list or object.
func (p *parser) afterElement() (more bool, reason string) {
	parent := &p.nodes[p.open[len(p.open)-1]]
	parent.count++
	p.space()
	closing, reason := byte(']'), "Missing a comma or ] after an array element."
	if parent.kind == Object {
		closing, reason = '}', "Missing a comma or } after an object member."
	}
	switch p.peek() {
	case closing:
		p.finish()
		return false, ""
	case ',':
		p.at++
		if parent.kind == Object {
			p.space()
			return true, p.name()
		}
		return true, ""
	}
	return false, reason
}

// name parses the name of a member and the colon.
func (p *parser) name() (reason string) {
	if p.peek() != '"' {
		return "Missing a name for object member."
	}
	if reason := p.quoted(); reason != "" {
		return reason
	}
	if p.space(); p.peek() != ':' {
		return "Missing a colon after a name of object member."
	}
	p.at++
	return ""
}

func (p *parser) word(word string, kind Kind) (reason string) {
	start := p.at
	for i := range len(word) {
		if p.peek() != word[i] {
			return invalidValue
		}
		p.at++
	}
	p.leaf(node{kind: kind, start: int32(start), end: int32(p.at)})
	return ""
}

func (p *parser) leaf(n node) {
	n.next = int32(len(p.nodes)) + 1
	p.nodes = membudget.Append(p.nodes, n)
}

const invalidValue = "Invalid value."

// quoted parses a string.
func (p *parser) quoted() (reason string) {
	start := p.at
	p.at++
	plain := true
	for {
		if p.at >= len(p.text) {
			p.at = start
			return "Missing a closing quotation mark in string."
		}
		switch c := p.text[p.at]; {
		case c == '"':
			p.leaf(node{kind: String, plain: plain, start: int32(start + 1), end: int32(p.at)})
			p.at++
			return ""
		case c == '\\':
			plain = false
			if reason := p.escape(); reason != "" {
				return reason
			}
		case c < ' ':
			if c == 0 {
				p.at = start
				return "Missing a closing quotation mark in string."
			}
			return "Invalid encoding in string."
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(p.text[p.at:])
			if r == utf8.RuneError && n <= 1 {
				return "Invalid encoding in string."
			}
			p.at += n
		default:
			p.at++
		}
	}
}

// escape checks an escape sequence.
func (p *parser) escape() (reason string) {
	start := p.at
	p.at++
	switch p.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at++
		return ""
	case 'u':
		p.at++
	default:
		p.at = start
		return "Invalid escape character in string."
	}
	const badHex, badPair = "Incorrect hex digit after \\u escape in string.", "The surrogate pair in string is invalid."
	first, ok := hex4(p.text[p.at:])
	if !ok {
		p.at = start
		return badHex
	}
	p.at += 4
	if first < 0xD800 || first > 0xDFFF {
		return ""
	}
	if first > 0xDBFF || p.peek() != '\\' || p.at+1 >= len(p.text) || p.text[p.at+1] != 'u' {
		p.at = start
		return badPair
	}
	second, ok := hex4(p.text[p.at+2:])
	switch {
	case !ok:
		p.at = start
		return badHex
	case second < 0xDC00 || second > 0xDFFF:
		p.at = start
		return badPair
	}
	p.at += 6
	return ""
}

// hex4 decodes four hexadecimal digits.
func hex4(b []byte) (v rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | rune(c)
	}
	return v, true
}

// number parses a number.
func (p *parser) number() (reason string) {
	start, integer := p.at, true
	if p.peek() == '-' {
		p.at++
	}
	switch c := p.peek(); {
	case c == '0':
		p.at++
	case c >= '1' && c <= '9':
		p.digits()
	case c == 'N' && p.skip("NaN"), c == 'I' && (p.skip("Infinity") || p.skip("Inf")):
		p.leaf(node{kind: Number, start: int32(start), end: int32(p.at)})
		return ""
	default:
		return invalidValue
	}
	if p.peek() == '.' {
		integer = false
		p.at++
		if !p.digits() {
			return "Miss fraction part in number."
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		integer = false
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if !p.digits() {
			return "Miss exponent in number."
		}
	}
	n := node{kind: Number, plain: integer, start: int32(start), end: int32(p.at)}
	if tooBig(p.text[start:p.at]) {
		p.at = start
		return "Number too big to be stored in double."
	}
	p.leaf(n)
	return ""
}

// digits skips decimal digits, and reports whether there were any.
func (p *parser) digits() bool {
	start := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	return p.at > start
}

func (p *parser) skip(word string) bool {
	if len(p.text)-p.at < len(word) || string(p.text[p.at:p.at+len(word)]) != word {
		return false
	}
	p.at += len(word)
	return true
}
