package queue

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

var floats = opdef.Attrs{"dtype": tensor.Float32}

func (b *bench) apply(step int64, v ...float32) {
	b.Helper()
	b.expectValues(b.start("ResourceAccumulatorApplyGradient", floats, tensor.Scalar(step), tensor.Vector(v...)))
}

func (b *bench) take(required int32) <-chan kerneltest.Result {
	return b.start("ResourceAccumulatorTakeGradient", floats, tensor.Scalar(required))
}

func newAccumulatorBench(t *testing.T) *bench {
	b := &bench{T: t, env: kerneltest.NewEnv()}
	b.env.Step.Context = t.Context()
	node, err := b.env.Make("ResourceConditionalAccumulator", opdef.Attrs{"dtype": tensor.Float32, "shape": tensor.MakePartial(2)})
	if err != nil {
		t.Fatal(err)
	}
	out, err := node.Run()
	if err != nil {
		t.Fatal(err)
	}
	b.handle = out[0]
	return b
}

func TestTakeWaitsForFreshGradients(t *testing.T) {
	b := newAccumulatorBench(t)
	first, second := b.take(2), b.take(1)
	b.apply(0, 1, 2)
	b.waits(first, second)
	b.apply(0, 3, 6)
	b.expectValues(first, 2, 4)
	b.apply(0, 9, 9) // stale: the global step is 1
	b.waits(second)
	b.apply(1, 5, 5)
	b.expectValues(second, 5, 5)
}

func TestTakeEndsWithItsStep(t *testing.T) {
	b := newAccumulatorBench(t)
	step, cancel := context.WithCancel(t.Context())
	b.env.Step.Context = step
	take := b.take(1)
	cancel()
	b.fails(take, status.Cancelled, "TakeGrad operation was cancelled")
	b.env.Step.Context = t.Context()
	b.apply(0, 1, 1)
	b.expectValues(b.take(1), 1, 1)
}

// TestGradientsAreNotChanged applies tensors that have other references.
func TestGradientsAreNotChanged(t *testing.T) {
	b := newAccumulatorBench(t)
	gradient := tensor.Vector[float32](1, 2)
	apply := func() {
		b.expectValues(b.start("ResourceAccumulatorApplyGradient", floats, tensor.Scalar[int64](0), gradient))
	}
	apply()
	apply()
	apply()
	b.expectValues(b.take(3), 1, 2)
	if !slices.Equal(tensor.Values[float32](&gradient), []float32{1, 2}) {
		t.Errorf("the gradient has become %v", gradient)
	}
}

// The account of a step pays for the memory of a sum. A gradient that it cannot pay leaves the sum
// as it was.
func TestAccountOfSum(t *testing.T) {
	session := membudget.NewAccount(nil, "session", "--max-session-memory", 1400, nil)
	step := membudget.NewAccount(session, "step", "--max-step-memory", 0, nil)
	s := &sparseSum[float32]{shape: tensor.MakePartial(-1, 2)}
	add := func(first, n int64) error {
		rows, err := tensor.Zeros(tensor.Float32, tensor.Shape{n, 2})
		if err != nil {
			t.Fatal(err)
		}
		indices := make([]int64, n)
		for i := range indices {
			indices[i] = first + int64(i)
		}
		return s.add(step, []tensor.Tensor{tensor.Vector(indices...), rows}, first == 0)
	}
	if err := add(0, 4); err != nil {
		t.Error(err)
	}
	if err := add(4, 4); err != nil {
		t.Error(err)
	}
	if session.Used() == 0 {
		t.Error("nothing is charged")
	}
	if err := add(10, 20); status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "--max-session-memory") {
		t.Errorf("got the error %v", err)
	}
	got := s.take()
	if have := tensor.Values[int64](&got[0]); !slices.Equal(have, []int64{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("got %v", have)
	}
	for i := range got {
		got[i].Release()
	}
	if used := session.Used(); used != 0 {
		t.Errorf("%d bytes stay charged", used)
	}
}
