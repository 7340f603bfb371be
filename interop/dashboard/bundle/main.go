// Command bundle compiles the TypeScript of the dashboard into static/app.js, and collects the
// licenses of the packages that it contains. It needs the packages
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
	notices, err := licenses(packages)
	if err != nil {
		return err
	}
	out := result.OutputFiles[0]
	for path, contents := range map[string][]byte{out.Path: out.Contents, filepath.Join(dir, "static/licenses.txt"): notices} {
		if err := put(path, contents, check); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file, or fails with check if it is not current.
func put(path string, contents []byte, check bool) error {
	if !check {
		return os.WriteFile(path, contents, 0o644)
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(committed, contents) {
		return fmt.Errorf("%s is not current: run \"make dashboard\" and commit it", path)
	}
	return nil
}

// licenses returns the licenses of the packages that the script contains.
func licenses(packages string) ([]byte, error) {
	var out bytes.Buffer
	for _, name := range []string{"@dagrejs/dagre", "preact", "uplot"} {
		text, err := os.ReadFile(filepath.Join(packages, name, "LICENSE"))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "app.js contains %s:\n\n%s\n\n", name, bytes.TrimSpace(text))
	}
	return out.Bytes(), nil
}
