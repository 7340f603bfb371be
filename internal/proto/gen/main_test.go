package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/weft-ml/weft/internal/proto/datapb"
	_ "github.com/weft-ml/weft/internal/proto/grpcpb"
	_ "github.com/weft-ml/weft/internal/proto/pb"
	_ "github.com/weft-ml/weft/internal/proto/servingpb"
)

// TestCommittedCodeMatchesTheSources is the part of -check that needs no plugin. It compares
// everything except comments and the layout of the Go code.
func TestCommittedCodeMatchesTheSources(t *testing.T) {
	files, err := compile(t.Context(), filepath.Join("../../..", sourcesDir))
	if err != nil {
		t.Fatal(err)
	}
	linked := make(map[string]protoreflect.FileDescriptor)
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if strings.HasPrefix(file.Path(), "weft/") {
			linked[file.Path()] = file
		}
		return true
	})
	for _, file := range files {
		committed, ok := linked[file.Path()]
		delete(linked, file.Path())
		source := protodesc.ToFileDescriptorProto(file)
		source.SourceCodeInfo = nil
		if !ok || !proto.Equal(protodesc.ToFileDescriptorProto(committed), source) {
			t.Errorf("%s: the generated code is not current: run make generate", file.Path())
		}
	}
	if len(linked) > 0 {
		t.Errorf("there is code without a source: %q", slices.Sorted(maps.Keys(linked)))
	}
}

func TestRequestOrdersDependencies(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"a.proto": `syntax = "proto3"; import "b.proto"; import "google/protobuf/any.proto"; message A { B b = 1; google.protobuf.Any any = 2; }`,
		"b.proto": `syntax = "proto3"; /* What B is. */ message B {}`,
	})
	files, err := compile(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	req := request(files)
	var order []string
	for _, file := range req.ProtoFile {
		order = append(order, file.GetName())
	}
	if want := []string{"b.proto", "google/protobuf/any.proto", "a.proto"}; !slices.Equal(order, want) {
		t.Errorf("got dependencies %q, want %q", order, want)
	}
	if want := []string{"a.proto", "b.proto"}; !slices.Equal(req.FileToGenerate, want) {
		t.Errorf("got files to generate %q, want %q", req.FileToGenerate, want)
	}
	if len(req.ProtoFile[0].GetSourceCodeInfo().GetLocation()) == 0 {
		t.Error("comments of the sources are lost")
	}
}

func TestCompileFails(t *testing.T) {
	bad := t.TempDir()
	writeFiles(t, bad, map[string]string{"bad.proto": `syntax = "proto3"; message A { Missing m = 1; }`})
	for dir, want := range map[string]string{
		bad:                              "bad.proto:1:",
		t.TempDir():                      "no .proto files",
		filepath.Join(bad, "not", "any"): "no such file",
	} {
		if _, err := compile(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", dir, err, want)
		}
	}
}

func TestOutput(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"doc.go": "hand-written", "old.pb.go": "old", "changed.pb.go": "old", "same.pb.go": "same"})
	out := output{dir: dir, code: map[string][]byte{
		"changed.pb.go": []byte("new"), "missing.pb.go": []byte("missing"), "same.pb.go": []byte("same"),
	}}
	err := out.check()
	if want := "changed.pb.go, missing.pb.go, old.pb.go:"; err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got error %v, want %q", err, want)
	}
	if err := out.write(); err != nil {
		t.Fatal(err)
	}
	if err := out.check(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "doc.go")); err != nil {
		t.Error(err)
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
