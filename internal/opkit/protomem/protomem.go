// Package protomem counts the memory of protocol buffers that kernels decode. A message of two
// bytes of text takes 200 bytes once it is decoded, so a string within the memory limit could
// become a list of messages that is not.
package protomem

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

const (
	// messageMemory is about the memory of a nested message, in bytes, with its place in a list.
	messageMemory = 200
	// valueMemory is the memory of a number or of the header of a string in a list, in bytes, with
	// what the list leaves unused while it grows.
	valueMemory = 32
	// maxDepth is the depth of messages that are counted one by one. The decoder accepts 10,000
	// levels.
	maxDepth = 100
)

// Unmarshal is proto.Unmarshal. It panics with a *membudget.Exceeded if there is no memory for the
// message.
func Unmarshal(b []byte, m proto.Message) error {
	MustTake(m.ProtoReflect().Descriptor(), b)
	return proto.Unmarshal(b, m)
}

// MustTake asks for the memory of a message in wire format once it is decoded. It panics with a
// *membudget.Exceeded if there is none.
func MustTake(desc protoreflect.MessageDescriptor, b []byte) { membudget.MustTake(size(desc, b, 0)) }

// TextMemory returns about the memory, in bytes, of a message in JSON or in the text format of
// protocol buffers. Each opening brace begins a message, and each separator a value.
func TextMemory(text string) int64 {
	n := int64(len(text))
	var quote byte // of the string that i is in, or 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{' || c == '<':
			n += messageMemory
		case c == ',' || c == ':' || c == '[':
			n += valueMemory
		}
	}
	return n
}

// size returns about the memory of a message, in bytes. It stops at a malformed field, which the
// decoder reports.
func size(desc protoreflect.MessageDescriptor, b []byte, depth int) int64 {
	total := int64(messageMemory)
	fields := desc.Fields()
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return total
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return total
		}
		value := b[:n]
		b = b[n:]
		field := fields.ByNumber(number)
		switch {
		case kind != protowire.BytesType || field == nil:
			total += valueMemory + int64(n)
			continue
		case field.Message() != nil && depth < maxDepth:
			value, _ = protowire.ConsumeBytes(value)
			total += size(field.Message(), value, depth+1)
		case field.Message() != nil: // at worst each two bytes are a message
			total += messageMemory / 2 * int64(n)
		case isText(field.Kind()):
			total += valueMemory + int64(n)
		default:
			total += packedSize(field.Kind()) * int64(n)
		}
	}
	return total
}

func isText(kind protoreflect.Kind) bool {
	return kind == protoreflect.StringKind || kind == protoreflect.BytesKind
}

// packedSize returns the memory for each byte of a packed list.
func packedSize(kind protoreflect.Kind) int64 {
	if slices.Contains(fixedKinds, kind) {
		return 1
	}
	return 8 // a number may take one byte of text
}

// fixedKinds are the kinds of numbers that are as large in text as in memory.
var fixedKinds = []protoreflect.Kind{
	protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind,
	protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind,
}
