// Command protogen compiles the .proto sources in proto/ and writes their Go code to
// internal/proto.
//
// It needs no installed tools: the compiler is a library, and protoc-gen-go is a tool of this
// module at the version in go.mod. With -check it writes nothing and fails if the committed code
// differs from the generated code.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

// Directories relative to the root of the module.
const (
	module     = "github.com/weft-ml/weft"
	sourcesDir = "proto"
)

// outputDirs returns the directories of the generated code, one for each go_package.
func outputDirs() []string {
	return []string{"internal/proto/pb", "internal/proto/servingpb", "internal/proto/grpcpb", "internal/proto/datapb"}
}

func main() {
	root := flag.String("root", ".", "root directory of the module")
	check := flag.Bool("check", false, "write nothing; fail if the committed code is not current")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, check bool) error {
	files, err := compile(ctx, filepath.Join(root, sourcesDir))
	if err != nil {
		return err
	}
	code, err := generate(ctx, root, files)
	if err != nil {
		return err
	}
	for _, dir := range outputDirs() {
		out := output{dir: filepath.Join(root, dir), code: code[dir]}
		do := out.write
		if check {
			do = out.check
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}
