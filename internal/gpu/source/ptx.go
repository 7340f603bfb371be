//go:build gpu

package source

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"strings"
	"sync"
)

//go:embed ptx
var compiled embed.FS

func init() { ptx = ptxOf }

// assembly is the PTX of a family: what all kernels need, and the kernels by name.
type assembly struct {
	once    sync.Once
	head    string
	kernels map[string]string
	err     error
}

var assemblies sync.Map // *assembly by family

// ptxOf returns a program with the kernels of p alone, since the driver compiles all that it gets.
func ptxOf(p *Program) string {
	found, _ := assemblies.LoadOrStore(p.Family, new(assembly))
	a := found.(*assembly) //nolint:forcetypeassert // the map has no other values
	a.once.Do(func() { a.err = a.read(p.Family) })
	if a.err != nil {
		panic(a.err) // the file is embedded
	}
	var b strings.Builder
	b.WriteString(a.head)
	for _, k := range p.Kernels {
		b.WriteString(a.kernels[k])
	}
	return b.String()
}

func (a *assembly) read(family string) error {
	packed, err := compiled.ReadFile("ptx/" + family + ".ptx.gz")
	if err != nil {
		return err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	a.head, a.kernels, err = splitPTX(string(text))
	if err != nil {
		return fmt.Errorf("source: PTX of %s: %w", family, err)
	}
	return nil
}
