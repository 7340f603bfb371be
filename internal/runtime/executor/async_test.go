package executor_test

import (
	"sync"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func TestAsyncKernels(t *testing.T) {
	b := newBuilder(t)
	v := b.arg(0, tensor.Int64)
	sums := make([]graph.Output, 20)
	for i := range sums {
		sums[i] = v
		for range 20 {
			sums[i] = b.add("", "AddLater", nil, sums[i], b.number(int64(i))).Out(0)
		}
		b.ret(i, sums[i])
	}
	rets := b.run(len(sums), 5)
	for i := range rets {
		wantNumber(t, &rets[i], 5+int64(20*i))
	}
}

func TestRunAsync(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.add("", "AddLater", nil, b.arg(0, tensor.Int64), b.number(1)).Out(0))
	e := b.compile()
	const n = 50
	rets := make([]tensor.Tensor, n)
	var all sync.WaitGroup
	all.Add(n)
	for i := range n {
		opts := executor.RunOptions{Args: []tensor.Tensor{tensor.Scalar(int64(i))}, Rets: rets[i : i+1]}
		e.RunAsync(newStep(t, nil), opts, func(err error) {
			if err != nil {
				t.Error(err)
			}
			all.Done()
		})
	}
	all.Wait()
	for i := range rets {
		wantNumber(t, &rets[i], int64(i)+1)
	}
}

func TestDoneTwice(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.add("", "DoneTwice", nil, b.number(1)).Out(0))
	wantNumber(t, &b.run(1)[0], 1)
}

func TestManyRunsAtOnce(t *testing.T) {
	b := newBuilder(t)
	x := b.arg(0, tensor.Int64)
	y := b.add("", "Work", opdef.Attrs{"micros": int64(20)}, x).Out(0)
	b.ret(0, b.sum(b.countTo("f", 10, x, b.sum(x, b.number(100)), b.number(1)), b.add("", "AddLater", nil, x, y).Out(0)))
	e := b.compile()
	var all sync.WaitGroup
	for i := range int64(8) {
		all.Go(func() {
			for j := range int64(20) {
				rets, err := call(t, e, 1, i*j)
				if err != nil {
					t.Error(err)
					return
				}
				wantNumber(t, &rets[0], 3*i*j+100)
			}
		})
	}
	all.Wait()
}

// TestExpensiveKernels distributes kernels that take long over the cores and checks that all of
// them run.
func TestExpensiveKernels(t *testing.T) {
	defer parallel.SetThreads(parallel.SetThreads(4))
	b := newBuilder(t)
	one := b.number(1)
	for i := range 30 {
		v := one
		for range 3 {
			v = b.sum(b.add("", "Work", opdef.Attrs{"micros": int64(30)}, v).Out(0), one)
		}
		b.ret(i, v)
	}
	e := b.compile()
	for range 10 {
		rets, err := call(t, e, 30)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rets {
			wantNumber(t, &rets[i], 4)
		}
	}
}
