package executor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// benchmark runs the graph repeatedly and reports the time per node.
func benchmark(b *testing.B, g *builder, nodes int) {
	e := g.compile()
	ctx, cancel := context.WithCancelCause(b.Context())
	defer cancel(nil)
	step := &kernel.Step{ID: 1, Context: ctx, Cancel: func(err error) { cancel(err) }}
	one := tensor.Scalar(int64(1))
	opts := executor.RunOptions{Args: make([]tensor.Tensor, 1), Rets: make([]tensor.Tensor, 1)}
	run := func() {
		opts.Args[0] = one.Retain()
		if err := e.Run(step, opts); err != nil {
			b.Fatal(err)
		}
		opts.Rets[0].Release()
	}
	for range 30 { // until the averages of the cost model settle
		run()
	}
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes), "ns/node")
}

func BenchmarkOneNode(b *testing.B) {
	g := newBuilder(b)
	g.ret(0, g.arg(0, tensor.Int64))
	benchmark(b, g, 2)
}

func chain(g *builder, v graph.Output, n int) graph.Output {
	one := g.number(1)
	for range n {
		v = g.sum(v, one)
	}
	return v
}

func BenchmarkChain(b *testing.B) {
	for _, op := range []string{"NoOp", "Identity", "Add"} {
		b.Run(op, func(b *testing.B) {
			g := newBuilder(b)
			const n = 1000
			v := g.arg(0, tensor.Int64)
			switch op {
			case "NoOp":
				last := v.Node
				for range n {
					next := g.add("", "NoOp", nil)
					g.ConnectControl(last, next)
					last = next
				}
			case "Identity":
				for range n {
					v = g.typed("Identity", v).Out(0)
				}
				g.ret(0, v)
			default:
				g.ret(0, chain(g, v, n))
			}
			benchmark(b, g, n)
		})
	}
}

func BenchmarkParallelChains(b *testing.B) {
	for _, micros := range []int64{0, 10} {
		b.Run(fmt.Sprintf("%dµs", micros), func(b *testing.B) {
			g := newBuilder(b)
			const chains, length = 50, 100
			v := g.arg(0, tensor.Int64)
			ends := g.add("", "NoOp", nil)
			for range chains {
				end := v
				if micros == 0 {
					end = chain(g, v, length)
				} else {
					for range length {
						end = g.add("", "Work", opdef.Attrs{"micros": micros}, end).Out(0)
					}
				}
				g.ConnectControl(end.Node, ends)
			}
			benchmark(b, g, chains*length)
		})
	}
}

func BenchmarkTree(b *testing.B) {
	g := newBuilder(b)
	const leaves = 4096
	nodes := make([]graph.Output, leaves)
	for i := range nodes {
		nodes[i] = g.number(1)
	}
	for len(nodes) > 1 {
		nodes = append(nodes[2:], g.sum(nodes[0], nodes[1]))
	}
	g.ret(0, nodes[0])
	benchmark(b, g, 2*leaves)
}

func BenchmarkLoop(b *testing.B) {
	g := newBuilder(b)
	const n = 100_000
	g.ret(0, g.countTo("f", 10, g.number(0), g.number(n), g.number(1)))
	benchmark(b, g, n*7)
}

func BenchmarkCompile(b *testing.B) {
	g := newBuilder(b)
	const n = 20_000
	g.ret(0, chain(g, g.arg(0, tensor.Int64), n))
	b.ReportAllocs()
	for b.Loop() {
		g.compile()
	}
}
