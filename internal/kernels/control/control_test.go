package control

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestRecorded compares kernels and shape functions with recorded results of TensorFlow.
func TestRecorded(t *testing.T) { kerneltest.RunCases(t, "testdata/shapes.txt") }

// run computes an operation on values that may be dead or references.
func run(t *testing.T, op string, attrs opdef.Attrs, in ...kernel.Value) ([]kernel.Value, error) {
	t.Helper()
	n, err := kerneltest.NewEnv().Make(op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	return n.RunValues(in...)
}

func value[T tensor.Elem](v T) kernel.Value { return kernel.Value{Tensor: tensor.Scalar(v)} }

func TestSwitch(t *testing.T) {
	float := opdef.Attrs{"T": tensor.Float32}
	for _, pred := range []bool{false, true} {
		out, err := run(t, "Switch", float, value(float32(7)), value(pred))
		if err != nil || out[0].Tensor.Initialized() == pred || out[1].Tensor.Initialized() != pred {
			t.Errorf("pred %t: got %v, error %v", pred, out, err)
		}
		ref := kernel.NewVariable()
		out, err = run(t, "RefSwitch", float, kernel.Value{Ref: ref}, value(pred))
		if err != nil || (out[0].Ref == ref) == pred || (out[1].Ref == ref) != pred {
			t.Errorf("pred %t: got %v, error %v", pred, out, err)
		}
	}
	for index, want := range map[int32]int{-1: 2, 0: 0, 1: 1, 7: 2} {
		out, err := run(t, "_SwitchN", opdef.Attrs{"T": tensor.Float32, "num_outs": int64(3)}, value(float32(7)), value(index))
		if err != nil {
			t.Fatal(err)
		}
		for i := range out {
			if out[i].Tensor.Initialized() != (i == want) {
				t.Errorf("index %d: output %d is %v", index, i, &out[i].Tensor)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	for i := range 3 {
		in, out := make([]kernel.Value, 2), make([]kernel.Value, 2)
		ref := kernel.NewVariable()
		if i < len(in) {
			in[i].Ref = ref
		}
		var ctx kernel.Context
		ctx.Bind(in, out, []tensor.DType{tensor.Float32.Ref(), tensor.Int32})
		if err := merge(&ctx); err != nil {
			t.Fatal(err)
		}
		if i == len(in) {
			if !ctx.Dead {
				t.Error("a Merge without inputs is not dead")
			}
			continue
		}
		if out[0].Ref != ref || tensor.Value[int32](&out[1].Tensor) != int32(i) {
			t.Errorf("input %d: got %v", i, out)
		}
	}
}

func TestRefSelect(t *testing.T) {
	refs := []*kernel.Variable{kernel.NewVariable(), kernel.NewVariable()}
	attrs := opdef.Attrs{"T": tensor.Float32, "N": int64(2)}
	for i := range refs {
		out, err := run(t, "RefSelect", attrs, value(int32(i)), kernel.Value{Ref: refs[0]}, kernel.Value{Ref: refs[1]})
		if err != nil || out[0].Ref != refs[i] {
			t.Errorf("index %d: got %v, error %v", i, out, err)
		}
	}
	_, err := run(t, "RefSelect", attrs, value(int32(2)), kernel.Value{Ref: refs[0]}, kernel.Value{Ref: refs[1]})
	if status.CodeOf(err) != status.InvalidArgument || err.Error() != "Index must be in the range [0, 2) but got 2" {
		t.Errorf("got %v", err)
	}
}

func TestAbort(t *testing.T) {
	_, err := run(t, "Abort", opdef.Attrs{"error_msg": "why"})
	if status.CodeOf(err) != status.Aborted || err.Error() != "Abort_op intentional failure; why" {
		t.Errorf("got %v", err)
	}
}
