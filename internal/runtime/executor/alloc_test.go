//go:build !race && !invariants

package executor_test

import (
	"context"
	"testing"

	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// TestStepsDoNotAllocatePerNode is not built under the race detector, where sync.Pool drops values
// at random.
func TestStepsDoNotAllocatePerNode(t *testing.T) {
	for name, build := range map[string]func(g *builder, n int){
		"chain": func(g *builder, n int) { g.ret(0, chain(g, g.arg(0, tensor.Int64), n)) },
		"loop": func(g *builder, n int) {
			g.ret(0, g.countTo("f", 10, g.arg(0, tensor.Int64), g.number(int64(n)), g.number(1)))
		},
	} {
		const nodes = 2000
		g := newBuilder(t)
		build(g, nodes)
		e := g.compile()
		step := &kernel.Step{ID: 1, Context: context.Background(), Cancel: func(error) {}}
		opts := executor.RunOptions{Args: make([]tensor.Tensor, 1), Rets: make([]tensor.Tensor, 1)}
		zero := tensor.Scalar(int64(0))
		run := func() {
			opts.Args[0] = zero.Retain()
			if err := e.Run(step, opts); err != nil {
				t.Fatal(err)
			}
			opts.Rets[0].Release()
		}
		for range 3 { // the second run builds regions
			run()
		}
		n := testing.AllocsPerRun(50, run)
		if n > nodes/20 { // a garbage collection may empty the pools
			t.Errorf("%s: a step of more than %d nodes allocates %v times", name, nodes, n)
		}
	}
}
