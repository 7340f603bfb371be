package gradients

import (
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// keepRepeatable removes the nodes that some results of a function do not need from its body. The
// rest must be repeatable: run a second time for the gradient, it returns the same values and has
// no side effects. seen holds the functions that were already checked; after an error it is of no
// use.
func keepRepeatable(body *graph.Body, results []int, function string, seen map[string]bool) error {
	needed := search{found: map[*graph.Node]bool{}}
	for _, i := range results {
		needed.push(body.Rets[i])
	}
	for n := needed.pop(); n != nil; n = needed.pop() {
		for _, in := range n.Inputs() {
			needed.push(in.Node)
		}
		for _, c := range n.ControlInputs() {
			needed.push(c)
		}
	}
	for id := range body.Graph.NumIDs() {
		n := body.Graph.NodeByID(id)
		switch {
		case n == nil || isEnd(n):
		case !needed.found[n]:
			body.Graph.Remove(n)
		case !repeatable(body.Graph, n.Op, n.Attrs, seen):
			return status.Unimplementedf("the gradient of function '%s' would run '%s' (op type: %s) a second time, which has effects "+
				"or gives other values then", function, n.Name, n.Op.Name)
		}
	}
	return nil
}

// isEnd reports whether a node is an argument or result of a function.
func isEnd(n *graph.Node) bool { return n.Op.Name == "_Arg" || n.Op.Name == "_Retval" }

// readers are prefixes of the names of stateful operations without side effects, or with effects on
// state of the same call only.
var readers = []string{"VarHandleOp", "ReadVariableOp", "ResourceGather", "VariableShape", "TensorArray", "Stack", "Assert", "Print"}

// repeatable reports whether an operation may run a second time. seen holds the functions that were
// already checked, and those that it checks. Calls can be nested as deep as the library is large.
// So it keeps a list instead of calling itself.
func repeatable(g *graph.Graph, o *opdef.Op, attrs opdef.Attrs, seen map[string]bool) bool {
	var todo []opdef.Func
	if !addCalled(&todo, o, attrs, seen) {
		return false
	}
	for len(todo) > 0 {
		f := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		body, err := g.Library.InstantiateBody(f, g.Ops())
		if err != nil {
			return false
		}
		for n := range body.Graph.Nodes() {
			if !addCalled(&todo, n.Op, n.Attrs, seen) {
				return false
			}
		}
	}
	return true
}

// addCalled reports whether an operation may run a second time if the functions that it calls may.
// It adds those functions that were not seen before to todo.
func addCalled(todo *[]opdef.Func, o *opdef.Op, attrs opdef.Attrs, seen map[string]bool) bool {
	if !o.Stateful || o.Name == "_Arg" || o.Name == "_Retval" {
		return true
	}
	for _, prefix := range readers {
		if strings.HasPrefix(o.Name, prefix) {
			return true
		}
	}
	calls := false
	for _, v := range attrs {
		fs, _ := v.([]opdef.Func)
		if f, ok := v.(opdef.Func); ok {
			fs = []opdef.Func{f}
		}
		for _, f := range fs {
			calls = true
			if !seen[f.Name] {
				seen[f.Name] = true
				*todo = append(*todo, f)
			}
		}
	}
	return calls
}
