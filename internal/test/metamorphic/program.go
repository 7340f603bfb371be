package metamorphic

import (
	"slices"

	"github.com/weft-ml/weft/tensor"
)

// Program is the program of a client: variables that keep their values between steps, and the
// statements of one step.
type Program struct {
	Vars  []Var
	Feeds []Feed
	Body  Block // its yields are the results of a step
}

// Var is a variable, by reference or by resource handle.
type Var struct {
	Name   string
	Ref    bool
	Init   tensor.Tensor
	Device int
}

// Feed is a value that the client feeds, one per step. All have one type and shape.
type Feed struct {
	Name   string
	Values []tensor.Tensor
}

// Block is a list of statements and the names of its yields.
type Block struct {
	Stmts []Stmt
	Yield []string
}

// Kinds of statements other than operations on values.
const (
	kindConst  = "const"
	kindRead   = "read"
	kindAssign = "assign"
	kindAdd    = "add"
	kindSub    = "sub"
	kindIf     = "if"
	kindRepeat = "repeat"
	kindCall   = "call"
)

// Stmt is one statement. Kind is one of the constants above or the name of an operation.
type Stmt struct {
	Kind   string
	Out    []string
	In     []string
	Var    string        // of read, assign, add and sub
	Value  tensor.Tensor // of const
	Device int           // of an operation
	// outputs of earlier statements in the same block that it must wait for
	After []string

	Blocks     []Block  // of if (then, else), repeat and call
	Params     []string // of repeat: names of the loop variables in the body
	Functional bool     // if and repeat: operations that call functions
	Parallel   int      // of repeat: maximum of concurrent iterations
}

func (s *Stmt) hasEffect() bool {
	return s.Kind == kindAssign || s.Kind == kindAdd || s.Kind == kindSub
}

// callsFunctions reports whether the blocks of the statement are functions.
func (s *Stmt) callsFunctions() bool { return s.Functional || s.Kind == kindCall }

// Steps returns how often the program is run.
func (p *Program) Steps() int {
	if len(p.Feeds) == 0 {
		return 1
	}
	return len(p.Feeds[0].Values)
}

// Size counts statements, variables and feeds.
func (p *Program) Size() int { return len(p.Vars) + len(p.Feeds) + p.Body.size() }

func (b *Block) size() int {
	n := len(b.Stmts)
	for i := range b.Stmts {
		for j := range b.Stmts[i].Blocks {
			n += b.Stmts[i].Blocks[j].size()
		}
	}
	return n
}

// Clone returns a deep copy, except for tensors, which are never modified.
func (p *Program) Clone() *Program {
	out := &Program{Vars: slices.Clone(p.Vars), Feeds: slices.Clone(p.Feeds), Body: p.Body.clone()}
	for i := range out.Feeds {
		out.Feeds[i].Values = slices.Clone(out.Feeds[i].Values)
	}
	return out
}

func (b *Block) clone() Block {
	out := Block{Stmts: slices.Clone(b.Stmts), Yield: slices.Clone(b.Yield)}
	for i := range out.Stmts {
		s := &out.Stmts[i]
		s.Out, s.In, s.After, s.Params = slices.Clone(s.Out), slices.Clone(s.In), slices.Clone(s.After), slices.Clone(s.Params)
		s.Blocks = slices.Clone(s.Blocks)
		for j := range s.Blocks {
			s.Blocks[j] = s.Blocks[j].clone()
		}
	}
	return out
}

// walk calls f for all statements of the block and of the blocks in them, outer ones first.
func (b *Block) walk(f func(*Stmt)) {
	for i := range b.Stmts {
		f(&b.Stmts[i])
		for j := range b.Stmts[i].Blocks {
			b.Stmts[i].Blocks[j].walk(f)
		}
	}
}

// accessed returns the names of the variables that the blocks read or write, in order.
func accessed(blocks []Block) []string {
	var out []string
	for i := range blocks {
		blocks[i].walk(func(s *Stmt) {
			if s.Var != "" && !slices.Contains(out, s.Var) {
				out = append(out, s.Var)
			}
		})
	}
	slices.Sort(out)
	return out
}

// free returns the names that the blocks use and do not define, variables included, in order.
func free(blocks []Block, params []string) []string {
	defined := map[string]bool{}
	for _, name := range params {
		defined[name] = true
	}
	var out []string
	use := func(names ...string) {
		for _, name := range names {
			if name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	for i := range blocks {
		use(blocks[i].Yield...)
		blocks[i].walk(func(s *Stmt) {
			use(s.In...)
			use(s.After...)
			use(s.Var)
			for j := range s.Blocks {
				use(s.Blocks[j].Yield...)
			}
			for _, name := range slices.Concat(s.Out, s.Params) {
				defined[name] = true
			}
		})
	}
	out = slices.DeleteFunc(out, func(name string) bool { return defined[name] })
	slices.Sort(out)
	return out
}
