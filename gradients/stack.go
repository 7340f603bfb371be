package gradients

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// stacks maps a node that creates a stack to the nodes that pop from it. The gradients of loops
// save values on stacks. No edge connects the nodes that push with those that pop.
type stacks map[*graph.Node][]*graph.Node // by the node that makes the stack

func findStacks(g *graph.Graph) stacks {
	s := stacks{}
	for n := range g.Nodes() {
		if isPop(n) {
			of := stackOf(n)
			s[of] = append(s[of], n)
		}
	}
	return s
}

func isPop(n *graph.Node) bool { return n.Op.Name == "StackPopV2" || n.Op.Name == "StackPop" }

// poppedAfter returns the nodes that pop the values that n pushes; none for other nodes.
func (s stacks) poppedAfter(n *graph.Node) []*graph.Node {
	if n.Op.Name != "StackPushV2" && n.Op.Name != "StackPush" {
		return nil
	}
	return s[stackOf(n)]
}

// stackOf returns the node that creates the stack of a node that uses it.
func stackOf(n *graph.Node) *graph.Node {
	for n.Op.Name != "StackV2" && n.Op.Name != "Stack" && n.NumInputs() > 0 {
		n = n.Input(0).Node
	}
	return n
}

// secondOrder returns the error for a gradient that would have to pass through a value saved by the
// gradient of a loop.
func secondOrder(n *graph.Node) error {
	return status.Unimplementedf("Second-order gradient for while loops not supported. (%s)", n.Name)
}
