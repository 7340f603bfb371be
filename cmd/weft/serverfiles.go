package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/server"
)

// fileFlags are the flags of weft server about the files of operations.
type fileFlags struct {
	roots []string
	names int
}

func (f *fileFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.roots, "file-root", nil, "folder that operations may use, as `NAME=DIR` or NAME=DIR:ro for reading only; may be repeated. "+
		"Without it they may use all files that the task may use")
	flags.IntVar(&f.names, "max-file-names", 100_000, "number of names of files that a pattern may look at; 0 for any")
}

// options returns the options of the server.
func (f *fileFlags) options() ([]server.Option, error) {
	if f.names < 0 {
		return nil, fmt.Errorf("--max-file-names cannot be negative")
	}
	opts := []server.Option{server.WithMaxFileNames(f.names)}
	for _, root := range f.roots {
		name, dir, ok := strings.Cut(root, "=")
		dir, readOnly := strings.CutSuffix(dir, ":ro")
		if !ok || name == "" || dir == "" {
			return nil, fmt.Errorf("--file-root %q: want NAME=DIR or NAME=DIR:ro", root)
		}
		opts = append(opts, server.WithFileRoot(name, dir, readOnly))
	}
	return opts, nil
}
