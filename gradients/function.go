package gradients

import (
	"fmt"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	Register(func(c *Call) []Grad {
		args := c.floating(c.grads)
		f := c.backward(c.Node.Attrs.Func("f"), c.Node.Inputs(), args)
		return c.received(0, op.Call(c.S, f, slices.Concat(c.Node.Inputs(), c.dys(args))...))
	}, "PartitionedCall", "StatefulPartitionedCall")
	Register(func(c *Call) []Grad {
		attrs := c.Node.Attrs
		return branches(c, func(input []op.Output, types []tensor.DType, f []opdef.Func) []op.Output {
			if c.Node.Op.Name == "If" {
				return op.If(c.S, c.In(0), input, types, f[0], f[1])
			}
			return op.StatelessIf(c.S, c.In(0), input, types, f[0], f[1])
		}, attrs.Func("then_branch"), attrs.Func("else_branch"))
	}, "If", "StatelessIf")
	Register(func(c *Call) []Grad {
		return branches(c, func(input []op.Output, types []tensor.DType, f []opdef.Func) []op.Output {
			if c.Node.Op.Name == "Case" {
				return op.Case(c.S, c.In(0), input, types, f)
			}
			return op.StatelessCase(c.S, c.In(0), input, types, f)
		}, c.Node.Attrs.Funcs("branches")...)
	}, "Case", "StatelessCase")
	Register(whileGrad, "While", "StatelessWhile")
}

// floating returns the outputs that have a gradient.
func (c *Call) floating(grads []Grad) []int {
	var out []int
	for i, g := range grads {
		if !g.IsNone() {
			out = append(out, i)
		}
	}
	return out
}

// dys returns the gradients of some outputs as tensors.
func (c *Call) dys(which []int) []op.Output {
	out := make([]op.Output, len(which))
	for k, i := range which {
		out[k] = c.DY(i)
	}
	return out
}

// varying returns the indices of the values whose gradients a function can return as tensors.
func varying(values []op.Output) []int {
	var out []int
	for i, o := range values {
		if t := o.DType().Base(); t.IsFloating() || t.IsComplex() {
			out = append(out, i)
		}
	}
	return out
}

// received assigns the gradients that a backward function returned to the inputs from index first
// on.
func (c *Call) received(first int, dxs []op.Output) []Grad {
	grads := c.None()
	for k, i := range varying(c.Node.Inputs()[first:]) {
		if k < len(dxs) {
			grads[first+i] = Of(dxs[k])
		}
	}
	return grads
}

// backward adds the function that differentiates a function f by some inputs. Its arguments are
// those of f and the gradients of the results that have one. Its results are the gradients of the
// differentiable inputs. It runs f again for the values that it needs. It returns nil after a build
// error.
//
// Calls of the same function with the same types and results share the function that it adds. So n
// functions that call each other have at most n gradient functions for each combination, although
// the calls can be a tree of 2ⁿ.
func (c *Call) backward(f opdef.Func, inputs []op.Output, results []int) *op.Function {
	key := backwardKey(f, inputs, results)
	if have := c.nest.made[key]; have != nil {
		return have
	}
	nest, err := c.nest.enter(f)
	if err != nil {
		c.S.Fail(err)
		return nil
	}
	g := c.S.Graph()
	body, err := g.Library.InstantiateBody(f, g.Ops())
	if err == nil {
		err = keepRepeatable(body, results, f.Name, nest.repeatable)
	}
	if err == nil {
		err = nest.count(body.Graph)
	}
	if err != nil {
		c.S.Fail(err)
		return nil
	}
	args := make([]tensor.DType, 0, len(inputs)+len(results))
	for _, o := range inputs {
		args = append(args, o.DType().Base())
	}
	for _, i := range results {
		args = append(args, c.Node.OutTypes[i].Base())
	}
	made := op.NewFunction(c.S, f.Name+"_grad", args, func(s *op.Scope, args []op.Output) []op.Output {
		dxs := differentiateBody(s, nest, body, args, inputs, results)
		if err := nest.count(s.Graph()); err != nil {
			s.Fail(err)
		}
		return dxs
	})
	if made != nil && len(made.Captured) == 0 {
		nest.made[key] = made
	}
	return made
}

