package kerneltest

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Result is the outcome of one run of a node.
type Result struct {
	Outputs []kernel.Value
	Err     error
}

// Start runs the node once, like Run, without waiting for an asynchronous kernel. The result is
// sent on the channel.
func (n *Node) Start(inputs ...tensor.Tensor) <-chan Result {
	ended := make(chan Result, 2) // 2: detects an operation that ends twice
	outputs := make([]kernel.Value, len(n.c.Outputs))
	values := make([]kernel.Value, len(inputs))
	for i := range inputs {
		values[i].Tensor = inputs[i].Retain()
	}
	ctx := n.context(values, outputs)
	done := func(err error) {
		for i := range values {
			values[i].Release()
		}
		ended <- Result{outputs, err}
	}
	if a, ok := n.kern.(kernel.Async); ok {
		a.ComputeAsync(ctx, done)
	} else {
		done(n.kern.Compute(ctx))
	}
	return ended
}

// Close closes the kernel, as at the end of a session.
func (n *Node) Close() {
	if c, ok := n.kern.(kernel.Closer); ok {
		c.Close()
	}
}
