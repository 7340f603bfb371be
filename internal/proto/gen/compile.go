package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

// compile returns the descriptors of all .proto files below dir, with comments, sorted by path.
func compile(ctx context.Context, dir string) (linker.Files, error) {
	var paths []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".proto" {
			paths = append(paths, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no .proto files below %s", dir)
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	return compiler.Compile(ctx, paths...)
}

// generate runs protoc-gen-go on the files and returns its output by directory and file name.
func generate(ctx context.Context, root string, files linker.Files) (map[string]map[string][]byte, error) {
	in, err := proto.Marshal(request(files))
	if err != nil {
		return nil, err
	}
	plugin := exec.CommandContext(ctx, "go", "tool", "protoc-gen-go")
	plugin.Dir = root
	plugin.Stdin = bytes.NewReader(in)
	plugin.Stderr = os.Stderr
	out, err := plugin.Output()
	if err != nil {
		return nil, fmt.Errorf("protoc-gen-go: %w", err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return nil, fmt.Errorf("protoc-gen-go: %w", err)
	}
	if response.Error != nil {
		return nil, errors.New("protoc-gen-go: " + response.GetError())
	}
	code := make(map[string]map[string][]byte)
	for _, dir := range outputDirs() {
		code[dir] = map[string][]byte{}
	}
	for _, f := range response.File {
		to := code[path.Dir(f.GetName())]
		if to == nil {
			return nil, fmt.Errorf("%s: go_package must be in %s/ and one of %s", f.GetName(), module, outputDirs())
		}
		to[filepath.Base(f.GetName())] = []byte(f.GetContent())
	}
	return code, nil
}

// request returns the request for the code of the files. A plugin requires every dependency before
// the files that import it.
func request(files linker.Files) *pluginpb.CodeGeneratorRequest {
	req := &pluginpb.CodeGeneratorRequest{Parameter: new("module=" + module)}
	seen := make(map[string]bool)
	var add func(protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := range file.Imports().Len() {
			add(file.Imports().Get(i).FileDescriptor)
		}
		req.ProtoFile = append(req.ProtoFile, protodesc.ToFileDescriptorProto(file))
	}
	for _, file := range slices.SortedFunc(slices.Values(files), func(a, b linker.File) int {
		return cmp.Compare(a.Path(), b.Path())
	}) {
		req.FileToGenerate = append(req.FileToGenerate, file.Path())
		add(file)
	}
	return req
}
