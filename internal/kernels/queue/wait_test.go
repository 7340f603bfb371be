package queue

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// bench is a queue of scalar floats and the nodes of operations on it.
type bench struct {
	*testing.T
	env    *kerneltest.Env
	handle tensor.Tensor
}

func newBench(t *testing.T, op string, attrs opdef.Attrs) *bench {
	b := &bench{T: t, env: kerneltest.NewEnv()}
	b.env.Step.Context = t.Context()
	all := opdef.Attrs{"component_types": []tensor.DType{tensor.Float32}, "shapes": []tensor.PartialShape{tensor.MakePartial()}}
	maps.Copy(all, attrs)
	node, err := b.env.Make(op, all)
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

// start starts an operation in the environment's step.
func (b *bench) start(op string, attrs opdef.Attrs, in ...tensor.Tensor) <-chan kerneltest.Result {
	b.Helper()
	node, err := b.env.Make(op, attrs)
	if err != nil {
		b.Fatal(err)
	}
	return node.Start(slices.Concat([]tensor.Tensor{b.handle}, in)...)
}

func (b *bench) enqueue(v float32) <-chan kerneltest.Result {
	return b.start("QueueEnqueueV2", opdef.Attrs{"Tcomponents": []tensor.DType{tensor.Float32}}, tensor.Scalar(v))
}

func (b *bench) enqueueMany(v ...float32) <-chan kerneltest.Result {
	return b.start("QueueEnqueueManyV2", opdef.Attrs{"Tcomponents": []tensor.DType{tensor.Float32}}, tensor.Vector(v...))
}

var oneFloat = opdef.Attrs{"component_types": []tensor.DType{tensor.Float32}}

func (b *bench) dequeue() <-chan kerneltest.Result { return b.start("QueueDequeueV2", oneFloat) }

func (b *bench) dequeueMany(n int32) <-chan kerneltest.Result {
	return b.start("QueueDequeueManyV2", oneFloat, tensor.Scalar(n))
}

func (b *bench) dequeueUpTo(n int32) <-chan kerneltest.Result {
	return b.start("QueueDequeueUpToV2", oneFloat, tensor.Scalar(n))
}

func (b *bench) close(cancel bool) <-chan kerneltest.Result {
	return b.start("QueueCloseV2", opdef.Attrs{"cancel_pending_enqueues": cancel})
}

func (b *bench) waits(ops ...<-chan kerneltest.Result) {
	b.Helper()
	for i, op := range ops {
		if len(op) != 0 {
			b.Fatalf("operation %d does not wait: %v", i, (<-op).Err)
		}
	}
}

// expectValues checks that an operation has completed without an error and returned these values.
func (b *bench) expectValues(op <-chan kerneltest.Result, want ...float32) {
	b.Helper()
	select {
	case r := <-op:
		if r.Err != nil {
			b.Fatal(r.Err)
		}
		if len(want) > 0 && !slices.Equal(tensor.Values[float32](&r.Outputs[0].Tensor), want) {
			b.Fatalf("got %v, want %v", r.Outputs[0].Tensor, want)
		}
	default:
		b.Fatal("operation still waits")
	}
}

func (b *bench) fails(op <-chan kerneltest.Result, code status.Code, text string) {
	b.Helper()
	r := <-op
	if status.CodeOf(r.Err) != code || !strings.Contains(r.Err.Error(), text) {
		b.Fatalf("error %v: %v, want %v: %s", status.CodeOf(r.Err), r.Err, code, text)
	}
}

func (b *bench) size(want int32) {
	b.Helper()
	r := <-b.start("QueueSizeV2", nil)
	if got := tensor.Value[int32](&r.Outputs[0].Tensor); got != want {
		b.Fatalf("%d elements, want %d", got, want)
	}
}

func TestWaitsForRoom(t *testing.T) {
	b := newBench(t, "FIFOQueueV2", opdef.Attrs{"capacity": int64(2)})
	many := b.enqueueMany(1, 2, 3, 4, 5)
	after := b.enqueue(6)
	b.waits(many, after)
	b.expectValues(b.dequeue(), 1)
	b.expectValues(b.dequeueMany(3), 2, 3, 4) // more than the capacity
	b.expectValues(many)
	b.expectValues(after)
	b.expectValues(b.dequeueMany(2), 5, 6)
	b.size(0)
}

func TestServesInOrder(t *testing.T) {
	b := newBench(t, "FIFOQueueV2", nil)
	first, second, third := b.dequeueMany(3), b.dequeue(), b.dequeueUpTo(2)
	b.expectValues(b.enqueueMany(1, 2))
	b.waits(first, second, third)
	b.size(0) // the first dequeue has taken them
	b.expectValues(b.enqueueMany(3, 4, 5))
	b.expectValues(first, 1, 2, 3)
	b.expectValues(second, 4)
	b.waits(third)
	b.expectValues(b.close(false))
	b.expectValues(third, 5)
}

func TestCloseEndsWaits(t *testing.T) {
	b := newBench(t, "FIFOQueueV2", opdef.Attrs{"capacity": int64(1)})
	b.expectValues(b.enqueue(1))
	before := b.enqueue(2)
	closing := b.close(false)
	after := b.enqueue(3)
	b.waits(before, closing, after)
	many := b.dequeueMany(3)
	b.expectValues(before)
	b.expectValues(closing)
	b.fails(after, status.Cancelled, "is closed.")
	b.fails(many, status.OutOfRange, "is closed and has insufficient elements (requested 2, current size 1)")
	b.expectValues(b.dequeueUpTo(5), 1, 2) // the failed batch has returned its elements
	b.fails(b.dequeueUpTo(5), status.OutOfRange, "is closed and has insufficient elements (requested 5, current size 0)")
}

func TestCloseCancelsEnqueues(t *testing.T) {
	b := newBench(t, "FIFOQueueV2", opdef.Attrs{"capacity": int64(1)})
	pending := b.enqueueMany(1, 2)
	closing := b.close(false)
	b.waits(pending, closing)
	b.expectValues(b.close(true))
	b.fails(pending, status.Cancelled, "Enqueue operation was cancelled")
	b.fails(closing, status.Cancelled, "was cancelled")
	b.expectValues(b.dequeue(), 1)
	b.fails(b.dequeue(), status.OutOfRange, "(requested 1, current size 0)")
}

func TestStepEndsWaits(t *testing.T) {
	b := newBench(t, "FIFOQueueV2", opdef.Attrs{"capacity": int64(2)})
	step, cancel := context.WithCancel(t.Context())
	other := b.env.Step.Context
	b.env.Step.Context = step
	many := b.dequeueMany(3)
	b.env.Step.Context = other
	b.expectValues(b.enqueueMany(1, 2))
	next := b.dequeueMany(2)
	b.waits(many, next)
	cancel()
	b.fails(many, status.Cancelled, "Dequeue operation was cancelled")
	if r := <-next; r.Err != nil || !slices.Equal(tensor.Values[float32](&r.Outputs[0].Tensor), []float32{1, 2}) {
		t.Fatalf("elements of a cancelled batch are lost: %v %v", r.Outputs[0].Tensor, r.Err)
	}
	b.env.Step.Context = step
	b.fails(b.enqueue(1), status.Cancelled, "Enqueue operation was cancelled")
	b.env.Step.Context = other
	b.size(0)
}

func TestShuffleKeepsSome(t *testing.T) {
	b := newBench(t, "RandomShuffleQueueV2", opdef.Attrs{"capacity": int64(10), "min_after_dequeue": int64(2)})
	many := b.dequeueMany(3)
	b.expectValues(b.enqueueMany(1, 2))
	b.waits(many)
	b.expectValues(b.enqueueMany(3, 4))
	b.waits(many)
	b.expectValues(b.enqueue(5))
	b.expectValues(many)
	next := b.dequeue()
	b.waits(next)
	b.expectValues(b.close(false))
	b.expectValues(next)
	b.size(1)
}

func TestPriorityBatchIsOrdered(t *testing.T) {
	b := newBench(t, "PriorityQueueV2", nil)
	types := opdef.Attrs{"Tcomponents": []tensor.DType{tensor.Int64, tensor.Float32}}
	put := func(priority int64, v float32) {
		b.expectValues(b.start("QueueEnqueueV2", types, tensor.Scalar(priority), tensor.Scalar(v)))
	}
	out := opdef.Attrs{"component_types": []tensor.DType{tensor.Int64, tensor.Float32}}
	many := b.start("QueueDequeueManyV2", out, tensor.Scalar[int32](4))
	put(3, 0)
	put(1, 1)
	put(1, 2)
	b.waits(many)
	put(0, 3)
	r := <-many
	if r.Err != nil || !slices.Equal(tensor.Values[float32](&r.Outputs[1].Tensor), []float32{3, 1, 2, 0}) {
		t.Fatalf("got %v, error %v", r.Outputs[1].Tensor, r.Err)
	}
}

// TestConcurrent passes numbers through a small queue from many goroutines to many.
func TestConcurrent(t *testing.T) {
	b := newBench(t, "FIFOQueueV2", opdef.Attrs{"capacity": int64(3)})
	const producers, each = 6, 120
	var sum atomic.Int64
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				if r := <-b.enqueue(float32(p*each + i)); r.Err != nil {
					t.Error(r.Err)
				}
			}
		})
		wg.Go(func() {
			for range each / 2 {
				r := <-b.dequeueMany(2)
				if r.Err != nil {
					t.Error(r.Err)
					return
				}
				for _, v := range tensor.Values[float32](&r.Outputs[0].Tensor) {
					sum.Add(int64(v))
				}
			}
		})
	}
	wg.Wait()
	if n := int64(producers * each); sum.Load() != n*(n-1)/2 {
		t.Errorf("sum %d, want %d", sum.Load(), n*(n-1)/2)
	}
	b.size(0)
}
