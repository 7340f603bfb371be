package rnn

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// sequenceOf returns the inputs of BlockLSTM, and those of its gradient, for one input and one
// cell.
func sequenceOf(t *testing.T, steps, batch int64) (forward, grad []tensor.Tensor) {
	t.Helper()
	zeros := func(shape ...int64) tensor.Tensor {
		z, err := tensor.Zeros(tensor.Float32, shape)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	forward = []tensor.Tensor{
		tensor.Scalar(steps), zeros(steps, batch, 1), zeros(batch, 1), zeros(batch, 1), zeros(2, 4), zeros(1), zeros(1), zeros(1), zeros(4),
	}
	grad = forward
	for range 9 {
		grad = append(slices.Clip(grad), zeros(steps, batch, 1))
	}
	return forward, grad
}

var sequenceAttrs = opdef.Attrs{"T": tensor.Float32, "use_peephole": false}

// Steps without cells take no time.
func TestStepsWithoutCells(t *testing.T) {
	forward, grad := sequenceOf(t, 1<<40, 0)
	kerneltest.Quickly(t, func() error {
		_, err := kerneltest.Try("BlockLSTM", sequenceAttrs, forward...)
		return err
	})
	kerneltest.Quickly(t, func() error {
		_, err := kerneltest.Try("BlockLSTMGrad", sequenceAttrs, grad...)
		return err
	})
}

// A sequence of many steps ends with the step of its graph.
func TestSequencesEndWithTheirStep(t *testing.T) {
	forward, grad := sequenceOf(t, 8, 1)
	kerneltest.WantCancelledAt(t, 5, "BlockLSTM", sequenceAttrs, forward...)
	kerneltest.WantCancelledAt(t, 5, "BlockLSTMGrad", sequenceAttrs, grad...)
}
