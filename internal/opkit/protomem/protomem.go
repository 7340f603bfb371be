// Package protomem counts the memory that protocol buffers take once they are decoded. A message of
// two bytes takes 200 bytes, so a string within the memory limit could become a list of messages
// that is not.
package protomem

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

const (
	// Message is about the memory of a nested message, in bytes, with its place in a list.
	Message = 200
	// Value is the memory of a number or of the header of a string in a list, in bytes, with what
	// the list leaves unused while it grows.
	Value = 32
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

// Take is MustTake that returns false if there is no memory.
func Take(desc protoreflect.MessageDescriptor, b []byte) bool {
	return membudget.Take(size(desc, b, 0))
}

// TextMemory returns about the memory, in bytes, of a message in JSON or in the text format of
// protocol buffers. Each opening brace begins a message, and each separator a value.
func TextMemory[T string | []byte](text T) int64 {
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
			n += Message
		case c == ',' || c == ':' || c == '[':
			n += Value
		}
	}
	return n
}

// size returns about the memory of a message, in bytes. It stops at a malformed field, which the
// decoder reports.
func size(desc protoreflect.MessageDescriptor, b []byte, depth int) int64 {
	total := int64(Message)
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
			total += Value + int64(n)
			continue
		case field.Message() != nil && depth < maxDepth:
			value, _ = protowire.ConsumeBytes(value)
			total += size(field.Message(), value, depth+1)
		case field.Message() != nil: // at worst each two bytes are a message
			total += Message / 2 * int64(n)
		case isText(field.Kind()):
			total += Value + int64(n)
		default:
			total += Packed(field.Kind(), n)
		}
	}
	return total
}

func isText(kind protoreflect.Kind) bool {
	return kind == protoreflect.StringKind || kind == protoreflect.BytesKind
}

// Packed returns the memory of a packed list of numbers with the given size in wire format, whose
// values have a byte each in the worst case.
func Packed(kind protoreflect.Kind, size int) int64 {
	switch kind {
	case protoreflect.DoubleKind, protoreflect.FloatKind, protoreflect.BoolKind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind,
		protoreflect.Sfixed32Kind, protoreflect.Sfixed64Kind:
		return int64(size)
	case protoreflect.Int32Kind, protoreflect.Uint32Kind, protoreflect.Sint32Kind, protoreflect.EnumKind:
		return 4 * int64(size)
	default: // numbers of 64 bits
		return 8 * int64(size)
	}
}
