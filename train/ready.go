package train

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// ReportUninitializedVariables adds a string vector with the names of the given variables that are
// not initialized. Without arguments it checks all global and local variables. The vector is empty
// if the model is ready.
func ReportUninitializedVariables(s *op.Scope, vars ...*Variable) op.Output {
	if len(vars) == 0 {
		vars = append(vars, Variables(s, GlobalVariables)...)
		vars = append(vars, Variables(s, LocalVariables)...)
	}
	return reportUninitialized(s, vars)
}

func reportUninitialized(s *op.Scope, vars []*Variable) op.Output {
	s, result := s.Composite("report_uninitialized_variables")
	cpu := s.WithDevice("/device:CPU:0")
	if len(vars) == 0 {
		none, err := tensor.FromSlice(tensor.Shape{0}, []string{})
		if err != nil {
			s.Fail(err)
			return op.Output{}
		}
		return op.Const(result.WithDevice("/device:CPU:0"), none)
	}
	names, initialized := make([]string, len(vars)), make([]op.Output, len(vars))
	for i, v := range vars {
		names[i], initialized[i] = v.Name, v.IsInitialized(s)
	}
	missing := op.Where(cpu, op.LogicalNot(cpu, op.Pack(cpu, initialized)))
	at := op.Reshape(cpu, missing, op.Const(cpu, []int32{-1}))
	return op.GatherV2(result.WithDevice("/device:CPU:0"), op.Const(cpu, names), at, op.Const(cpu, int32(0)))
}

// LocalVariablesInitializer adds a node that initializes all variables in [LocalVariables].
func LocalVariablesInitializer(s *op.Scope) *graph.Node {
	vars := Variables(s, LocalVariables)
	inits := make([]*graph.Node, len(vars))
	for i, v := range vars {
		inits[i] = v.Initializer
	}
	return op.Group(s.Named("init"), inits...)
}

// TablesInitializer adds a node that runs the nodes in the collection [TableInitializers].
func TablesInitializer(s *op.Scope) *graph.Node {
	return op.Group(s.Named("init_all_tables"), nodesIn(s, TableInitializers)...)
}

// nodesIn returns the nodes in a collection.
func nodesIn(s *op.Scope, collection string) []*graph.Node {
	var out []*graph.Node
	for _, v := range s.Collection(collection) {
		if n, ok := v.(*graph.Node); ok {
			out = append(out, n)
		}
	}
	return out
}
