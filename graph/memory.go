package graph

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

const (
	// narrow is the number of inputs, outputs or attributes of a node that need not be counted: the
	// number of nodes bounds them.
	narrow = 32
	// maxWide bounds the outputs of the nodes of a definition that have more than narrow of them,
	// and the inputs of the nodes of a function.
	maxWide = 1 << 24
	// wideMemory is about the memory of an output, with what is known about it, in bytes.
	wideMemory = 64
	// attrMemory is about the memory of an attribute in a map, in bytes.
	attrMemory = 96
)

func noMemory(node string) error {
	return status.AtNode(status.ResourceExhaustedf("There is not enough memory for the node (--memory-limit)."), node)
}

// takeAttrs asks for the memory of n attributes of a node, if they are many.
func takeAttrs(node string, n int) error {
	if n > narrow && !membudget.Take(attrMemory*int64(n)) {
		return noMemory(node)
	}
	return nil
}

// wideOutputs counts the outputs of nodes that have many, or the inputs of such nodes.
type wideOutputs int

// add adds n outputs of a node. It returns an error if there are too many, or no memory for them.
func (w *wideOutputs) add(node string, n int) error {
	if n <= narrow {
		return nil
	}
	if *w += wideOutputs(n); *w > maxWide {
		return status.AtNode(status.ResourceExhaustedf("The nodes with more than %d inputs or outputs have more than %d of them.",
			narrow, maxWide), node)
	}
	if !membudget.Take(wideMemory * int64(n)) {
		return noMemory(node)
	}
	return nil
}
