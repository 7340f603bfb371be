package executor_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// expr is part of a random program over int64 numbers. It is evaluated in two ways that must agree:
// directly, and as a graph with Switch and Merge nodes for conditions and frames for loops.
type expr interface {
	// eval returns the value for the values of the variables.
	eval(vars []int64) int64
	// build adds the expression to a graph, in a scope that holds the values of the variables.
	build(s *scope) graph.Output
}

type (
	variable int
	literal  int64
	// apply is a sum or product. Add nodes may run on other goroutines.
	apply struct {
		op   string
		x, y expr
	}
	// choice has the value of then if x < y, and that of otherwise if not.
	choice struct{ x, y, then, otherwise expr }
	// repeat evaluates body |count%5| times. The body has one more variable, the previous result,
	// which is start at first.
	repeat struct {
		count, start, body expr
		parallel           int
	}
)

func (v variable) eval(vars []int64) int64 { return vars[v] }

func (l literal) eval([]int64) int64 { return int64(l) }

func (a apply) eval(vars []int64) int64 {
	if a.op == "Mul2" {
		return a.x.eval(vars) * a.y.eval(vars)
	}
	return a.x.eval(vars) + a.y.eval(vars)
}

func (c choice) eval(vars []int64) int64 {
	if c.x.eval(vars) < c.y.eval(vars) {
		return c.then.eval(vars)
	}
	return c.otherwise.eval(vars)
}

func times(count int64) int64 { return max(count%5, -(count % 5)) }

func (r repeat) eval(vars []int64) int64 {
	value := r.start.eval(vars)
	for range times(r.count.eval(vars)) {
		value = r.body.eval(append(slices.Clip(vars), value))
	}
	return value
}

// scope is a place in a graph: outside of all control flow, on a branch, or in a loop. A value from
// outside a scope enters it through one Switch or Enter.
type scope struct {
	b      *builder
	outer  *scope
	vars   []graph.Output // of this scope only; they follow those of the outer scopes
	enter  func(outside graph.Output) graph.Output
	inside map[graph.Output]graph.Output // from a value outside to its value inside
}

func (s *scope) variable(i int) graph.Output {
	if s.outer == nil {
		return s.vars[i]
	}
	if n := s.outer.numVars(); i >= n {
		return s.vars[i-n]
	}
	return s.importValue(s.outer.variable(i))
}

func (s *scope) numVars() int {
	if s.outer == nil {
		return len(s.vars)
	}
	return s.outer.numVars() + len(s.vars)
}

func (s *scope) importValue(v graph.Output) graph.Output {
	if in, ok := s.inside[v]; ok {
		return in
	}
	in := s.enter(v)
	s.inside[v] = in
	return in
}

// number returns a constant in the scope. The constant itself is outside of all scopes, so its
// value is dead where the scope is dead.
func (s *scope) number(v int64) graph.Output {
	if s.outer == nil {
		return s.b.number(v)
	}
	return s.importValue(s.outer.number(v))
}

func (s *scope) within(enter func(graph.Output) graph.Output) *scope {
	return &scope{b: s.b, outer: s, enter: enter, inside: map[graph.Output]graph.Output{}}
}

func (v variable) build(s *scope) graph.Output { return s.variable(int(v)) }

func (l literal) build(s *scope) graph.Output { return s.number(int64(l)) }

func (a apply) build(s *scope) graph.Output {
	return s.b.add("", a.op, nil, a.x.build(s), a.y.build(s)).Out(0)
}

func (c choice) build(s *scope) graph.Output {
	pred := s.b.add("", "Less2", nil, c.x.build(s), c.y.build(s)).Out(0)
	branch := func(port int) *scope {
		return s.within(func(v graph.Output) graph.Output {
			return s.b.add("", "Switch", opdef.Attrs{"T": tensor.Int64}, v, pred).Out(port)
		})
	}
	return s.b.merge(2, c.otherwise.build(branch(0)), c.then.build(branch(1))).Out(0)
}

func (r repeat) build(s *scope) graph.Output {
	limit := s.b.add("", "Times", nil, r.count.build(s)).Out(0)
	start, zero := r.start.build(s), s.number(0)
	frame := fmt.Sprintf("loop_%d", s.b.NumIDs()) // unique
	limit = s.b.enter(frame, limit, constEnter)
	return s.b.loop(frame, r.parallel, []graph.Output{zero, start},
		func(v []graph.Output) graph.Output { return s.b.add("", "Less2", nil, v[0], limit).Out(0) },
		func(v []graph.Output) []graph.Output {
			// In the last iteration the body is dead, so values from outside must be dead too.
			loop := s.within(func(outside graph.Output) graph.Output {
				n := s.b.typed("Identity", s.b.enter(frame, outside, constEnter))
				s.b.ConnectControl(v[0].Node, n)
				return n.Out(0)
			})
			loop.vars = v[1:]
			return []graph.Output{s.b.sum(v[0], loop.number(1)), r.body.build(loop)}
		})[1]
}

