package metamorphic

import (
	"slices"

	"github.com/weft-ml/weft/tensor"
)

// Minimize returns a small program for which fails returns true. fails(p) must be true.
func Minimize(p *Program, fails func(*Program) bool) *Program {
	for smaller := true; smaller; {
		smaller = false
		for i := 0; ; i++ {
			candidate := p.Clone()
			if !edit(candidate, i) {
				break
			}
			if _, err := Check(candidate); err == nil && candidate.weight() < p.weight() && fails(candidate) {
				p, smaller = candidate, true
				i--
			}
		}
	}
	return p
}

// weight orders programs: fewer statements first, then fewer of everything else.
func (p *Program) weight() int {
	n := 1000*p.Size() + 10*len(p.Body.Yield) + 100*p.Steps()
	for _, v := range p.Vars {
		n += min(v.Device, 1)
	}
	p.Body.walk(func(s *Stmt) {
		n += len(s.After) + min(s.Device, 1) + 10*len(s.In)
		if s.Kind != kindConst {
			n += 100
		}
		if s.Functional {
			n++
		}
	})
	return n
}

// edit applies change number i to a program and reports whether there is such a change. The result
// may be invalid.
func edit(p *Program, i int) bool {
	e := editor{program: p, left: i}
	for at := range p.Vars {
		e.change(func() { p.Vars = slices.Delete(p.Vars, at, at+1) })
		e.change(func() { p.Vars[at].Device = 0 })
	}
	for at := range p.Feeds {
		e.change(func() { p.Feeds = slices.Delete(p.Feeds, at, at+1) })
		e.change(func() { e.feedBecomesConstant(at) })
	}
	for step := range p.Steps() {
		e.change(func() {
			for at := range p.Feeds {
				p.Feeds[at].Values = slices.Delete(p.Feeds[at].Values, step, step+1)
			}
		})
	}
	for at := range p.Body.Yield {
		e.change(func() { p.Body.Yield = slices.Delete(p.Body.Yield, at, at+1) })
	}
	e.block(&p.Body)
	return e.done
}

type editor struct {
	program *Program
	left    int // number of changes to skip
	done    bool
}

func (e *editor) change(f func()) {
	if e.done {
		return
	}
	if e.left > 0 {
		e.left--
		return
	}
	e.done = true
	f()
}

func (e *editor) feedBecomesConstant(at int) {
	f := e.program.Feeds[at]
	e.program.Feeds = slices.Delete(e.program.Feeds, at, at+1)
	s := Stmt{Kind: kindConst, Out: []string{f.Name}, Value: f.Values[0]}
	e.program.Body.Stmts = slices.Insert(e.program.Body.Stmts, 0, s)
}

// block applies changes to the statements of a block. A change may remove them, so they are not
// accessed after it.
func (e *editor) block(b *Block) {
	for at := 0; at < len(b.Stmts) && !e.done; at++ {
		s := &b.Stmts[at]
		e.change(func() { b.Stmts = slices.Delete(b.Stmts, at, at+1) })
		if !e.done {
			e.stmt(b, at, s)
		}
		for j := 0; j < len(s.Blocks) && !e.done; j++ {
			e.block(&s.Blocks[j])
		}
	}
}

func (e *editor) stmt(b *Block, at int, s *Stmt) {
	e.change(func() { s.Device = 0 })
	e.change(func() { s.After = nil })
	e.change(func() { s.Functional = false })
	for j := range s.Blocks {
		e.change(func() { e.inline(b, at, j) })
	}
	if len(s.Blocks) > 0 {
		for k := range s.Out {
			e.change(func() { s.dropResult(k) })
		}
	} else if len(s.Out) == 1 && s.Kind != kindConst && !e.done {
		e.simplify(b, at, s)
	}
}

// simplify replaces a statement with one result by one of its arguments or by a constant.
func (e *editor) simplify(b *Block, at int, s *Stmt) {
	types, err := Check(e.program)
	if err != nil {
		return
	}
	t := types[s.Out[0]]
	for _, in := range s.In {
		if types[in] == t {
			e.change(func() {
				out := s.Out[0]
				b.Stmts = slices.Delete(b.Stmts, at, at+1)
				e.program.rename(out, in)
			})
		}
	}
	e.change(func() {
		zero, err := tensor.Zeros(t.DType, t.shape())
		if err == nil {
			*s = Stmt{Kind: kindConst, Out: s.Out, Value: zero}
		}
	})
}

// dropResult removes result k of a statement with blocks, and the corresponding loop variable.
func (s *Stmt) dropResult(k int) {
	s.Out = slices.Delete(s.Out, k, k+1)
	for j := range s.Blocks {
		s.Blocks[j].Yield = slices.Delete(s.Blocks[j].Yield, k, k+1)
	}
	if s.Kind == kindRepeat {
		s.Params, s.In = slices.Delete(s.Params, k, k+1), slices.Delete(s.In, 1+k, 2+k)
	}
}

// inline replaces a statement by the statements of its block j.
func (e *editor) inline(b *Block, at, j int) {
	s := b.Stmts[at]
	inner := s.Blocks[j]
	b.Stmts = slices.Replace(b.Stmts, at, at+1, inner.Stmts...)
	for i, name := range s.Params {
		e.program.rename(name, s.In[1+i])
		renameIn(inner.Yield, name, s.In[1+i])
	}
	for i, name := range s.Out {
		e.program.rename(name, inner.Yield[i])
	}
}

// rename replaces the uses of a value by another value.
func (p *Program) rename(from, to string) {
	renameIn(p.Body.Yield, from, to)
	p.Body.walk(func(s *Stmt) {
		renameIn(s.In, from, to)
		renameIn(s.After, from, to)
		for j := range s.Blocks {
			renameIn(s.Blocks[j].Yield, from, to)
		}
	})
}

func renameIn(names []string, from, to string) {
	for i := range names {
		if names[i] == from {
			names[i] = to
		}
	}
}
