package queue

import (
	"context"

	"github.com/weft-ml/weft/internal/opkit/waitqueue"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Accumulator adds up gradients of one step of training until somebody takes their sum or mean,
// which begins the next step. Gradients of earlier steps are dropped. It is what synchronous
// training with stale replicas is made of.
type Accumulator struct {
	waitqueue.Monitor
	takers *waitqueue.Queue

	dtype  tensor.DType
	sparse bool // gradients have indices, rows and the shape of the whole
	mean   bool

	sum   sum   // guarded by Monitor
	count int   // guarded by Monitor; gradients in the sum
	step  int64 // guarded by Monitor
}

// TypeName names the resource as TensorFlow does.
func (*Accumulator) TypeName() string { return "N10tensorflow26ConditionalAccumulatorBaseE" }

// sum is what an accumulator adds gradients to. A gradient is one tensor, or several.
type sum interface {
	// add adds a gradient, of which it may take tensors over; the first replaces what the sum was.
	add(gradient []tensor.Tensor, first bool) error
	// divide turns the sum of so many gradients into their mean.
	divide(count int) error
	// take gives the sum as the outputs of a kernel.
	take() []tensor.Tensor
}

func newAccumulator(dtype tensor.DType, sparse, mean bool, s sum) *Accumulator {
	a := &Accumulator{dtype: dtype, sparse: sparse, mean: mean, sum: s}
	a.takers = a.NewQueue(waitqueue.FIFO)
	return a
}

// apply adds a gradient that was computed in a step, unless it is stale.
func (a *Accumulator) apply(step int64, gradient []tensor.Tensor) (err error) {
	a.Change(func() {
		if step < a.step {
			return
		}
		if err = a.sum.add(gradient, a.count == 0); err == nil {
			a.count++
		}
	})
	return err
}

// takeGradient waits for a number of gradients and gives their mean or sum.
func (a *Accumulator) takeGradient(ctx context.Context, required int, done func([]tensor.Tensor, error)) {
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
				if err := a.sum.divide(a.count); err != nil {
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

// setStep sets the step whose gradients are the oldest that count.
func (a *Accumulator) setStep(step int64) { a.Change(func() { a.step = step }) }

func (a *Accumulator) accumulated() (n int) {
	a.View(func() { n = a.count })
	return n
}
