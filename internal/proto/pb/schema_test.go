package pb_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	_ "github.com/weft-ml/weft/internal/proto/pb"
)

// TestSchemaMatchesTensorFlow compares each message and enum with the one of the same name in
// testdata/tensorflow-2.21.binpb.gz. That file contains descriptors from the libraries of
// TensorFlow 2.21.0.
func TestSchemaMatchesTensorFlow(t *testing.T) {
	ours := describe(ourFiles())
	if len(ours) < 200 {
		t.Fatalf("only %d messages and enums found", len(ours))
	}
	for _, fault := range compare(ours, describe(tensorFlowFiles(t))) {
		t.Error(fault)
	}
}

func TestSchemaDifferencesAreFound(t *testing.T) {
	theirs := describe(tensorFlowFiles(t))
	for _, tt := range []struct {
		name   string
		change func(find func(message, field string) *descriptorpb.FieldDescriptorProto)
		want   string
	}{
		{"number", func(find findField) { find("NodeDef", "device").Number = new(int32(9)) }, "NodeDef"},
		{"name", func(find findField) { find("NodeDef", "device").Name = new("place") }, "NodeDef"},
		{"type", func(find findField) {
			find("NodeDef", "device").Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
		}, "NodeDef"},
		{"message", func(find findField) {
			find("GraphDef", "node").TypeName = new(".weft.tensorflow.OpDef")
		}, "GraphDef"},
		{"label", func(find findField) {
			find("NodeDef", "input").Label = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()
		}, "NodeDef"},
		{"packed", func(find findField) {
			find("TensorProto", "int_val").Options = &descriptorpb.FieldOptions{Packed: new(false)}
		}, "TensorProto"},
		{"oneof", func(find findField) { find("AttrValue", "s").OneofIndex = nil }, "AttrValue"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := ourFiles()
			tt.change(func(message, field string) *descriptorpb.FieldDescriptorProto { return find(t, files, message, field) })
			faults := compare(describe(files), theirs)
			if len(faults) == 0 || !strings.Contains(faults[0], "tensorflow."+tt.want+":") {
				t.Errorf("got faults %q, want some of %s", faults, tt.want)
			}
		})
	}
}

func TestMissingAndExtraFieldsAreFound(t *testing.T) {
	theirs := describe(tensorFlowFiles(t))
	ours := describe(ourFiles())
	fields := ours["tensorflow.RunStepRequest"]
	for _, tt := range []struct {
		name   string
		fields []string
		want   string
	}{
		{"missing", fields[:len(fields)-1], "has no " + fields[len(fields)-1]},
		{"extra", append(slices.Clone(fields), "99 optional int32 extra"), "TensorFlow has no 99 optional int32 extra"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ours["tensorflow.RunStepRequest"] = tt.fields
			if faults := compare(ours, theirs); len(faults) != 1 || !strings.Contains(faults[0], tt.want) {
				t.Errorf("got faults %q, want one with %q", faults, tt.want)
			}
		})
	}
}

type findField = func(message, field string) *descriptorpb.FieldDescriptorProto

func find(t *testing.T, files []*descriptorpb.FileDescriptorProto, message, field string) *descriptorpb.FieldDescriptorProto {
	t.Helper()
	for _, file := range files {
		for _, m := range file.MessageType {
			for _, f := range m.Field {
				if m.GetName() == message && f.GetName() == field {
					return f
				}
			}
		}
	}
	t.Fatalf("no %s.%s", message, field)
	return nil
}

// ourFiles returns new descriptors of the files linked into the test.
func ourFiles() []*descriptorpb.FileDescriptorProto {
	var files []*descriptorpb.FileDescriptorProto
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if strings.HasPrefix(file.Path(), "weft/tensorflow/") {
			files = append(files, protodesc.ToFileDescriptorProto(file))
		}
		return true
	})
	return files
}

func tensorFlowFiles(t *testing.T) []*descriptorpb.FileDescriptorProto {
	t.Helper()
	packed, err := os.ReadFile("testdata/tensorflow-2.21.binpb.gz")
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	return set.File
}

// compare returns the differences of all messages and enums, sorted by name.
func compare(ours, theirs map[string][]string) []string {
	var faults []string
	for name, have := range ours {
		want, ok := theirs[name]
		if !ok {
			faults = append(faults, name+": not in TensorFlow")
			continue
		}
		for _, line := range want {
			if !slices.Contains(have, line) {
				faults = append(faults, fmt.Sprintf("%s: has no %s", name, line))
			}
		}
		for _, line := range have {
			if !slices.Contains(want, line) {
				faults = append(faults, fmt.Sprintf("%s: TensorFlow has no %s", name, line))
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// describe returns one line per field of a message and per value of an enum, by TensorFlow's full
// name.
func describe(files []*descriptorpb.FileDescriptorProto) map[string][]string {
	lines := make(map[string][]string)
	for _, file := range files {
		scope := strings.TrimPrefix(file.GetPackage(), "weft.")
		describeEnums(lines, scope, file.EnumType)
		for _, m := range file.MessageType {
			describeMessage(lines, scope, m, file.GetSyntax() == "proto3")
		}
	}
	return lines
}

func describeMessage(lines map[string][]string, scope string, m *descriptorpb.DescriptorProto, proto3 bool) {
	name := scope + "." + m.GetName()
	body := []string{}
	if m.Options.GetMapEntry() {
		body = append(body, "map")
	}
	for _, f := range m.Field {
		body = append(body, fieldLine(m, f, proto3))
	}
	lines[name] = body
	describeEnums(lines, name, m.EnumType)
	for _, nested := range m.NestedType {
		describeMessage(lines, name, nested, proto3)
	}
}

func fieldLine(m *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto, proto3 bool) string {
	lower := func(prefix string, v fmt.Stringer) string {
		return strings.ToLower(strings.TrimPrefix(v.String(), prefix))
	}
	line := fmt.Sprintf("%d %s %s%s %s", f.GetNumber(), lower("LABEL_", f.GetLabel()), lower("TYPE_", f.GetType()),
		strings.Replace(f.GetTypeName(), ".weft.", ".", 1), f.GetName())
	if isPacked(f, proto3) {
		line += " packed"
	}
	if f.GetProto3Optional() {
		line += " with presence"
	} else if f.OneofIndex != nil {
		line += " in " + m.OneofDecl[f.GetOneofIndex()].GetName()
	}
	if f.DefaultValue != nil {
		line += " default " + f.GetDefaultValue()
	}
	if f.GetOptions().GetDeprecated() {
		line += " deprecated"
	}
	return line
}

// isPacked reports whether a repeated field is packed. The default is true in proto3 and false in
// proto2.
func isPacked(f *descriptorpb.FieldDescriptorProto, proto3 bool) bool {
	if f.GetOptions() != nil && f.Options.Packed != nil {
		return f.Options.GetPacked()
	}
	switch f.GetType() {
	case descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BYTES,
		descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, descriptorpb.FieldDescriptorProto_TYPE_GROUP:
		return false
	default:
		return proto3 && f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	}
}

func describeEnums(lines map[string][]string, scope string, enums []*descriptorpb.EnumDescriptorProto) {
	for _, e := range enums {
		var body []string
		for _, v := range e.Value {
			body = append(body, fmt.Sprintf("%d %s", v.GetNumber(), v.GetName()))
		}
		lines[scope+"."+e.GetName()] = body
	}
}
