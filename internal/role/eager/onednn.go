package eager

import (
	"maps"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/kernel"
)

// TensorFlow's tasks with oneDNN, which is their default, rename operations in the parts of
// functions that they send: they mark the nodes, and the operations compute what the original ones
// do. renamedKernel is the mark.
const renamedKernel = "MklNameChangeOp"

// restoreNames gives the operations that a task with oneDNN has renamed their original names. It
// removes the attributes and inputs that the originals do not have: the work space of max-pooling,
// which its gradient does not need.
func restoreNames(functions []graph.FunctionDef, ops *kernel.Registry) {
	for i := range functions {
		nodes := functions[i].Nodes
		for j := range nodes {
			restoreName(&nodes[j], ops)
		}
	}
}

func restoreName(n *graph.NodeDef, ops *kernel.Registry) {
	if n.Attrs.String("_kernel") != renamedKernel {
		return
	}
	base, ok := strings.CutPrefix(n.Op, "_MklNative")
	if !ok {
		if base, ok = strings.CutPrefix(n.Op, "_Mkl"); !ok {
			return
		}
	}
	op, ok := ops.LookupOp(base)
	if !ok {
		if op, ok = ops.LookupOp("_" + base); !ok {
			return // an unknown operation, which is reported when the function is called
		}
	}
	n.Op = op.Name
	known := map[string]bool{}
	for i := range op.Attrs {
		known[op.Attrs[i].Name] = true
	}
	n.Attrs = n.Attrs.Clone()
	maps.DeleteFunc(n.Attrs, func(name string, _ any) bool {
		return name == "_kernel" || !known[name] && !strings.HasPrefix(name, "_")
	})
	complete, err := op.CheckAttrs(n.Name, n.Attrs)
	if err != nil {
		return // reported when the function is called
	}
	types, err := op.InputTypes(complete)
	if err != nil {
		return
	}
	inputs, data := n.Inputs[:0:0], 0
	for _, in := range n.Inputs {
		if !strings.HasPrefix(in, "^") {
			if data++; data > len(types) {
				continue
			}
		}
		inputs = append(inputs, in)
	}
	n.Inputs = inputs
}
