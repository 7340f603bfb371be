// Package cases has launches of every kernel of package source, with inputs, for comparing devices:
// each driver must compute what the Go twins of the kernels compute (package twins on hostgpu).
package cases

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/source"
)

// A Case is one launch of a kernel.
type Case struct {
	Kernel        string
	What          string // which of the kernel's launches
	Groups, Items [3]int
	// Args are *Buffer, integers, floats and driver.Struct, as for driver.Stream.Launch.
	Args []any
	// ULP is the allowed difference of floating-point results, in units of the last place. Rel is
	// an allowed relative difference besides, and Abs an allowed absolute one.
	ULP, Rel, Abs float64
}

// A Buffer is memory on the device, with its contents before the launch.
type Buffer struct {
	Type string // element type, as in the names of kernels
	Data []byte
	Out  bool // the kernel changes it, so it is compared
}

// String returns the name of a case.
func (c *Case) String() string { return c.Kernel + " " + c.What }

// All returns the launches of all kernels, in a fixed order.
func All() []Case {
	var out []Case
	for _, p := range source.Programs() {
		out = append(out, Of(p)...)
	}
	return out
}

// Of returns the launches of the kernels of a program. It panics if there are none for a kernel.
func Of(p *source.Program) []Case {
	make, ok := makers[p.Macro]
	if !ok {
		panic("cases: no launches of " + p.Macro)
	}
	var out []Case
	for _, k := range p.Kernels {
		h := fnv.New64a()
		_, _ = h.Write([]byte(k)) // never fails
		g := &maker{program: p, kernel: k, r: rand.New(rand.NewPCG(h.Sum64(), 1))}
		make(g)
		if len(g.cases) == 0 {
			panic("cases: no launches of the kernel " + k)
		}
		out = append(out, g.cases...)
	}
	return out
}

// maker makes the launches of one kernel.
type maker struct {
	program *source.Program
	kernel  string
	r       *rand.Rand
	cases   []Case
}

// t returns type i of the program.
func (m *maker) t(i int) string { return m.program.Types[i] }

// is reports whether the kernel is the form of its line with the given suffix.
func (m *maker) is(suffix string) bool {
	return len(m.kernel) >= len(suffix) && m.kernel[len(m.kernel)-len(suffix):] == suffix
}

// line returns the shape of a launch over n elements with few groups, so that items loop.
func line(n int64) (groups, items [3]int) {
	return [3]int{int(max(1, min((n+255)/256, 5))), 1, 1}, [3]int{256, 1, 1}
}

// add adds a launch over n elements.
func (m *maker) add(what string, n int64, ulp float64, args ...any) *Case {
	groups, items := line(n)
	m.cases = append(m.cases, Case{Kernel: m.kernel, What: what, Groups: groups, Items: items, Args: args, ULP: ulp})
	return &m.cases[len(m.cases)-1]
}

// group adds a launch with groups of given shapes.
func (m *maker) group(what string, groups, items [3]int, ulp float64, args ...any) *Case {
	m.cases = append(m.cases, Case{Kernel: m.kernel, What: what, Groups: groups, Items: items, Args: args, ULP: ulp})
	return &m.cases[len(m.cases)-1]
}

// Run launches a case on a device and returns the buffers that the kernel changes.
func Run(d driver.Device, s driver.Stream, k driver.Kernel, c *Case) ([][]byte, error) {
	args := slices.Clone(c.Args)
	var mems []driver.Mem
	defer func() {
		for _, m := range mems {
			_ = d.Free(m) // an error of the device shows in Sync
		}
	}()
	var outs [][]byte
	var from []driver.Mem
	for i, a := range args {
		b, ok := a.(*Buffer)
		if !ok {
			continue
		}
		// Guard bytes around each buffer find accesses outside of it on drivers that check.
		mem, err := d.Alloc(len(b.Data) + 512)
		if err != nil {
			return nil, err
		}
		mems = append(mems, mem)
		piece := mem.Slice(256, len(b.Data))
		if err := s.ToDevice(piece, b.Data); err != nil {
			return nil, err
		}
		args[i] = piece
		if b.Out {
			outs, from = append(outs, make([]byte, len(b.Data))), append(from, piece)
		}
	}
	if err := s.Launch(k, c.Groups, c.Items, args...); err != nil {
		return nil, err
	}
	for i := range outs {
		if err := s.ToHost(outs[i], from[i]); err != nil {
			return nil, err
		}
	}
	if err := s.Sync(); err != nil {
		return nil, fmt.Errorf("%v: %w", c, err)
	}
	return outs, nil
}
