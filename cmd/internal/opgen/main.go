// Command opgen generates files from the registry of kernels: the typed builders of package op, the
// table of operation definitions for clients, and the list of operations in the documentation.
//
//	go run ./cmd/internal/opgen          write the files
//	go run ./cmd/internal/opgen -check   fail if a file is out of date
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"

	"github.com/weft-ml/weft/cmd/internal/moduleroot"
	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/kernels"
	"github.com/weft-ml/weft/opdef"
)

func main() {
	check := flag.Bool("check", false, "fail if a file is out of date, and write nothing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "opgen:", err)
		os.Exit(1)
	}
}

// entry is an operation in its written and its parsed form.
type entry struct {
	def opdef.Def
	op  *opdef.Op
}

func run(check bool) error {
	root, err := moduleroot.Find()
	if err != nil {
		return err
	}
	var entries []entry
	for _, name := range kernel.Default.Names() {
		def, _ := kernel.Default.Def(name)
		op, _ := kernel.Default.LookupOp(name)
		entries = append(entries, entry{def, op})
	}
	families, err := readFamilies(root)
	if err != nil {
		return err
	}
	builders, err := writeBuilders(entries, families)
	if err != nil {
		return err
	}
	defs, err := format.Source(writeDefs(entries))
	if err != nil {
		return fmt.Errorf("definitions: %w", err)
	}
	files := map[string][]byte{
		"op/defs_gen.go":        defs,
		"docs/reference/ops.md": writeDocs(entries),
	}
	for family, src := range builders {
		files["op/"+family+"_gen.go"] = src
	}
	if err := removeOthers(root, files, check); err != nil {
		return err
	}
	for name, want := range files {
		path := filepath.Join(root, name)
		have, err := os.ReadFile(path)
		if err == nil && bytes.Equal(have, want) {
			continue
		}
		if check {
			return fmt.Errorf("%s is out of date: run go run ./cmd/internal/opgen", name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeOthers removes the generated files of package op that are not among files.
func removeOthers(root string, files map[string][]byte, check bool) error {
	found, err := filepath.Glob(filepath.Join(root, "op/*_gen.go"))
	if err != nil {
		return err
	}
	for _, path := range found {
		name := "op/" + filepath.Base(path)
		if _, ok := files[name]; ok {
			continue
		}
		if check {
			return fmt.Errorf("%s is out of date: run go run ./cmd/internal/opgen", name)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
