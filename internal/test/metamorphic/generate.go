package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weft-ml/weft/tensor"
)

// Devices is the number of devices that the statements of a random program use.
const Devices = 4

// Generate returns the random program of a seed.
func Generate(seed uint64) *Program {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0xbeef)), types: map[string]Type{}}
	p := &Program{}
	for range 1 + g.IntN(4) {
		t := g.randomType()
		v := Var{Name: g.name("v"), Ref: t.isNumber() && g.IntN(2) == 0, Init: g.value(t), Device: g.IntN(Devices)}
		g.types[v.Name] = t
		p.Vars = append(p.Vars, v)
	}
	g.vars = p.Vars
	steps := 1 + g.IntN(3)
	var visible []string
	for i := range 1 + g.IntN(4) {
		t := g.randomType()
		if i == 0 {
			t = Type{tensor.Int32, scalar} // usable as a number of iterations
		}
		f := Feed{Name: g.name("x")}
		for range steps {
			f.Values = append(f.Values, g.value(t))
		}
		g.types[f.Name] = t
		p.Feeds, visible = append(p.Feeds, f), append(visible, f.Name)
	}
	p.Body = g.block(blockContext{visible: visible, vars: p.Vars, depth: 3}, 4+g.IntN(24))
	p.Body.Yield = g.results(&p.Body, visible, 1+g.IntN(4))
	return p
}

type generator struct {
	*rand.Rand
	types map[string]Type
	vars  []Var
	names int
}

// blockContext is the context of a random block.
type blockContext struct {
	visible []string // names of values
	vars    []Var    // variables that it may use
	depth   int      // maximum nesting of blocks in it
}

