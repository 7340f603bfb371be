package metamorphic

import (
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Effects on a variable are ordered by a token: a number that is passed like a value, through
// branches, loops and calls. A statement that reads or writes the variable runs after the current
// token, and the next token depends on the statement.
func token(variable string) string { return variable + ".token" }

// tokens returns the names of the tokens of variables.
func tokens(variables []string) []string {
	out := make([]string, len(variables))
	for i, v := range variables {
		out[i] = token(v)
	}
	return out
}

// valueType returns the element type of a name of the program, of a token, or of the handle or
// reference of a variable.
func (b *builder) valueType(name string) tensor.DType {
	if v, ok := b.vars[name]; ok {
		if v.Ref {
			return b.types[name].DType
		}
		return tensor.Resource
	}
	if t, ok := b.types[name]; ok {
		return t.DType
	}
	return tensor.Int32 // tokens, which order side effects, have this type
}

func (b *builder) isRef(name string) bool { return b.vars[name].Ref }

// deviceOf returns the device of nodes that forward a value: the device of the variable for handles
// and references.
func (b *builder) deviceOf(name string) string {
	if v, ok := b.vars[name]; ok {
		return b.device(v.Device)
	}
	return ""
}

// declare adds a variable, its initializer and its token. It returns the name of the initializer.
func (s *scope) declare(v Var) string {
	device, t := s.device(v.Device), s.types[v.Name]
	attrs := opdef.Attrs{"dtype": t.DType, "shape": t.shape().Partial()}
	value := s.constant(v.Init)
	s.inside[token(v.Name)] = s.constant(tensor.Scalar[int32](0))
	if v.Ref {
		variable := s.body.add("VariableV2", v.Name, device, attrs, nil, nil).out(0)
		s.inside[v.Name] = variable
		return s.body.add("Assign", "", device, opdef.Attrs{"T": t.DType}, []ref{variable, value}, nil).name
	}
	// The shared name identifies the variable.
	attrs["shared_name"] = v.Name
	handle := s.body.add("VarHandleOp", v.Name, device, attrs, nil, nil).out(0)
	s.inside[v.Name] = handle
	return s.body.add("AssignVariableOp", "", device, opdef.Attrs{"dtype": t.DType}, []ref{handle, value}, nil).name
}

// recordEffect orders the next effect on a variable after a node.
func (s *scope) recordEffect(v Var, node string) {
	next := s.body.add("Identity", "", s.device(v.Device), opdef.Attrs{"T": tensor.Int32}, []ref{s.get(token(v.Name))}, []string{node})
	s.inside[token(v.Name)] = next.out(0)
}

// readVariable returns the current value of a variable. Later writes do not change it.
func (s *scope) readVariable(v Var, name string) ref {
	device, dtype := s.device(v.Device), s.types[v.Name].DType
	variable, after := s.get(v.Name), []string{s.get(token(v.Name)).node}
	if !v.Ref {
		read := s.body.add("ReadVariableOp", name, device, opdef.Attrs{"dtype": dtype}, []ref{variable}, after)
		s.recordEffect(v, read.name)
		return read.out(0)
	}
	// The value read through a reference may share the memory of the variable, so it is copied
	// before the next write.
	shared := s.body.add("Identity", "", device, opdef.Attrs{"T": dtype}, []ref{variable}, after).out(0)
	copied := s.body.add("Maximum", name, device, opdef.Attrs{"T": dtype}, []ref{shared, shared}, nil)
	s.recordEffect(v, copied.name)
	return copied.out(0)
}

func (s *scope) writeVariable(at *Stmt, v Var) {
	device, dtype := s.device(v.Device), s.types[v.Name].DType
	op := map[string]string{kindAssign: "Assign", kindAdd: "AssignAdd", kindSub: "AssignSub"}[at.Kind]
	attrs := opdef.Attrs{"T": dtype}
	if !v.Ref {
		op, attrs = op+"VariableOp", opdef.Attrs{"dtype": dtype}
	}
	in := []ref{s.get(v.Name), s.get(at.In[0])}
	written := s.body.add(op, "", device, attrs, in, []string{s.get(token(v.Name)).node})
	s.recordEffect(v, written.name)
}
