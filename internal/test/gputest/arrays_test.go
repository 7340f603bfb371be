package gputest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// arrayProgram writes tensor arrays, their gradients and a stack, and reads them. Elements are
// written one by one, by rows and by pieces.
func arrayProgram(on *op.Scope, x op.Output) []op.Output {
	i := func(v int32) op.Output { return op.Const(on, v) }
	array, flow := op.TensorArrayV3(on, i(3), tensor.Float32, op.TensorArrayV3ClearAfterRead(false))
	flow = op.TensorArrayScatterV3(on, array, op.Const(on, []int32{2, 0, 1}), x, flow)
	one := op.TensorArrayReadV3(on, array, i(1), flow, tensor.Float32)
	two := op.TensorArrayGatherV3(on, array, op.Const(on, []int32{2, 0}), flow, tensor.Float32)

	// both writes of element 1 are summed, and element 0 is zero
	grads, more := op.TensorArrayGradV3(on, array, flow, "gradients")
	more = op.TensorArrayWriteV3(on, grads, i(1), one, more)
	more = op.TensorArrayWriteV3(on, grads, i(1), op.Square(on, one), more)
	more = op.TensorArrayWriteV3(on, grads, i(2), one, more)
	sums := op.TensorArrayGatherV3(on, grads, op.Const(on, []int32{0, 1, 2}), more, tensor.Float32)

	pieces, cut := op.TensorArrayV3(on, i(2), tensor.Float32)
	cut = op.TensorArraySplitV3(on, pieces, x, op.Const(on, []int64{1, 2}), cut)
	whole, lengths := op.TensorArrayConcatV3(on, pieces, cut, tensor.Float32)

	stack := op.StackV2(on, i(4), tensor.Float32)
	pushed := op.StackPushV2(on, stack, op.Neg(on, x))
	popped := op.StackPopV2(on.WithControlDependencies(pushed.Node), stack, tensor.Float32)
	return []op.Output{one, two, sums, whole, lengths, popped}
}

// TestArrays checks that tensor arrays and stacks keep their elements in the memory of the device.
func TestArrays(t *testing.T) {
	x := matrix(t, 3, 2, 1, 2, 3, 4, 5, 6)
	var want []tensor.Tensor
	for _, name := range []string{"/cpu:0", "/gpu:0", "/gpu:1"} {
		s := op.NewScope()
		in := op.Placeholder(s, tensor.Float32)
		fetches := arrayProgram(s.WithDevice(name), in)
		before := arrayDetours()
		out, err := open(t, s).Run(t.Context(), weft.Feeds{in: x}, fetches, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := arrayDetours() - before; n > 0 {
			t.Errorf("%s: %d detours of %v", name, n, device.Detours())
		}
		if want == nil {
			want = out
			if sums := tensor.Values[float32](&out[2]); !slices.Equal(sums, []float32{0, 0, 30, 42, 5, 6}) {
				t.Errorf("gradients %v", sums)
			}
			continue
		}
		for i := range out {
			if got, want := out[i].Summary(20), want[i].Summary(20); got != want {
				t.Errorf("%s: output %d is %s, want %s", name, i, got, want)
			}
		}
	}
}

// arrayDetours returns the number of detours of operations on tensor arrays and stacks.
func arrayDetours() (n int64) {
	for name, count := range device.Detours() {
		if strings.HasPrefix(name, "TensorArray") || strings.HasPrefix(name, "Stack") {
			n += count
		}
	}
	return n
}