func (g *generator) name(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

func (g *generator) randomType() Type {
	return Type{dtypes[g.IntN(len(dtypes))], []string{scalar, scalar, vector, matrix}[g.IntN(4)]}
}

func (g *generator) value(t Type) tensor.Tensor {
	n := size(t)
	numbers := make([]int32, n)
	for i := range numbers {
		numbers[i] = int32(g.IntN(9) - 4)
	}
	switch t.DType {
	case tensor.Bool:
		vals := make([]bool, n)
		for i := range vals {
			vals[i] = g.IntN(2) == 0
		}
		return fromSlice(t.Shape, vals)
	case tensor.String:
		vals := make([]string, n)
		for i := range vals {
			vals[i] = []string{"", "a", "weft", "xyz", "-7"}[g.IntN(5)]
		}
		return fromSlice(t.Shape, vals)
	case tensor.Float32, tensor.Float64:
		vals := make([]float64, n)
		for i := range vals {
			vals[i] = float64(numbers[i]) * []float64{1, 0.5, 0.1, 1e6}[g.IntN(4)]
		}
		return castOf(fromSlice(t.Shape, vals), t.DType)
	default:
		return castOf(fromSlice(t.Shape, numbers), t.DType)
	}
}

// block returns a random block of n statements without yields.
func (g *generator) block(in blockContext, n int) Block {
	var b Block
	in.visible = slices.Clone(in.visible)
	for range n {
		s := g.stmt(in)
		if s == nil {
			continue
		}
		if operations[s.Kind].arity > 0 && g.IntN(6) == 0 {
			s.After = g.earlier(&b)
		}
		b.Stmts = append(b.Stmts, *s)
		in.visible = append(in.visible, s.Out...)
	}
	return b
}

// earlier returns the name of a value of an earlier statement in the block.
func (g *generator) earlier(b *Block) []string {
	if len(b.Stmts) == 0 {
		return nil
	}
	if s := b.Stmts[g.IntN(len(b.Stmts))]; len(s.Out) > 0 {
		return s.Out[:1]
	}
	return nil
}

// stmt returns a random statement, or nil if there are no suitable values.
func (g *generator) stmt(in blockContext) *Stmt {
	switch kind := g.IntN(24); {
	case kind < 2:
		return g.constant(g.randomType())
	case kind < 8:
		return g.variable(in)
	case kind < 10 && in.depth > 0:
		return g.condition(in)
	case kind < 12 && in.depth > 0:
		return g.loop(in)
	case kind < 13 && in.depth > 0:
		return g.call(in)
	default:
		return g.operation(in)
	}
}

func (g *generator) define(s *Stmt, t Type) *Stmt {
	name := g.name(map[bool]string{true: "c", false: "a"}[s.Kind == kindConst])
	s.Out, g.types[name] = append(s.Out, name), t
	return s
}

func (g *generator) constant(t Type) *Stmt {
	return g.define(&Stmt{Kind: kindConst, Value: g.value(t)}, t)
}

// pick returns a suitable value, recent ones with a higher probability, or "".
func (g *generator) pick(in blockContext, suits func(Type) bool) string {
	names := slices.DeleteFunc(slices.Clone(in.visible), func(n string) bool { return !suits(g.types[n]) })
	if len(names) == 0 {
		return ""
	}
	return names[max(g.IntN(len(names)), g.IntN(len(names)))]
}

var operationNames = func() []string {
	var names []string
	for name := range operations {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

func (g *generator) operation(in blockContext) *Stmt {
	const tries = 20
	for range tries {
		s := &Stmt{Kind: operationNames[g.IntN(len(operationNames))], Device: g.IntN(Devices)}
		o := operations[s.Kind]
		types := make([]Type, o.arity)
		for i := range types {
			name := g.pick(in, func(Type) bool { return true })
			s.In, types[i] = append(s.In, name), g.types[name]
		}
		if out, ok := o.result(types); ok {
			return g.define(s, out)
		}
	}
	return nil
}

func (g *generator) variable(in blockContext) *Stmt {
	if len(in.vars) == 0 {
		return nil
	}
	v := in.vars[g.IntN(len(in.vars))]
	t := g.types[v.Name]
	s := &Stmt{Kind: []string{kindRead, kindAssign, kindAdd, kindSub}[g.IntN(4)], Var: v.Name}
	if s.Kind == kindRead {
		return g.define(s, t)
	}
	value := g.pick(in, func(u Type) bool { return u == t })
	if value == "" || s.Kind != kindAssign && !t.isNumber() {
		s.Kind = kindRead
		return g.define(s, t)
	}
	s.In = []string{value}
	return s
}

// inside returns the context of the blocks of a statement. In a function it contains only variables
// by handle, on one device.
func (g *generator) inside(in blockContext, function bool) blockContext {
	in.depth--
	if function && len(in.vars) > 0 {
		device := in.vars[g.IntN(len(in.vars))].Device
		in.vars = slices.DeleteFunc(slices.Clone(in.vars), func(v Var) bool { return v.Ref || v.Device != device })
	}
	return in
}

func (g *generator) condition(in blockContext) *Stmt {
	pred := g.pick(in, func(t Type) bool { return t == Type{tensor.Bool, scalar} })
	if pred == "" {
		return nil
	}
	s := &Stmt{Kind: kindIf, In: []string{pred}, Functional: g.IntN(3) == 0, Device: g.IntN(Devices)}
	inner := g.inside(in, s.Functional)
	types := make([]Type, g.IntN(3))
	for i := range types {
		types[i] = g.types[g.pick(in, func(Type) bool { return true })]
	}
	for range 2 {
		b := g.block(inner, g.IntN(6))
		for _, t := range types {
			g.yield(&b, inner, t)
		}
		s.Blocks = append(s.Blocks, b)
	}
	for _, t := range types {
		g.define(s, t)
	}
	return s
}

func (g *generator) loop(in blockContext) *Stmt {
	count := g.pick(in, func(t Type) bool { return t == Type{tensor.Int32, scalar} })
	if count == "" {
		return nil
	}
	s := &Stmt{Kind: kindRepeat, In: []string{count}, Functional: g.IntN(3) == 0, Device: g.IntN(Devices)}
	s.Parallel = []int{1, 2, 10}[g.IntN(3)]
	inner := g.inside(in, s.Functional)
	inner.visible = slices.Clone(inner.visible)
	var types []Type
	for range 1 + g.IntN(3) {
		start, param := g.pick(in, func(Type) bool { return true }), g.name("i")
		t := g.types[start]
		s.In, s.Params, types = append(s.In, start), append(s.Params, param), append(types, t)
		g.types[param] = t
		inner.visible = append(inner.visible, param)
	}
	b := g.block(inner, 1+g.IntN(6))
	for _, t := range types {
		g.yield(&b, inner, t)
	}
	s.Blocks = []Block{b}
	for _, t := range types {
		g.define(s, t)
	}
	return s
}

func (g *generator) call(in blockContext) *Stmt {
	s := &Stmt{Kind: kindCall, Device: g.IntN(Devices)}
	inner := g.inside(in, true)
	b := g.block(inner, 1+g.IntN(6))
	b.Yield = g.results(&b, inner.visible, 1+g.IntN(2))
	for _, name := range b.Yield {
		g.define(s, g.types[name])
	}
	s.Blocks = []Block{b}
	return s
}

// yield adds a yield of type t to a block.
func (g *generator) yield(b *Block, in blockContext, t Type) {
	in.visible = slices.Concat(in.visible, made(b))
	name := g.pick(in, func(u Type) bool { return u == t })
	if name == "" {
		s := g.constant(t)
		b.Stmts, name = append(b.Stmts, *s), s.Out[0]
	}
	b.Yield = append(b.Yield, name)
}

// results returns n values that a block can yield.
func (g *generator) results(b *Block, visible []string, n int) []string {
	in := blockContext{visible: slices.Concat(visible, made(b))}
	out := make([]string, n)
	for i := range out {
		out[i] = g.pick(in, func(Type) bool { return true })
	}
	return out
}

func made(b *Block) []string {
	var out []string
	for i := range b.Stmts {
		out = append(out, b.Stmts[i].Out...)
	}
	return out
}
