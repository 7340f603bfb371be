package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// output is the set of generated files of one directory. It owns the directory: every other .pb.go
// file there is stale.
type output struct {
	dir  string
	code map[string][]byte // by file name
}

// check returns an error unless the directory holds exactly the generated files.
func (o output) check() error {
	stale, leftover, err := o.compare()
	if err != nil {
		return err
	}
	if old := slices.Concat(stale, leftover); len(old) > 0 {
		return fmt.Errorf("%s is not current: %s: run go generate there", o.dir, strings.Join(old, ", "))
	}
	return nil
}

// write writes the generated files that differ and removes other .pb.go files.
func (o output) write() error {
	stale, leftover, err := o.compare()
	if err != nil {
		return err
	}
	for _, name := range stale {
		if err := os.WriteFile(filepath.Join(o.dir, name), o.code[name], 0o644); err != nil {
			return err
		}
	}
	for _, name := range leftover {
		if err := os.Remove(filepath.Join(o.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// compare returns the names of the files that are missing or differ, and of those that are not
// generated.
func (o output) compare() (stale, leftover []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(o.code)) {
		got, err := os.ReadFile(filepath.Join(o.dir, name))
		if err != nil && !os.IsNotExist(err) {
			return nil, nil, err
		}
		if err != nil || !bytes.Equal(got, o.code[name]) {
			stale = append(stale, name)
		}
	}
	present, err := filepath.Glob(filepath.Join(o.dir, "*.pb.go"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range present {
		if name := filepath.Base(file); o.code[name] == nil {
			leftover = append(leftover, name)
		}
	}
	return stale, leftover, nil
}
