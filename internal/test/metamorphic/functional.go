package metamorphic

import (
	"slices"
	"strconv"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// signature holds the arguments of the functions of a statement: values by their names in the
// program.
type signature struct {
	names  []string
	dtypes []tensor.DType
}

func (s *scope) signature(names ...string) signature {
	sig := signature{names: names}
	for _, name := range names {
		sig.dtypes = append(sig.dtypes, s.valueType(name))
	}
	return sig
}

// captured returns the names that the blocks of a statement use from outside: values, handles and
// tokens.
func captured(at *Stmt) (values, tokenNames []string) {
	return free(at.Blocks, at.Params), tokens(accessed(at.Blocks))
}

// function adds a function with the arguments sig. build returns its results from its arguments.
func (s *scope) function(sig signature, stateful bool, build func(in *scope) ([]ref, []tensor.DType)) opdef.Func {
	in := &scope{builder: s.builder, body: &body{function: true}, inside: map[string]ref{}}
	f := graph.FunctionDef{Ret: map[string]string{}}
	f.Signature.Stateful = stateful
	for i, name := range sig.names {
		arg := "arg" + strconv.Itoa(i)
		f.Signature.Inputs = append(f.Signature.Inputs, opdef.Arg{Name: arg, DType: sig.dtypes[i]})
		in.inside[name] = ref{node: arg}
	}
	results, dtypes := build(in)
	for i, r := range results {
		out := "ret" + strconv.Itoa(i)
		f.Signature.Outputs = append(f.Signature.Outputs, opdef.Arg{Name: out, DType: dtypes[i]})
		f.Ret[out] = in.body.input(r)
	}
	f.Signature.Name = "function" + strconv.Itoa(len(s.library))
	f.Nodes = in.body.nodes
	s.builder.library = append(s.builder.library, f)
	return opdef.Func{Name: f.Signature.Name}
}

// blockFunction adds a function for a block. It returns the yields of the block and the tokens.
func (s *scope) blockFunction(sig signature, at *Stmt, b *Block, tokenNames []string) opdef.Func {
	return s.function(sig, len(tokenNames) > 0, func(in *scope) ([]ref, []tensor.DType) {
		results := slices.Concat(in.block(b), in.all(tokenNames))
		return results, s.resultTypes(at, tokenNames)
	})
}

func (s *scope) resultTypes(at *Stmt, tokenNames []string) []tensor.DType {
	return s.signature(slices.Concat(at.Out, tokenNames)...).dtypes
}

// calling adds the node of a statement that calls functions, on the device of the variables that it
// uses.
func (s *scope) calling(at *Stmt, op string, attrs opdef.Attrs, in []ref, results int) []ref {
	device := s.device(at.Device)
	if vars := accessed(at.Blocks); len(vars) > 0 {
		device = s.device(s.vars[vars[0]].Device)
	}
	var after []string
	if s.guardCalls && s.pivot != "" {
		after = []string{s.pivot}
	}
	n := s.body.add(op, "", device, attrs, in, after)
	n.number = results
	out := make([]ref, results)
	for i := range out {
		out[i] = n.out(i)
	}
	return out
}

// stateless returns the name of an operation, or of its stateless variant for functions without
// effects.
func stateless(op, without string, tokenNames []string) string {
	if len(tokenNames) == 0 {
		return without
	}
	return op
}

func (s *scope) call(at *Stmt) []ref {
	values, tokenNames := captured(at)
	sig := s.signature(slices.Concat(values, tokenNames)...)
	f := s.blockFunction(sig, at, &at.Blocks[0], tokenNames)
	out := s.resultTypes(at, tokenNames)
	attrs := opdef.Attrs{"f": f, "Tin": sig.dtypes, "Tout": out}
	results := s.calling(at, stateless("StatefulPartitionedCall", "PartitionedCall", tokenNames), attrs, s.all(sig.names), len(out))
	return s.finish(at, results, tokenNames)
}

func (s *scope) functionalIf(at *Stmt) []ref {
	values, tokenNames := captured(at)
	sig := s.signature(slices.Concat(values, tokenNames)...)
	then := s.blockFunction(sig, at, &at.Blocks[0], tokenNames)
	otherwise := s.blockFunction(sig, at, &at.Blocks[1], tokenNames)
	out := s.resultTypes(at, tokenNames)
	attrs := opdef.Attrs{"Tcond": tensor.Bool, "Tin": sig.dtypes, "Tout": out, "then_branch": then, "else_branch": otherwise}
	in := slices.Concat([]ref{s.get(at.In[0])}, s.all(sig.names))
	return s.finish(at, s.calling(at, stateless("If", "StatelessIf", tokenNames), attrs, in, len(out)), tokenNames)
}

// functionalLoop adds a While. Its state consists of the counter, the limit, the loop variables,
// the tokens, and the values that the body captures, which do not change.
func (s *scope) functionalLoop(at *Stmt) []ref {
	values, tokenNames := captured(at)
	const counter, limit = "counter", "limit" // cannot be names in programs
	sig := s.signature(slices.Concat([]string{counter, limit}, at.Params, tokenNames, values)...)
	cond := s.function(sig, false, func(in *scope) ([]ref, []tensor.DType) {
		less := in.body.add("Less", "", "", opdef.Attrs{"T": tensor.Int32}, in.all([]string{counter, limit}), nil).out(0)
		return []ref{less}, []tensor.DType{tensor.Bool}
	})
	step := s.function(sig, len(tokenNames) > 0, func(in *scope) ([]ref, []tensor.DType) {
		one := in.constant(tensor.Scalar[int32](1))
		count := in.body.add("AddV2", "", "", opdef.Attrs{"T": tensor.Int32}, []ref{in.get(counter), one}, nil).out(0)
		bound := in.get(limit)
		unchanged := in.all(values)
		yields := in.block(&at.Blocks[0])
		return slices.Concat([]ref{count, bound}, yields, in.all(tokenNames), unchanged), sig.dtypes
	})
	zero := s.constant(tensor.Scalar[int32](0))
	in := slices.Concat([]ref{zero, s.limit(at)}, s.all(at.In[1:]), s.all(tokenNames), s.all(values))
	attrs := opdef.Attrs{"T": sig.dtypes, "cond": cond, "body": step, "parallel_iterations": int64(max(at.Parallel, 1))}
	results := s.calling(at, stateless("While", "StatelessWhile", tokenNames), attrs, in, len(in))
	return s.finish(at, results[2:2+len(at.Params)+len(tokenNames)], tokenNames)
}

// WithoutFramesInFunctions returns the program with all conditions and loops in function bodies
// marked functional. TensorFlow programs do not use frames in functions. Its runtime treats the
// results of a function as dead if a stateful If is on a branch of Switch nodes in the body, and
// sometimes loses results of loops in frames.
func (p *Program) WithoutFramesInFunctions() *Program {
	out := p.Clone()
	out.Body.walk(func(s *Stmt) {
		if !s.callsFunctions() {
			return
		}
		for i := range s.Blocks {
			s.Blocks[i].walk(func(inner *Stmt) { inner.Functional = inner.Kind == kindIf || inner.Kind == kindRepeat })
		}
	})
	return out
}
