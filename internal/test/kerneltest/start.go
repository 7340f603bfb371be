package kerneltest

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Result is what one run of a node ended with.
type Result struct {
	Outputs []kernel.Value
	Err     error
}

// Start computes the node once, like Run, and returns at once where the node waits. The result
// comes over the channel.
func (n *Node) Start(inputs ...tensor.Tensor) <-chan Result {
	ended := make(chan Result, 2) // room to see an operation that ends twice
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

// Close ends the kernel, as the end of its session does.
func (n *Node) Close() {
	if c, ok := n.kern.(kernel.Closer); ok {
		c.Close()
	}
}
