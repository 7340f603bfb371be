package parsing

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/opkit/protomem"
	_ "github.com/weft-ml/weft/internal/proto/pb" // the messages of local://
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	// ownPrefix precedes TensorFlow's names in the names of Weft's messages.
	ownPrefix   = "weft."
	bytesSource = "bytes://"
)

// messages holds the messages of a descriptor_source: TensorFlow's own ("local://"), a file with a
// FileDescriptorSet, or a serialized FileDescriptorSet after "bytes://".
type messages struct{ files *protoregistry.Files }

func newMessages(files fileio.Files, source string) (*messages, error) {
	if source == "" || source == "local://" {
		return &messages{protoregistry.GlobalFiles}, nil
	}
	var set descriptorpb.FileDescriptorSet
	refused := false
	decode := func(text []byte) bool {
		if refused = !protomem.Take(set.ProtoReflect().Descriptor(), text); refused {
			return false
		}
		return proto.Unmarshal(text, &set) == nil
	}
	if text, err := files.Read(source); err != nil || !decode(text) {
		set.Reset()
		text, ok := strings.CutPrefix(source, bytesSource)
		if !ok || !decode([]byte(text)) {
			if refused {
				return nil, status.ResourceExhaustedf("OOM when decoding a descriptor_source")
			}
			return nil, status.InvalidArgumentf("Source does not represent serialized file descriptor set proto. This may be due to a "+
				"missing dependency on the file containing REGISTER_DESCRIPTOR_POOL(\"%s\", ...);", source)
		}
	}
	m := &messages{new(protoregistry.Files)}
	for _, file := range set.GetFile() {
		f, err := protodesc.NewFile(file, m.files)
		if err == nil {
			err = m.files.RegisterFile(f)
		}
		if err != nil {
			return nil, status.InvalidArgumentf("Failed to load FileDescriptorProto: %s: %w", file.GetName(), err)
		}
	}
	return m, nil
}

// find returns a message by its full name.
func (m *messages) find(name string) (protoreflect.MessageDescriptor, error) {
	for _, prefix := range []string{ownPrefix, ""} {
		if prefix != "" && m.files != protoregistry.GlobalFiles {
			continue
		}
		d, _ := m.files.FindDescriptorByName(protoreflect.FullName(prefix + name))
		if found, ok := d.(protoreflect.MessageDescriptor); ok {
			return found, nil
		}
	}
	return nil, status.InvalidArgumentf("No descriptor found for message type %s", name)
}

// field returns the field of a message with the given name, or nil.
func field(d protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if f := d.Fields().ByTextName(name); f != nil && string(f.Name()) == name {
		return f
	}
	return d.Fields().ByName(protoreflect.Name(name))
}

// extension returns the extension of a message with the given full name, or nil.
func (m *messages) extension(d protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	found, _ := m.files.FindDescriptorByName(protoreflect.FullName(name))
	if f, ok := found.(protoreflect.FieldDescriptor); ok && f.IsExtension() && f.ContainingMessage() == d {
		return f
	}
	return nil
}

// fieldTypes lists the dtypes permitted for a field's values.
var fieldTypes = map[protoreflect.Kind][]tensor.DType{
	protoreflect.DoubleKind: {tensor.Float64}, protoreflect.FloatKind: {tensor.Float32, tensor.Float64},
	protoreflect.Int64Kind: {tensor.Int64}, protoreflect.Sint64Kind: {tensor.Int64}, protoreflect.Sfixed64Kind: {tensor.Int64},
	protoreflect.Int32Kind: {tensor.Int32, tensor.Int64}, protoreflect.Sint32Kind: {tensor.Int32, tensor.Int64},
	protoreflect.Sfixed32Kind: {tensor.Int32, tensor.Int64}, protoreflect.EnumKind: {tensor.Int32},
	protoreflect.Uint64Kind: {tensor.Uint64}, protoreflect.Fixed64Kind: {tensor.Uint64},
	protoreflect.Uint32Kind: {tensor.Uint32, tensor.Uint64}, protoreflect.Fixed32Kind: {tensor.Uint32, tensor.Uint64},
	protoreflect.BoolKind: {tensor.Bool}, protoreflect.StringKind: {tensor.String}, protoreflect.BytesKind: {tensor.String},
	protoreflect.MessageKind: {tensor.String}, protoreflect.GroupKind: {tensor.String},
}

// memoryName returns the name of the in-memory type of a kind, as used in errors.
func memoryName(k protoreflect.Kind) string {
	switch k {
	case protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return "int32"
	case protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return "int64"
	case protoreflect.Fixed32Kind:
		return "uint32"
	case protoreflect.Fixed64Kind:
		return "uint64"
	case protoreflect.BytesKind:
		return "string"
	case protoreflect.GroupKind:
		return "message"
	default:
		return k.String()
	}
}

// wireOf returns the wire type of single values of a kind.
func wireOf(k protoreflect.Kind) int {
	switch k {
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return wireFixed8
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return wireFixed4
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return wireBytes
	case protoreflect.GroupKind:
		return wireGroup
	default:
		return wireVarint
	}
}
