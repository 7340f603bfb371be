// Command bundle compiles the TypeScript of the dashboard into static/app.js. It needs the packages
// that "make dashboard" installs.
//
//	go run ./bundle          write the file
//	go run ./bundle -check   fail if the file is not current
//
// It runs in the folder of its module, interop/dashboard.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	check := flag.Bool("check", false, "fail if the file is not current")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	dir, err := filepath.Abs("../../internal/inspect/dashboard")
	if err != nil {
		return err
	}
	packages, err := filepath.Abs("../../.tmp/node/dashboard/node_modules")
	if err != nil {
		return err
	}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{filepath.Join(dir, "app/src/main.tsx")}, Bundle: true, Format: api.FormatESModule, Target: api.ES2022,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsInline,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", LogLevel: api.LogLevelError, NodePaths: []string{packages}, Outfile: filepath.Join(dir, "static/app.js"),
	})
	if len(result.Errors) > 0 {
		return fmt.Errorf("%s", result.Errors[0].Text)
	}
	out := result.OutputFiles[0]
	if !check {
		return os.WriteFile(out.Path, out.Contents, 0o644)
	}
	committed, err := os.ReadFile(out.Path)
	if err != nil {
		return err
	}
	if !bytes.Equal(committed, out.Contents) {
		return fmt.Errorf("%s is not current: run \"make dashboard\" and commit it", out.Path)
	}
	return nil
}