// generate returns a random expression of at most the given size over the given number of
// variables.
func generate(rng *rand.Rand, size, vars int, loops bool) expr {
	if size <= 1 {
		if rng.IntN(3) == 0 {
			return literal(rng.IntN(7) - 3)
		}
		return variable(rng.IntN(vars))
	}
	part := func(of int) expr { return generate(rng, (size-1)/of, vars, loops) }
	switch kind := rng.IntN(10); {
	case kind < 4:
		return apply{[]string{"Add2", "Mul2", "AddLater"}[rng.IntN(3)], part(2), part(2)}
	case kind < 7 || !loops:
		return choice{part(4), part(4), part(4), part(4)}
	default:
		return repeat{part(3), part(3), generate(rng, (size-1)/3, vars+1, loops), []int{1, 2, 10}[rng.IntN(3)]}
	}
}

// TestRandomPrograms compares the executor with the direct evaluation of random programs.
func TestRandomPrograms(t *testing.T) {
	defer parallel.SetThreads(parallel.SetThreads(3))
	const vars = 3
	n := 400
	if testing.Short() {
		n = 40
	}
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 4))
		program := generate(rng, 5+rng.IntN(120), vars, seed%2 == 1)
		b := newBuilder(t)
		s := &scope{b: b}
		for i := range vars {
			s.vars = append(s.vars, b.arg(i, tensor.Int64))
		}
		b.ret(0, program.build(s))
		e := b.compile()
		for i := range 4 {
			if i > 0 {
				e.Fuse(1+rng.IntN(3), 2+rng.IntN(20))
			}
			args := []int64{rng.Int64N(9) - 4, rng.Int64N(100) - 50, rng.Int64N(3)}
			rets, err := call(t, e, 1, args...)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if want := program.eval(args); !rets[0].Initialized() || tensor.Value[int64](&rets[0]) != want {
				t.Fatalf("seed %d, arguments %v: got %v, want %d", seed, args, &rets[0], want)
			}
		}
	}
}

// TestRandomDeadness compares which nodes of random acyclic graphs are dead with a recursive
// definition.
func TestRandomDeadness(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		d := &deadGraph{b: newBuilder(t), memo: map[*graph.Node][]bool{}}
		d.grow(rng, 60)
		var rets []graph.Output
		for n := range d.b.Nodes() {
			if n.Op.Name != "Const" && n.Op.Name != "ControlTrigger" {
				rets = append(rets, n.Out(0))
			}
		}
		for i, v := range rets {
			d.b.ret(i, v)
		}
		e := d.b.compile()
		for _, fused := range []bool{false, true} {
			if fused {
				e.Fuse(1, 2+rng.IntN(20))
			}
			got, err := call(t, e, len(rets))
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range rets {
				if live := got[i].Initialized(); live != d.live(v.Node)[v.Index] {
					t.Fatalf("seed %d, fused %t: %s is live: %t, want %t", seed, fused, v.Node.Name, live, !live)
				}
			}
		}
	}
}

// deadGraph is a random graph of Switch and Merge nodes with control edges. Every Merge takes both
// sides of one Switch, so at most one of its inputs is live.
type deadGraph struct {
	b    *builder
	memo map[*graph.Node][]bool // whether each output is live
}

func (d *deadGraph) grow(rng *rand.Rand, n int) {
	b := d.b
	values := []graph.Output{b.number(1), b.number(2)}
	nodes := []*graph.Node{values[0].Node, values[1].Node}
	type sides struct{ onFalse, onTrue graph.Output }
	var switches []sides
	pick := func() graph.Output { return values[rng.IntN(len(values))] }
	for range n {
		var made *graph.Node
		switch rng.IntN(6) {
		case 0, 1:
			onFalse, onTrue := b.sw(pick(), b.constant(tensor.Scalar(rng.IntN(2) == 0)))
			switches = append(switches, sides{onFalse, onTrue})
			values = append(values, onFalse, onTrue)
			made = onFalse.Node
		case 2:
			if len(switches) == 0 {
				continue
			}
			s := switches[rng.IntN(len(switches))]
			made = b.merge(2, s.onFalse, s.onTrue)
			values = append(values, made.Out(0))
		case 3:
			made = b.add("", "ControlTrigger", nil)
			b.ConnectControl(nodes[rng.IntN(len(nodes))], made)
		default:
			made = b.sum(pick(), pick()).Node
			values = append(values, made.Out(0))
		}
		for rng.IntN(4) == 0 {
			b.ConnectControl(nodes[rng.IntN(len(nodes))], made)
		}
		nodes = append(nodes, made)
	}
}

// live reports for each output of a node whether it is live. A node without outputs has one
// element, for its control edges.
func (d *deadGraph) live(n *graph.Node) []bool {
	if known, ok := d.memo[n]; ok {
		return known
	}
	ins := 0
	for _, in := range n.Inputs() {
		if d.live(in.Node)[in.Index] {
			ins++
		}
	}
	controls := true
	for _, c := range n.ControlInputs() {
		controls = controls && d.runs(c)
	}
	runs := controls && ins == n.NumInputs()
	switch n.Op.Name {
	case "ControlTrigger":
		runs = true
	case "Merge":
		// A dead control input does not make a Merge with a live input dead.
		runs = ins > 0
	}
	out := []bool{runs, runs}
	if n.Op.Name == "Switch" && runs {
		pred := n.Input(1).Node.Attrs.Tensor("value")
		out[0], out[1] = !tensor.Value[bool](pred), tensor.Value[bool](pred)
	}
	d.memo[n] = out
	return out
}

// runs reports whether a node is executed, that is, whether its control edges are live.
func (d *deadGraph) runs(n *graph.Node) bool {
	out := d.live(n)
	return out[0] || out[1]
}
