package openapi

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Describer is a type with a schema of its own.
type Describer interface {
	// OpenAPISchema returns the schema and the name of the component.
	OpenAPISchema() (name string, schema map[string]any)
}

// Wrapper is a type whose JSON is that of a protocol buffer.
type Wrapper interface {
	// ProtoMessage returns the message, which may be nil.
	ProtoMessage() proto.Message
}

// schemas collects the schemas of types.
type schemas struct{ components object }

func reference(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// of returns the schema of the type of a value.
func (s *schemas) of(v any) object {
	if m, ok := v.(proto.Message); ok {
		return s.message(m.ProtoReflect().Descriptor())
	}
	return s.goType(reflect.TypeOf(v))
}

func (s *schemas) goType(t reflect.Type) object {
	switch v := reflect.New(t).Interface().(type) {
	case Describer:
		name, schema := v.OpenAPISchema()
		s.components[name] = schema
		return reference(name)
	case Wrapper:
		return s.message(v.ProtoMessage().ProtoReflect().Descriptor())
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.goType(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Int32:
		return object{"type": "integer", "format": "int32"}
	case reflect.Float64, reflect.Float32:
		return object{"type": "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "format": "byte"}
		}
		return object{"type": "array", "items": s.goType(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.goType(t.Elem())}
	case reflect.Struct:
		return s.structType(t)
	default:
		return object{} // any value
	}
}

// structType returns the schema of a struct, by its tags "json" and "doc". Fields without omitzero
// are required.
func (s *schemas) structType(t reflect.Type) object {
	name := t.Name()
	if _, known := s.components[name]; known {
		return reference(name)
	}
	s.components[name] = object{} // for types that contain themselves
	properties, required := object{}, []string{}
	for f := range t.Fields() {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		schema := s.goType(f.Type)
		if doc := f.Tag.Get("doc"); doc != "" {
			schema["description"] = doc
		}
		if values := f.Tag.Get("enum"); values != "" {
			schema["enum"] = strings.Split(values, ",")
		}
		properties[key] = schema
		if !strings.Contains(options, "omitzero") {
			required = append(required, key)
		}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	s.components[name] = schema
	return reference(name)
}

// unsupported are fields that requests cannot use.
var unsupported = map[protoreflect.Name]bool{"feed_devices": true, "fetch_devices": true, "fetch_skip_sync": true}

// message returns the schema of a protocol buffer in the JSON form of protocol buffers, with the
// names of fields as they are in the .proto file.
func (s *schemas) message(d protoreflect.MessageDescriptor) object {
	switch d.FullName() {
	case "google.protobuf.Any":
		return object{"type": "object", "description": "A message with its type in \"@type\"."}
	case "google.protobuf.Int64Value":
		return object{"type": "string", "format": "int64"}
	case "google.protobuf.StringValue":
		return object{"type": "string"}
	case "google.protobuf.BoolValue":
		return object{"type": "boolean"}
	}
	name := componentName(string(d.FullName()))
	if _, known := s.components[name]; known {
		return reference(name)
	}
	s.components[name] = object{} // for messages that contain themselves
	properties := object{}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if !unsupported[f.Name()] {
			properties[string(f.Name())] = s.field(f)
		}
	}
	s.components[name] = object{"type": "object", "properties": properties, "additionalProperties": false}
	return reference(name)
}

// componentName returns the name of a message without its package. Generators of clients give names
// that end in "Response" to types of their own.
func componentName(full string) string {
	for _, prefix := range []string{"weft.tensorflow.serving.", "weft.tensorflow.", "weft.v1.", "weft.inference."} {
		full = strings.TrimPrefix(full, prefix)
	}
	if short, ok := strings.CutSuffix(full, "Response"); ok {
		full = short + "Result"
	}
	return strings.ReplaceAll(full, ".", "_")
}

func (s *schemas) field(f protoreflect.FieldDescriptor) object {
	switch {
	case f.IsMap():
		return object{"type": "object", "additionalProperties": s.single(f.MapValue())}
	case f.IsList():
		return object{"type": "array", "items": s.single(f)}
	}
	return s.single(f)
}

func (s *schemas) single(f protoreflect.FieldDescriptor) object {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return s.message(f.Message())
	case protoreflect.EnumKind:
		var names []string
		for i := range f.Enum().Values().Len() {
			names = append(names, string(f.Enum().Values().Get(i).Name()))
		}
		return object{"type": "string", "enum": names}
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.StringKind:
		return object{"type": "string"}
	case protoreflect.BytesKind:
		return object{"type": "string", "format": "byte"}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return object{"type": "string", "format": "int64", "pattern": fmt.Sprintf("^(-?%s|%d)$", upTo(math.MaxInt64), math.MinInt64)}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return object{"type": "string", "format": "uint64", "pattern": "^" + upTo(math.MaxUint64) + "$"}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return object{"type": "integer", "format": "int64", "minimum": 0, "maximum": 4294967295}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return object{"type": "integer", "format": "int32", "minimum": -2147483648, "maximum": 2147483647}
	case protoreflect.FloatKind:
		return object{"type": "number", "format": "float"}
	case protoreflect.DoubleKind:
		return object{"type": "number", "format": "double"}
	}
	return object{}
}

// upTo returns a regular expression for the decimal numbers from 0 to max: those with fewer digits,
// those whose first digits are max's and whose next one is smaller, and max.
func upTo(max uint64) string {
	digits := strconv.FormatUint(max, 10)
	var b strings.Builder
	fmt.Fprintf(&b, "([0-9]{1,%d}", len(digits)-1)
	for i, d := range digits {
		first := '0'
		if i == 0 {
			first = '1' // numbers with fewer digits are above
		}
		if d == first {
			continue
		}
		smaller := string(first)
		if d-1 > first {
			smaller = fmt.Sprintf("[%c-%c]", first, d-1)
		}
		b.WriteString("|" + digits[:i] + smaller)
		if rest := len(digits) - i - 1; rest > 0 {
			fmt.Fprintf(&b, "[0-9]{%d}", rest)
		}
	}
	return b.String() + "|" + digits + ")"
}
