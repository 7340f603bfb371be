package executor_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestMain(m *testing.M) {
	registerOps()
	code := m.Run()
	parallel.SetThreads(1) // stops the worker goroutines
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestSimpleAdd(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.sum(b.arg(0, tensor.Int64), b.arg(1, tensor.Int64)))
	wantNumber(t, &b.run(1, 2, 3)[0], 5)
}

func TestNoNodes(t *testing.T) { newBuilder(t).run(0) }

func TestNoInputs(t *testing.T) {
	b := newBuilder(t)
	b.number(1)
	b.run(0)
}

// TestSelfAdd doubles a number 30 times.
func TestSelfAdd(t *testing.T) {
	b := newBuilder(t)
	v := b.arg(0, tensor.Int64)
	for range 30 {
		v = b.sum(v, v)
	}
	b.ret(0, v)
	wantNumber(t, &b.run(1, 1)[0], 1<<30)
}

// TestRandomTree adds 4096 numbers in random order.
func TestRandomTree(t *testing.T) {
	b := newBuilder(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var nodes []graph.Output
	for range 4096 {
		nodes = append(nodes, b.number(1))
	}
	take := func() graph.Output {
		i := rng.IntN(len(nodes))
		out := nodes[i]
		nodes[i] = nodes[len(nodes)-1]
		nodes = nodes[:len(nodes)-1]
		return out
	}
	for len(nodes) > 1 {
		nodes = append(nodes, b.sum(take(), take()))
	}
	b.ret(0, nodes[0])
	wantNumber(t, &b.run(1)[0], 4096)
}

// TestConcurrentAddAssign has many nodes that add to one variable.
func TestConcurrentAddAssign(t *testing.T) {
	b := newBuilder(t)
	v := b.add("v", "Var", nil).Out(0)
	init := b.add("init", "AssignRef", nil, v, b.number(0))
	last := b.add("last", "NoOp", nil)
	one := b.number(1)
	for range 1024 {
		add := b.add("", "AssignAddRef", nil, v, one)
		b.ConnectControl(init, add)
		b.ConnectControl(add, last)
	}
	read := b.typed("Identity", v)
	b.ConnectControl(last, read)
	b.ret(0, read.Out(0))
	e := b.compile()
	for range 10 {
		rets, err := call(t, e, 1)
		if err != nil {
			t.Fatal(err)
		}
		wantNumber(t, &rets[0], 1024)
	}
}

func TestConstantsAreNotTakenOver(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.sum(b.number(1), b.number(2)))
	e := b.compile()
	for range 3 {
		rets, err := call(t, e, 1)
		if err != nil {
			t.Fatal(err)
		}
		wantNumber(t, &rets[0], 3)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.arg(1, tensor.Int64))
	e := b.compile()
	if _, err := call(t, e, 1, 1); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("missing argument: %v", err)
	}
	if _, err := call(t, e, 0, 1, 2); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("missing result: %v", err)
	}
	err := e.Run(newStep(t, nil), executor.RunOptions{
		Args: []tensor.Tensor{tensor.Scalar(int64(1)), tensor.Scalar(true)}, Rets: make([]tensor.Tensor, 1),
	})
	if err == nil || !strings.Contains(err.Error(), "Type mismatch: actual bool vs. expect int64") {
		t.Errorf("wrong type: %v", err)
	}
}

func TestDepthReachesKernels(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.add("", "Depth", nil).Out(0))
	e := b.compile()
	for depth := range 3 {
		rets := make([]tensor.Tensor, 1)
		if err := e.Run(newStep(t, nil), executor.RunOptions{Rets: rets, Depth: depth}); err != nil {
			t.Fatal(err)
		}
		wantNumber(t, &rets[0], int64(depth))
	}
}
