package executor_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestRegions checks what is fused, and that results are the same with and without regions.
func TestRegions(t *testing.T) {
	const kernels, nodes = 2, 5
	for _, tt := range []struct {
		name    string
		build   func(b *builder, x graph.Output) graph.Output
		regions string
	}{
		{"chain", func(b *builder, x graph.Output) graph.Output {
			for name := range strings.FieldsSeq("a b c d e f g h") {
				x = b.add(name, "Add2", nil, x, x).Out(0)
			}
			return x
		}, "a b c d e\nf g h\n"},
		{"tree", func(b *builder, x graph.Output) graph.Output {
			left := b.add("l", "Add2", nil, b.add("ll", "Add2", nil, x, x).Out(0), b.add("lr", "Mul2", nil, x, x).Out(0))
			right := b.add("r", "Add2", nil, b.add("rl", "Add2", nil, x, x).Out(0), b.add("rr", "Mul2", nil, x, x).Out(0))
			return b.add("root", "Add2", nil, left.Out(0), right.Out(0)).Out(0)
		}, "lr ll l\nrr rl r root\n"},
		{"branches that join", func(b *builder, x graph.Output) graph.Output {
			a := b.add("a", "Add2", nil, x, x).Out(0)
			p, q := b.add("p", "Add2", nil, a, x).Out(0), b.add("q", "Mul2", nil, a, a).Out(0)
			return b.add("z", "Add2", nil, p, q).Out(0)
		}, "a q p z\n"},
		{"a value with another consumer", func(b *builder, x graph.Output) graph.Output {
			a := b.add("a", "Add2", nil, x, x).Out(0)
			m := b.add("m", "Add2", nil, a, a).Out(0)
			b.ret(1, m)
			n := b.add("n", "Add2", nil, m, m).Out(0)
			return b.add("z", "Add2", nil, n, n).Out(0)
		}, "a m\nn z\n"},
		{"an asynchronous node", func(b *builder, x graph.Output) graph.Output {
			a := b.add("a", "Add2", nil, x, x).Out(0)
			m := b.add("m", "Add2", nil, a, a).Out(0)
			later := b.add("later", "AddLater", nil, m, m).Out(0)
			n := b.add("n", "Add2", nil, later, m).Out(0)
			return b.add("z", "Add2", nil, n, n).Out(0)
		}, "a m\nn z\n"},
		{"constants and identities", func(b *builder, x graph.Output) graph.Output {
			two := b.add("two", "Const", opdef.Attrs{"value": tensor.Scalar(int64(2)), "dtype": tensor.Int64}).Out(0)
			same := b.add("same", "Identity", opdef.Attrs{"T": tensor.Int64}, b.add("a", "Mul2", nil, x, two).Out(0)).Out(0)
			return b.add("z", "Add2", nil, same, two).Out(0)
		}, "two a same z\n"},
		{"effects", func(b *builder, x graph.Output) graph.Output {
			v := b.add("v", "Var", nil).Out(0)
			set := b.add("set", "AssignRef", nil, v, b.add("a", "Add2", nil, x, x).Out(0))
			read := b.typed("Identity", v)
			b.ConnectControl(set, read)
			y := b.add("y", "Add2", nil, read.Out(0), x).Out(0)
			return b.add("z", "Add2", nil, b.add("m", "Add2", nil, y, y).Out(0), x).Out(0)
		}, "m z\n"},
		{"control edges from outside", func(b *builder, x graph.Output) graph.Output {
			a := b.add("a", "Add2", nil, x, x)
			b.ConnectControl(b.add("first", "AddLater", nil, x, x), a)
			return b.add("z", "Add2", nil, a.Out(0), x).Out(0)
		}, "a z\n"},
		{"control edges from inside", func(b *builder, x graph.Output) graph.Output {
			a := b.add("a", "Add2", nil, x, x)
			b.ConnectControl(a, b.add("after", "AddLater", nil, x, x))
			z := b.add("z", "Add2", nil, a.Out(0), x)
			return z.Out(0)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder(t)
			b.ret(0, tt.build(b, b.arg(0, tensor.Int64)))
			e := b.compile()
			var want int64
			for i := range 3 {
				if i == 1 {
					if got := e.Fuse(kernels, nodes); got != tt.regions {
						t.Errorf("the regions are\n%swant\n%s", got, tt.regions)
					}
				}
				rets, err := call(t, e, 2, 3)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					want = tensor.Value[int64](&rets[0])
				}
				wantNumber(t, &rets[0], want)
			}
		})
	}
}

// TestDeadNodesInRegions has a kernel that makes its output dead, as the root of a region and
// inside one. The deadness along a control edge must not depend on whether the node is in a region.
func TestDeadNodesInRegions(t *testing.T) {
	for _, region := range []string{"a p", "a p z"} {
		b := newBuilder(t)
		x := b.arg(0, tensor.Int64)
		root := b.add("p", "Positive", nil, b.add("a", "Add2", nil, x, x).Out(0))
		if region == "a p z" {
			root = b.add("z", "Add2", nil, root.Out(0), x)
		}
		b.ret(0, root.Out(0))
		after := b.add("after", "AddLater", nil, b.number(1), b.number(2))
		b.ConnectControl(root, after)
		b.ret(1, after.Out(0))
		e := b.compile()
		live := map[int64][2]bool{}
		for _, fused := range []bool{false, true} {
			if fused && e.Fuse(2, 9) != region+"\n" {
				t.Errorf("the regions are\n%swant\n%s", e.Regions(), region)
			}
			for _, x := range []int64{5, -5, 6} {
				rets, err := call(t, e, 2, x)
				if err != nil {
					t.Fatal(err)
				}
				got := [2]bool{rets[0].Initialized(), rets[1].Initialized()}
				if want, ok := live[x]; ok && got != want {
					t.Errorf("%s for %d: results are live %v, without regions %v", region, x, got, want)
				}
				live[x] = got
			}
		}
		if live[5] != [2]bool{true, true} || live[-5][0] {
			t.Errorf("%s: results are live %v", region, live)
		}
	}
}

// TestSecondRunFuses runs a graph until its nodes are fused.
func TestSecondRunFuses(t *testing.T) {
	defer executor.FuseAll()()
	b := newBuilder(t)
	b.ret(0, chain(b, b.arg(0, tensor.Int64), 8))
	e := b.compile()
	for i := range 4 {
		if fused := e.Regions() != ""; fused != (i >= 2) {
			t.Errorf("before run %d: fused %t", i, fused)
		}
		rets, err := call(t, e, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		wantNumber(t, &rets[0], 9)
	}
}

// TestSlowRegionsAreDropped fuses nodes that take long.
func TestSlowRegionsAreDropped(t *testing.T) {
	b := newBuilder(t)
	x := b.arg(0, tensor.Int64)
	for range 4 {
		x = b.add("", "Work", opdef.Attrs{"micros": int64(150)}, x).Out(0)
	}
	b.ret(0, x)
	e := b.compile()
	run := func() {
		if _, err := call(t, e, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if e.Fuse(1, 64) == "" {
		t.Fatal("there is no region")
	}
	for range executor.SlowRegionCalls - 1 {
		run()
	}
	if e.Regions() == "" {
		t.Error("the region was dropped too early")
	}
	run()
	if e.Regions() != "" {
		t.Error("the region is still there")
	}
}

func BenchmarkFuse(b *testing.B) {
	g := newBuilder(b)
	g.ret(0, chain(g, g.arg(0, tensor.Int64), 20_000))
	e := g.compile()
	if _, err := call(b, e, 1, 1); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		e.FuseOnly(4, 64)
	}
}