// backwardKey identifies a function that backward adds.
func backwardKey(f opdef.Func, inputs []op.Output, results []int) string {
	types := make([]tensor.DType, len(inputs))
	for i, o := range inputs {
		types[i] = o.DType().Base()
	}
	return fmt.Sprint(f.Key(), types, results)
}

// differentiateBody adds a body and its gradients to a function.
func differentiateBody(s *op.Scope, nest *nesting, body *graph.Body, args, inputs []op.Output,
	results []int) []op.Output {
	def := &graph.Def{}
	replace := map[string]op.Output{}
	for n := range body.Graph.Nodes() {
		if !isEnd(n) {
			def.Nodes = append(def.Nodes, n.Def())
		}
	}
	for i, n := range body.Args {
		for _, e := range n.OutEdges() {
			if !isEnd(e.Dst) && !e.IsControl() {
				replace[n.Name] = args[i]
			}
		}
	}
	nodes := s.SubScope("forward").Import(def, op.ImportOptions{Inputs: replace})
	if nodes == nil && len(def.Nodes) > 0 {
		return nil
	}
	ys, initial := make([]op.Output, len(results)), make([]Grad, len(results))
	for k, i := range results {
		ret := body.Rets[i].Input(0)
		if at := slices.Index(body.Args, ret.Node); at >= 0 {
			ys[k] = args[at]
		} else {
			ys[k] = nodes[ret.Node.Name].Out(ret.Index)
		}
		initial[k] = Of(args[len(inputs)+k])
	}
	var xs []op.Output
	for _, i := range varying(inputs) {
		xs = append(xs, args[i])
	}
	dxs := make([]op.Output, len(xs))
	for i, g := range Compute(s, ys, xs, Initial(initial...), within(nest)) {
		if dxs[i] = Densify(s, g); g.IsNone() {
			dxs[i] = op.ZerosLike(s, xs[i])
		}
	}
	return dxs
}

// branches differentiates a choice between functions as a choice between their gradients.
func branches(c *Call, choose func(input []op.Output, types []tensor.DType, f []opdef.Func) []op.Output, fs ...opdef.Func) []Grad {
	inputs, results := c.Node.Inputs()[1:], c.floating(c.grads)
	var back []opdef.Func
	var types []tensor.DType
	var captured []op.Output
	for _, f := range fs {
		b := c.backward(f, inputs, results)
		if b == nil {
			return c.None()
		}
		back, types, captured = append(back, b.Func()), b.Out, append(captured, b.Captured...)
	}
	if len(captured) > 0 {
		c.S.Fail(status.Internalf("gradients: a backward function uses values from around"))
		return c.None()
	}
	return c.received(1, choose(slices.Concat(inputs, c.dys(results)), types, back))
}

// whileGrad differentiates a loop of functions as the equivalent loop of nodes.
func whileGrad(c *Call) []Grad {
	attrs, s := c.Node.Attrs, c.S
	call := func(s *op.Scope, f opdef.Func, v []op.Output, types []tensor.DType) []op.Output {
		if c.Node.Op.Stateful {
			return op.StatefulPartitionedCall(s, v, types, f)
		}
		return op.PartitionedCall(s, v, types, f)
	}
	xs, any := make([]op.Output, c.Node.NumInputs()), make([]tensor.PartialShape, c.Node.NumInputs())
	for i := range xs {
		xs[i] = op.Identity(s, c.In(i))
	}
	last := op.WhileLoop(s, xs,
		func(s *op.Scope, v []op.Output) op.Output {
			done := call(s, attrs.Func("cond"), v, []tensor.DType{tensor.Bool})
			if len(done) == 0 {
				return op.Output{}
			}
			return done[0]
		},
		func(s *op.Scope, v []op.Output) []op.Output { return call(s, attrs.Func("body"), v, c.Node.OutTypes) },
		op.ShapeInvariants(any...), op.ParallelIterations(int64(attrs.Int("parallel_iterations"))))
	if last == nil {
		return c.None()
	}
	var ys []op.Output
	var initial []Grad
	for _, i := range c.floating(c.grads) {
		ys, initial = append(ys, last[i]), append(initial, Of(c.DY(i)))
	}
	return Compute(s, ys, xs, Initial(initial...), within(c.nest))
}
