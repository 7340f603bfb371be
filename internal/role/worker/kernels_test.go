package worker

import (
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/kernel"
)

// Graphs of a session share the kernel of a node whose attributes for the runtime alone differ.
func TestKernelsAreSharedBetweenGraphs(t *testing.T) {
	ops, err := graphtext.ParseOps(`Queue() -> (handle: resource) [capacity: int = 1] stateful`)
	if err != nil {
		t.Fatal(err)
	}
	node := func(text string) *graph.Node {
		g, err := graphtext.Parse(ops, text)
		if err != nil {
			t.Fatal(err)
		}
		return g.Node("q")
	}
	made := 0
	create := func(*graph.Node) (kernel.Kernel, error) {
		made++
		return kernel.Func(func(*kernel.Context) error { return nil }), nil
	}
	c := &kernelCache{kernels: map[kernelID]sharedKernel{}}
	for i, tt := range []struct {
		text  string
		owned bool
		made  int
	}{
		{`q = Queue() capacity=2`, false, 1},
		{`q = Queue() capacity=2 _class="loc:@a"`, false, 1},
		{`q = Queue() capacity=3`, true, 2},
	} {
		if _, owned, err := c.shared("d", node(tt.text), create); err != nil || owned != tt.owned || made != tt.made {
			t.Errorf("%d: owned %t, %d made, %v", i, owned, made, err)
		}
	}
}
