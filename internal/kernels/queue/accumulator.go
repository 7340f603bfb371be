package queue

import (
	"context"

	"github.com/weft-ml/weft/internal/opkit/waitqueue"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Accumulator aggregates the gradients of one training step until a take operation returns their
// sum or mean, which starts the next step. It drops gradients of earlier steps. Synchronous
// training with stale replicas is built on it.
type Accumulator struct {
	waitqueue.Monitor
	takers *waitqueue.Queue

	dtype  tensor.DType
	sparse bool // whether gradients consist of indices, rows and a dense shape
	mean   bool

	sum   sum   // guarded by Monitor
	count int   // number of gradients in the sum; guarded by Monitor
	step  int64 // guarded by Monitor
}

// TypeName names the resource as TensorFlow does.
func (*Accumulator) TypeName() string { return "N10tensorflow26ConditionalAccumulatorBaseE" }

// sum is the aggregate of an accumulator. A gradient consists of one tensor or several.
type sum interface {
	// add adds a gradient and may take ownership of its tensors. If first is true, the gradient
	// replaces the sum. The account pays for the memory of the sum. After an error the sum is as
	// before.
	add(a *membudget.Account, gradient []tensor.Tensor, first bool) error
	// divide converts the sum of count gradients to their mean.
	divide(a *membudget.Account, count int) error
	// take returns the sum as kernel outputs.
	take() []tensor.Tensor
}

func newAccumulator(dtype tensor.DType, sparse, mean bool, s sum) *Accumulator {
	a := &Accumulator{dtype: dtype, sparse: sparse, mean: mean, sum: s}
	a.takers = a.NewQueue(waitqueue.FIFO)
	return a
}

// apply adds a gradient computed at a step, or drops it if it is stale. An account pays for it.
func (a *Accumulator) apply(by *membudget.Account, step int64, gradient []tensor.Tensor) (err error) {
	a.Change(func() {
		if step < a.step {
			return
		}
		if err = a.sum.add(by, gradient, a.count == 0); err == nil {
			a.count++
		}
	})
	return err
}

// takeGradient waits for the required number of gradients and passes their mean or sum to done. An
// account pays for a copy.
func (a *Accumulator) takeGradient(ctx context.Context, by *membudget.Account, required int, done func([]tensor.Tensor, error)) {
	if required <= 0 {
		done(nil, status.InvalidArgumentf("Argument num_required must be positive, but was %d", required))
		return
	}
	var taken []tensor.Tensor
	a.takers.Do(ctx, waitqueue.Operation{
		Cancelled: "TakeGrad operation was cancelled",
		Try: func() (waitqueue.Outcome, error) {
			if a.count < required {
				return waitqueue.Blocked, nil
			}
			if a.mean {
				if err := a.sum.divide(by, a.count); err != nil {
					return waitqueue.Complete, err
				}
			}
			a.step++
			taken, a.count = a.sum.take(), 0
			return waitqueue.Complete, nil
		},
		Done: func(err error) { done(taken, err) },
	})
}

// setStep sets the global step; gradients of earlier steps are dropped.
func (a *Accumulator) setStep(step int64) { a.Change(func() { a.step = step }) }

func (a *Accumulator) accumulated() (n int) {
	a.View(func() { n = a.count })
	return n
}
