package peer

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A field is one of this program in a message of TensorFlow, which has no field of that number.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  []byte // without the tag
}

// fields returns the unknown fields of a message, up to the first that is ill-formed.
func fields(m proto.Message) iter.Seq[field] {
	return func(yield func(field) bool) {
		for b := m.ProtoReflect().GetUnknown(); len(b) > 0; {
			number, kind, tag := protowire.ConsumeTag(b)
			if tag < 0 {
				return
			}
			n := protowire.ConsumeFieldValue(number, kind, b[tag:])
			if n < 0 || !yield(field{number, kind, b[tag : tag+n]}) {
				return
			}
			b = b[tag+n:]
		}
	}
}

// findField returns the value of the first unknown field of a number and type; nil if there is
// none.
func findField(m proto.Message, number protowire.Number, kind protowire.Type) []byte {
	for f := range fields(m) {
		if f.number == number && f.kind == kind {
			return f.value
		}
	}
	return nil
}

// addField appends a field to the unknown ones of a message. The value is encoded without a tag.
func addField(m proto.Message, number protowire.Number, kind protowire.Type, value []byte) {
	r := m.ProtoReflect()
	r.SetUnknown(append(protowire.AppendTag(r.GetUnknown(), number, kind), value...))
}
