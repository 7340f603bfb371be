package function

import (
	"fmt"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/lower"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// symbolicGradient is the name under which the gradient of a function is instantiated. For an
// attribute f that is a function (x…) → (y…), it is the function (x…, dy…) → (dx…).
const symbolicGradient = "SymbolicGradient"

// About the memory of a function that has been prepared in bytes: its body, its executor and its
// kernels.
const (
	functionMemory = 16 << 10
	nodeMemory     = 4 << 10
)

// definedBody returns the body of a function of the library.
func (r *Runtime) definedBody(fn opdef.Func) (*graph.Body, error) {
	if f, ok := r.lib.Lookup(fn.Name); ok && !membudget.Take(functionMemory+nodeMemory*int64(len(f.Def.Nodes))) {
		return nil, status.ResourceExhaustedf("There is not enough memory to prepare function %s (--memory-limit).", fn.Name)
	}
	body, err := r.lib.InstantiateBody(fn, r.kernels)
	if err != nil {
		return nil, err
	}
	return body, checkTerminals(fn, body)
}

// checkTerminals returns an error if a body has nodes of arguments or results besides those of its
// signature. Their indexes need not be positions in the lists of arguments and results, and two
// parts of the function could set the same result.
func checkTerminals(fn opdef.Func, body *graph.Body) error {
	for n := range body.Graph.Nodes() {
		var known []*graph.Node
		switch n.Op.Name {
		case "_Arg", "_DeviceArg":
			known = body.Args
		case "_Retval", "_DeviceRetval":
			known = body.Rets
		default:
			continue
		}
		if i := n.Attrs.Int("index"); i >= len(known) || known[i] != n {
			return status.InvalidArgumentf("Function %s has the node %s of operation %s, which a definition must not have.", fn.Name, n.Name, n.Op.Name)
		}
	}
	return nil
}

// instantiate returns the body of a function, or of the gradient of a function.
func (r *Runtime) instantiate(fn opdef.Func) (*graph.Body, error) {
	if fn.Name != symbolicGradient {
		return r.definedBody(fn)
	}
	f := fn.Attrs.Func("f")
	if f.Name == symbolicGradient {
		return nil, status.InvalidArgumentf("Can't take gradient of SymbolicGradient")
	}
	if own := r.lib.Gradient(f.Name); own != "" {
		return r.definedBody(opdef.Func{Name: own, Attrs: f.Attrs})
	}
	body, err := r.bodyOf(f)
	if err != nil {
		return nil, err
	}
	if err := lower.Lower(body.Graph, lower.Options{Direct: true, Marked: true, CallsOnly: true}); err != nil {
		return nil, err
	}
	return differentiate(body)
}

// bodyOf returns the body of a function, or a body with a single node if f names an operation.
func (r *Runtime) bodyOf(f opdef.Func) (*graph.Body, error) {
	if _, ok := r.lib.Lookup(f.Name); ok {
		return r.definedBody(f)
	}
	g := graph.New(r.kernels)
	g.Library = r.lib
	n, err := g.Add("f", f.Name, f.Attrs)
	if err != nil {
		return nil, status.InvalidArgumentf("No gradient is defined for %s", f.Name)
	}
	body := &graph.Body{Graph: g}
	for i, dtype := range n.InTypes {
		arg, err := g.Add(fmt.Sprintf("x%d", i), "_Arg", opdef.Attrs{"T": dtype.Base(), "index": int64(i)})
		if err != nil {
			return nil, err
		}
		if err := g.Connect(arg.Out(0), n, i); err != nil {
			return nil, err
		}
		body.Args = append(body.Args, arg)
	}
	for i := range n.OutTypes {
		if err := addRet(body, i, n.Out(i)); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// addRet adds result i to a body.
func addRet(body *graph.Body, i int, out graph.Output) error {
	name := fmt.Sprintf("ret%d", i)
	for body.Graph.Node(name) != nil {
		name += "_"
	}
	ret, err := body.Graph.Add(name, "_Retval", opdef.Attrs{"T": out.DType().Base(), "index": int64(i)})
	if err != nil {
		return err
	}
	body.Rets = append(body.Rets, ret)
	return body.Graph.Connect(out, ret, 0)
}

// differentiate turns the body of a function into the body of its gradient.
func differentiate(body *graph.Body) (*graph.Body, error) {
	s := op.ScopeOf(body.Graph)
	var xs, ys []op.Output
	for _, arg := range body.Args {
		xs = append(xs, arg.Out(0))
	}
	out := &graph.Body{Graph: body.Graph, Args: body.Args}
	dys := make([]gradients.Grad, len(body.Rets))
	for i, ret := range body.Rets {
		y := ret.Input(0)
		ys = append(ys, y)
		dy := s.Named("dy").Add("_Arg", nil, opdef.Attrs{"T": y.DType().Base(), "index": int64(len(out.Args))})
		if dy == nil {
			return nil, s.Err()
		}
		out.Args = append(out.Args, dy)
		if y.DType().IsFloating() || y.DType().IsComplex() {
			dys[i] = gradients.Of(dy.Out(0))
		}
	}
	for _, ret := range body.Rets {
		body.Graph.Remove(ret)
	}
	grads := gradients.Compute(s, ys, xs, gradients.Initial(dys...))
	if err := s.Err(); err != nil {
		return nil, status.InvalidArgumentf("%w", err)
	}
	for i, g := range grads {
		dx := op.ZerosLike(s, xs[i])
		if !g.IsNone() {
			dx = gradients.Densify(s, g)
		}
		if err := s.Err(); err != nil {
			return nil, err
		}
		if err := addRet(out, i, dx); err != nil {
			return nil, err
		}
	}
	return out, nil
}
