// Command apilist writes api.txt: the exported API of the public packages of the module, sorted,
// with one line for each identifier. A diff of api.txt shows in review what a change does to the
// API.
//
//	go run ./cmd/internal/apilist          write api.txt
//	go run ./cmd/internal/apilist -check   fail if api.txt is not current
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-ml/weft/cmd/internal/moduleroot"
)

func main() {
	check := flag.Bool("check", false, "fail if api.txt is not current, and write nothing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "apilist:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := moduleroot.Find()
	if err != nil {
		return err
	}
	want, err := list(root)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "api.txt")
	have, err := os.ReadFile(path)
	if err == nil && bytes.Equal(have, want) {
		return nil
	}
	if check {
		return fmt.Errorf("api.txt is out of date: run \"make generate\" and commit it")
	}
	return os.WriteFile(path, want, 0o644)
}

// list returns the lines of all public packages below a folder.
func list(root string) ([]byte, error) {
	dirs, err := publicPackages(root)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, dir := range dirs {
		lines, err := listPackage(filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			fmt.Fprintf(&out, "%s: %s\n", importName(dir), line)
		}
	}
	return out.Bytes(), nil
}

// notPublic are the folders at the root whose packages are programs or tests.
var notPublic = map[string]bool{
	"bench": true, "cmd": true, "docs": true, "examples": true, "internal": true, "interop": true, "testdata": true,
}

// publicPackages returns the folders, below root, that contain Go files and that other modules may
// import, in the order of their paths.
func publicPackages(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); path != root && (notPublic[name] || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil || len(files) == 0 {
			return err
		}
		dir, err := filepath.Rel(root, path)
		dirs = append(dirs, dir)
		return err
	})
	return dirs, err
}

// importName returns the path of a package below the module, "weft" for the package at the root.
func importName(dir string) string {
	if dir == "." {
		return "weft"
	}
	return filepath.ToSlash(dir)
}
