package op

import (
	"fmt"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Function is a function in the library of a graph, with the values of the surrounding graph that
// its body uses.
type Function struct {
	Name     string         // name in the library
	In, Out  []tensor.DType // types of arguments, without captured values, and of results
	Captured []Output       // values of the surrounding graph, passed after the arguments
	Stateful bool           // calls have side effects: they are neither removed nor merged
}

// Func returns the function as the value of an attribute.
func (f *Function) Func() opdef.Func { return opdef.Func{Name: f.Name} }

// NewFunction adds a function with arguments of the given types to the library of the graph. If the
// name is taken, a number is appended. body adds the nodes of the function to its scope and returns
// the results. The body may use values of the surrounding graph, which each call passes as
// additional arguments. NewFunction returns nil if there is a build error.
//
// [Call] calls a function. Operations such as [While], [If] and [MapDataset] take functions as
// attributes. Stateful nodes of the body are executed even if no result depends on them.
func NewFunction(s *Scope, name string, args []tensor.DType, body func(s *Scope, args []Output) []Output) *Function {
	before := len(*s.b.errs)
	f := &function{outer: s}
	g := graph.New(s.b.g.Ops())
	g.Library = s.b.g.Library
	f.s = &Scope{b: newBuilder(g, s.b.errs, f)}
	f.s.region, f.s.b.seed = f.s.b.root, s.b.seed
	values := make([]Output, len(args))
	for i, t := range args {
		values[i] = f.argument(t.Base(), fmt.Sprintf("arg%d", i))
	}
	var results []Output
	for _, o := range body(f.s, values) {
		o, err := f.s.Capture(o)
		if err != nil {
			s.failInput("function "+name, err)
			return nil
		}
		results = append(results, o)
	}
	if len(*s.b.errs) > before {
		return nil
	}
	fn := &Function{Name: unusedFunction(s.b.g, name), In: slices.Clone(args), Captured: f.captured}
	def := f.define(fn.Name, results)
	fn.Stateful = def.Signature.Stateful
	for _, o := range def.Signature.Outputs {
		fn.Out = append(fn.Out, o.DType)
	}
	if err := s.b.g.Library.Add([]graph.FunctionDef{def}, nil, s.b.g.Ops()); err != nil {
		s.Fail(err)
		return nil
	}
	return fn
}

// Call adds a call of a function and returns its results; nil if there is a build error.
func Call(s *Scope, f *Function, args ...Output) []Output {
	switch {
	case f == nil && len(*s.b.errs) > 0:
		return nil
	case f == nil:
		s.Fail(status.InvalidArgumentf("Call: the function is nil"))
		return nil
	case len(args) != len(f.In):
		s.Fail(status.InvalidArgumentf("function %s takes %d arguments, got %d", f.Name, len(f.In), len(args)))
		return nil
	}
	all := slices.Concat(args, f.Captured)
	for i, o := range args {
		if o.Node != nil && o.DType().Base() != f.In[i].Base() {
			s.Fail(status.InvalidArgumentf("argument %d of function %s is of type %s, want %s", i, f.Name, o.DType().Name(), f.In[i].Name()))
			return nil
		}
	}
	if f.Stateful {
		return StatefulPartitionedCall(s, all, f.Out, f.Func())
	}
	return PartitionedCall(s, all, f.Out, f.Func())
}

// unusedFunction returns name if no function or operation has it; otherwise name with the first
// number that makes it unused.
func unusedFunction(g *graph.Graph, name string) string {
	unique := name
	for i := 1; ; i++ {
		if _, taken := g.LookupOp(unique); !taken {
			return unique
		}
		unique = fmt.Sprintf("%s_%d", name, i)
	}
}

// function is the Region of a function body during construction.
type function struct {
	outer    *Scope // scope around the function
	s        *Scope // scope of the body
	args     []*graph.Node
	captured []Output
}

func (f *function) Pivot() *graph.Node { return nil }

// Capture adds an argument for a value of the surrounding graph.
func (f *function) Capture(o Output) (Output, error) {
	o, err := f.outer.Capture(o)
	if err != nil {
		return Output{}, err
	}
	if o.DType().IsRef() {
		o = Identity(f.outer, o)
	}
	arg := f.argument(o.DType(), fmt.Sprintf("captured%d", len(f.captured)))
	f.captured = append(f.captured, o)
	return arg, nil
}

func (f *function) argument(t tensor.DType, name string) Output {
	n := f.s.Absolute().WithoutControlDependencies().Named(name).Add("_Arg", nil, opdef.Attrs{"T": t, "index": int64(len(f.args))})
	if n != nil {
		f.args = append(f.args, n)
	}
	return out(n, 0)
}

// define returns the definition of the function.
func (f *function) define(name string, results []Output) graph.FunctionDef {
	def := graph.FunctionDef{Signature: opdef.Op{Name: name}, Ret: map[string]string{}, ControlRet: map[string]string{}}
	for _, a := range f.args {
		def.Signature.Inputs = append(def.Signature.Inputs, opdef.Arg{Name: a.Name, DType: a.OutTypes[0]})
	}
	for i, o := range results {
		out := fmt.Sprintf("out%d", i)
		def.Signature.Outputs = append(def.Signature.Outputs, opdef.Arg{Name: out, DType: o.DType().Base()})
		def.Ret[out] = inBody(o)
	}
	for n := range f.s.b.g.Nodes() {
		if n.Op.Name == "_Arg" {
			continue
		}
		d := n.Def()
		for i, in := range n.Inputs() {
			d.Inputs[i] = inBody(in)
		}
		def.Nodes = append(def.Nodes, d)
		def.Signature.Stateful = def.Signature.Stateful || n.Op.Stateful
		if n.Op.Stateful && len(n.OutTypes) == 0 {
			def.Signature.ControlOutputs = append(def.Signature.ControlOutputs, n.Name)
			def.ControlRet[n.Name] = n.Name
		}
	}
	return def
}

// inBody formats an output as an input of a node in a function body: "arg" or "node:output:0".
func inBody(o Output) string {
	if o.Node.Op.Name == "_Arg" {
		return o.Node.Name
	}
	for i := range o.Node.Op.Outputs {
		name := o.Node.Op.Outputs[i].Name
		lo, hi, err := opdef.ArgRange(o.Node.Op.Outputs, o.Node.Attrs, name)
		if err == nil && o.Index >= lo && o.Index < hi {
			return fmt.Sprintf("%s:%s:%d", o.Node.Name, name, o.Index-lo)
		}
	}
	return o.String() // not reached: every output belongs to an argument of its operation
}
