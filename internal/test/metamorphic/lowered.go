package metamorphic

import (
	"slices"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// branches adds a condition with Switch and Merge nodes.
func (s *scope) branches(at *Stmt) []ref {
	pred := s.get(at.In[0])
	names := tokens(accessed(at.Blocks))
	var sides [2][]ref // by output of Switch: false, true
	for port, b := range []*Block{&at.Blocks[1], &at.Blocks[0]} {
		branch := s.branch(pred, port)
		sides[port] = slices.Concat(branch.block(b), branch.all(names))
	}
	merged := make([]ref, len(sides[0]))
	for i := range merged {
		dtype := tensor.Int32
		if i < len(at.Out) {
			dtype = s.types[at.Out[i]].DType
		}
		n := s.body.add("Merge", "", s.device(at.Device), opdef.Attrs{"T": dtype, "N": int64(2)}, []ref{sides[0][i], sides[1][i]}, nil)
		merged[i] = n.out(0)
	}
	return s.finish(at, merged, names)
}

// finish removes the new tokens from the results of a statement. A node that runs after a token
// depends on the value of the token. A control edge from the source node would not suffice: a
// function may return before its effects are done.
func (s *scope) finish(at *Stmt, results []ref, tokens []string) []ref {
	for i, name := range tokens {
		there := s.body.add("Identity", "", "", opdef.Attrs{"T": tensor.Int32}, results[len(at.Out)+i:][:1], nil)
		s.inside[name] = there.out(0)
	}
	return results[:len(at.Out)]
}

func (s *scope) branch(pred ref, port int) *scope {
	taken := s.body.add("Switch", "", "", opdef.Attrs{"T": tensor.Bool}, []ref{pred, pred}, nil).out(port)
	pivot := s.body.add("Identity", "", "", opdef.Attrs{"T": tensor.Bool}, []ref{taken}, nil)
	return s.within(func(name string, outside ref) ref {
		place, attrs := s.deviceOf(name), opdef.Attrs{"T": s.valueType(name)}
		if s.isRef(name) {
			return s.body.add("RefSwitch", "", place, attrs, []ref{outside, pred}, nil).out(port)
		}
		in := s.body.add("Switch", "", place, attrs, []ref{outside, pred}, nil).out(port)
		// A control edge from the Switch itself would not depend on the branch that is taken.
		return s.body.add("Identity", "", place, attrs, []ref{in}, nil).out(0)
	}, pivot.name)
}

// loop adds a frame.
func (s *scope) loop(at *Stmt) []ref {
	names := tokens(accessed(at.Blocks))
	frame := frameOf{name: s.body.name("frame"), parallel: int64(max(at.Parallel, 1)), device: s.device(at.Device)}
	limit := s.limit(at)
	starts := slices.Concat([]ref{s.constant(tensor.Scalar[int32](0))}, s.all(at.In[1:]), s.all(names))
	dtypes := []tensor.DType{tensor.Int32}
	for _, name := range slices.Concat(at.In[1:], names) {
		dtypes = append(dtypes, s.valueType(name))
	}

	merges, next := make([]ref, len(starts)), make([]string, len(starts))
	for i, start := range starts {
		next[i] = s.body.name("NextIteration")
		attrs := opdef.Attrs{"T": dtypes[i]}
		enter := s.enter(frame, dtypes[i], start, false)
		back := ref{node: next[i], arg: "output"}
		merges[i] = s.body.add("Merge", "", frame.device, opdef.Attrs{"T": attrs["T"], "N": int64(2)}, []ref{enter, back}, nil).out(0)
	}
	less := s.body.add("Less", "", frame.device, opdef.Attrs{"T": tensor.Int32},
		[]ref{merges[0], s.enter(frame, tensor.Int32, limit, true)}, nil).out(0)
	cond := s.body.add("LoopCond", "", frame.device, nil, []ref{less}, nil).out(0)

	states, exits := make([]ref, len(starts)), make([]ref, len(starts))
	for i := range starts {
		attrs := opdef.Attrs{"T": dtypes[i]}
		sw := s.body.add("Switch", "", "", attrs, []ref{merges[i], cond}, nil)
		states[i] = s.body.add("Identity", "", "", attrs, []ref{sw.out(1)}, nil).out(0)
		exits[i] = s.body.add("Exit", "", "", attrs, []ref{sw.out(0)}, nil).out(0)
	}
	ends := s.iteration(at, frame, states, names)
	for i, end := range ends {
		s.body.add("NextIteration", next[i], "", opdef.Attrs{"T": dtypes[i]}, []ref{end}, nil)
	}
	return s.finish(at, exits[1:], names)
}

type frameOf struct {
	name     string
	parallel int64
	device   string
}

func (s *scope) enter(f frameOf, dtype tensor.DType, v ref, constant bool) ref {
	return s.body.add("Enter", "", f.device, opdef.Attrs{
		"T": dtype, "frame_name": f.name, "is_constant": constant, "parallel_iterations": f.parallel,
	}, []ref{v}, nil).out(0)
}

// limit returns the number of iterations of a loop.
func (s *scope) limit(at *Stmt) ref {
	bound := s.constant(tensor.Scalar[int32](loopBound))
	return s.body.add("FloorMod", "", s.device(at.Device), opdef.Attrs{"T": tensor.Int32}, []ref{s.get(at.In[0]), bound}, nil).out(0)
}

// iteration adds the body of a loop. It returns the state of the next iteration: the counter, the
// loop variables and the tokens.
func (s *scope) iteration(at *Stmt, frame frameOf, states []ref, names []string) []ref {
	pivot := states[0].node
	in := s.within(func(name string, outside ref) ref {
		at := frame
		if place := s.deviceOf(name); place != "" {
			at.device = place
		}
		if s.isRef(name) {
			return s.body.add("RefEnter", "", at.device, opdef.Attrs{
				"T": s.valueType(name), "frame_name": at.name, "is_constant": true, "parallel_iterations": at.parallel,
			}, []ref{outside}, nil).out(0)
		}
		entered := s.enter(at, s.valueType(name), outside, true)
		// Loop-invariant values are live in the last iteration too, in which the body must be dead.
		return s.body.add("Identity", "", at.device, opdef.Attrs{"T": s.valueType(name)}, []ref{entered}, []string{pivot}).out(0)
	}, pivot)
	for i, name := range slices.Concat(at.Params, names) {
		in.inside[name] = states[1+i]
	}
	one := in.constant(tensor.Scalar[int32](1))
	count := s.body.add("AddV2", "", frame.device, opdef.Attrs{"T": tensor.Int32}, []ref{states[0], one}, nil).out(0)
	yields := in.block(&at.Blocks[0])
	return slices.Concat([]ref{count}, yields, in.all(names))
}
