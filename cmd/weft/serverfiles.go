package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/objectstore"
	"github.com/weft-ml/weft/internal/inspect/otlp"
	"github.com/weft-ml/weft/internal/sys/sandbox"
	"github.com/weft-ml/weft/server"
)

// fileFlags are the flags of weft server about the files of operations.
type fileFlags struct {
	roots []string
	names int
	calls int
	// sandbox is the mode of --sandbox
	sandbox string
}

func (f *fileFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.roots, "file-root", nil, "folder that operations may use, also one of a store (s3://BUCKET/PATH, gs://BUCKET/PATH), as `NAME=DIR` or NAME=DIR:ro for reading only; may be repeated. "+
		"Without it they may use all files that the task may use, or none with --insecure on a network")
	flags.StringVar(&f.sandbox, "sandbox", string(sandbox.Off), "restrict the process to the files of --file-root and to the ports of the cluster: off, on (as far as the kernel can) or require")
	flags.IntVar(&f.calls, "max-file-calls", 64, "file calls at a time; further ones wait until their step ends")
	flags.IntVar(&f.names, "max-file-names", 100_000, "number of names of files that a pattern may look at; 0 for any")
}

// options returns the options of the server.
func (f *fileFlags) options() ([]server.Option, error) {
	if f.calls < 1 {
		return nil, fmt.Errorf("--max-file-calls must be positive")
	}
	if f.names < 0 {
		return nil, fmt.Errorf("--max-file-names cannot be negative")
	}
	switch mode := sandbox.Mode(f.sandbox); {
	case mode != sandbox.Off && mode != sandbox.On && mode != sandbox.Require:
		return nil, fmt.Errorf("--sandbox %q: want off, on or require", f.sandbox)
	case mode != sandbox.Off && len(f.roots) == 0:
		return nil, fmt.Errorf("--sandbox %s needs --file-root: without it operations may use all files", f.sandbox)
	}
	opts := []server.Option{server.WithMaxFileNames(f.names), server.WithMaxFileCalls(f.calls)}
	for _, root := range f.roots {
		name, dir, readOnly, ok := cutRoot(root)
		if !ok || name == "" || dir == "" {
			return nil, fmt.Errorf("--file-root %q: want NAME=DIR or NAME=DIR:ro", root)
		}
		opts = append(opts, server.WithFileRoot(name, dir, readOnly))
	}
	return opts, nil
}

// cutRoot returns the parts of a --file-root.
func cutRoot(root string) (name, dir string, readOnly, ok bool) {
	name, dir, ok = strings.Cut(root, "=")
	dir, readOnly = strings.CutSuffix(dir, ":ro")
	return name, dir, readOnly, ok
}

// enterSandbox restricts the process to the file roots, other folders that it reads and writes, and
// the ports of a cluster and of a collector of traces, as --sandbox says.
func (f *fileFlags) enterSandbox(spec cluster.Spec, traces *otlp.Provider, reads, writes []string) error {
	rules := sandbox.Rules{ReadOnly: reads, ReadWrite: writes}
	if traces != nil {
		rules.Connect = append(rules.Connect, traces.Port)
	}
	for _, root := range f.roots {
		switch _, dir, readOnly, _ := cutRoot(root); {
		case fileio.IsRemote(dir):
			needs, err := objectstore.NeedsOf(objectstore.Scheme(dir))
			if err != nil {
				return err
			}
			rules.ReadOnly, rules.Connect = append(rules.ReadOnly, needs.Files...), append(rules.Connect, needs.Ports...)
		case readOnly:
			rules.ReadOnly = append(rules.ReadOnly, dir)
		default:
			rules.ReadWrite = append(rules.ReadWrite, dir)
		}
	}
	for _, task := range spec.Tasks() {
		_, port, err := net.SplitHostPort(spec.Address(task))
		if err != nil {
			continue // it cannot be reached, either
		}
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			rules.Connect = append(rules.Connect, uint16(n))
		}
	}
	return sandbox.Enter(sandbox.Mode(f.sandbox), rules)
}
