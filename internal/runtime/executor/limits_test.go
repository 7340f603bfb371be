package executor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// limitMemory limits the memory of the process until the test ends.
func limitMemory(t *testing.T, bytes int64) {
	old := membudget.Limit()
	t.Cleanup(func() { membudget.SetLimit(old) })
	membudget.SetLimit(bytes)
}

func wantExhausted(t *testing.T, err error) {
	t.Helper()
	if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "There is not enough memory") {
		t.Errorf("got %v", err)
	}
}

// TestEndlessIterations has a loop without a bound of parallel iterations. Each of them has a node
// that waits.
func TestEndlessIterations(t *testing.T) {
	limitMemory(t, 32<<20)
	b := newBuilder(t)
	endless := opdef.Attrs{"is_constant": true, "parallel_iterations": int64(1<<31 - 1)}
	limit, one := b.enter("f", b.number(1<<50), endless), b.enter("f", b.number(1), endless)
	b.loop("f", 1<<31-1, []graph.Output{b.number(0)},
		func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], limit).Out(0) },
		func(v []graph.Output) []graph.Output {
			b.add("", "Wait", nil, v[0])
			return []graph.Output{b.sum(v[0], one)}
		})
	_, err := call(t, b.compile(), 0)
	wantExhausted(t, err)
}

// TestNoMemoryForGraph runs a graph whose inputs take more memory than there is.
func TestNoMemoryForGraph(t *testing.T) {
	b := newBuilder(t)
	one := b.number(1)
	for range 10 {
		n := b.merge(10_000)
		for i := range n.NumInputs() {
			if err := b.Connect(one, n, i); err != nil {
				t.Fatal(err)
			}
		}
	}
	e := b.compile()
	if _, err := call(t, e, 0); err != nil {
		t.Error(err)
	}
	limitMemory(t, 1<<20)
	// The state of the first run is kept, so only one of two runs at the same time asks.
	b.add("", "Wait", nil, one)
	_, err := call(t, b.compile(), 0)
	wantExhausted(t, err)
}

// TestLongNamesOfFrames has frames in frames, whose names are those of all frames around them.
func TestLongNamesOfFrames(t *testing.T) {
	limitMemory(t, 64<<20)
	b := newBuilder(t)
	v := b.number(1)
	for i := range 300 {
		v = b.enter(fmt.Sprintf("%d%s", i, strings.Repeat("x", 4<<10)), v, nil)
	}
	b.add("", "Wait", nil, v)
	e, err := executor.New(b.Graph, executor.Config{Device: testDevice, NewKernel: newKernel, FrameIDs: executor.NamedFrameIDs})
	if err != nil {
		t.Fatal(err)
	}
	_, err = call(t, e, 0)
	wantExhausted(t, err)
}

// TestManyFrames enters many frames from each iteration of a loop.
func TestManyFrames(t *testing.T) {
	b := newBuilder(t)
	limit, one := b.enter("f", b.number(3), constEnter), b.enter("f", b.number(1), constEnter)
	b.ret(0, b.loop("f", 2, []graph.Output{b.number(0)},
		func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], limit).Out(0) },
		func(v []graph.Output) []graph.Output {
			for i := range 5000 {
				b.enter(fmt.Sprint(i), v[0], nil)
			}
			return []graph.Output{b.sum(v[0], one)}
		})[0])
	wantNumber(t, &b.run(1)[0], 3)
}

// TestExitInEveryIteration has an Exit that is live in every iteration of a loop. Its consumer also
// waits for the end of the loop, so it must not count the values as its other inputs.
func TestExitInEveryIteration(t *testing.T) {
	b := newBuilder(t)
	end := b.countTo("f", 10, b.number(7), b.number(12), b.number(1))
	merge := end.Node.Input(0).Node.Input(0).Node
	every := b.typed("Exit", merge.Out(0)).Out(0)
	odd, even := b.sw(every, b.add("", "Less2", nil, end, b.number(100)).Out(0))
	b.ret(0, b.merge(2, odd, even).Out(0))
	e := b.compile()
	for range 2 {
		rets, err := call(t, e, 1)
		if err != nil {
			t.Fatal(err)
		}
		wantNumber(t, &rets[0], 7)
	}
}

// TestDeadExitAfterLive has an Exit that is live in the first iteration of a loop and dead in the
// last.
func TestDeadExitAfterLive(t *testing.T) {
	b := newBuilder(t)
	end := b.countTo("f", 10, b.number(7), b.number(12), b.number(1))
	merge := end.Node.Input(0).Node.Input(0).Node
	_, early := b.sw(merge.Out(0), b.add("", "Less2", nil, merge.Out(0), b.enter("f", b.number(8), constEnter)).Out(0))
	first := b.typed("Exit", early).Out(0)
	b.ret(0, b.sum(first, end))
	wantNumber(t, &b.run(1)[0], 7+12)
}

// TestIndexOfMerge takes the second output of a Merge with many inputs.
func TestIndexOfMerge(t *testing.T) {
	for _, live := range []int{0, 15, 16, 99} {
		b := newBuilder(t)
		dead, alive := b.sw(b.number(3), b.constant(tensor.Scalar(true)))
		m := b.merge(100)
		for i := range m.NumInputs() {
			src := dead
			if i == live {
				src = alive
			}
			if err := b.Connect(src, m, i); err != nil {
				t.Fatal(err)
			}
		}
		b.add("", "_Retval", opdef.Attrs{"T": tensor.Int32, "index": int64(0)}, m.Out(1))
		rets := b.run(1)
		if got := tensor.Value[int32](&rets[0]); int(got) != live {
			t.Errorf("got %d, want %d", got, live)
		}
	}
}

// TestFusionOfManySharedInputs fuses rows of nodes whose other inputs have consumers in both rows.
func TestFusionOfManySharedInputs(t *testing.T) {
	const nodes, inputs = 60, 50
	b := newBuilder(t)
	rows := [2]graph.Output{b.number(0), b.number(0)}
	for range nodes {
		in := make([]graph.Output, inputs)
		for i := range in {
			in[i] = b.number(0)
		}
		for i, last := range rows {
			in[0] = last
			rows[i] = b.add("", "First", opdef.Attrs{"N": int64(inputs)}, in...).Out(0)
		}
	}
	e := b.compile()
	if _, err := call(t, e, 0); err != nil {
		t.Fatal(err)
	}
	e.FuseOnly(4, 64)
	if regions := strings.Count(e.Regions(), "\n"); regions != 2 {
		t.Errorf("%d regions", regions)
	}
}
