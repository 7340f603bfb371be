package gputest_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestTypesOfGPUs compares operations on element types that TensorFlow has on GPUs only with those
// on a type of the CPU.
func TestTypesOfGPUs(t *testing.T) {
	s := op.NewScope()
	gpu := s.WithDevice("/gpu:0")
	ints := func(v ...int32) op.Output { return op.Const(s, v) }
	var got, want []op.Output
	compare := func(on, of op.Output) { got, want = append(got, on), append(want, of) }

	pixels := make([]float32, 2*5*4*3)
	for i := range pixels {
		pixels[i] = float32(i*37%101) / 128 // exact in float16
	}
	images := op.Reshape(s, op.Const(s, pixels), ints(2, 5, 4, 3))
	halves := op.Cast(s, images, tensor.Float16)
	by := op.Const(s, float32(0.25))
	compare(op.AdjustContrastv2(gpu, halves, by), op.Cast(s, op.AdjustContrastv2(s, images, by), tensor.Float16))
	compare(op.AdjustHue(gpu, halves, by), op.Cast(s, op.AdjustHue(s, images, by), tensor.Float16))
	compare(op.AdjustSaturation(gpu, halves, by), op.Cast(s, op.AdjustSaturation(s, images, by), tensor.Float16))

	bytes := make([]int8, 2*6*5*8)
	for i := range bytes {
		bytes[i] = int8(i*41%251 - 125)
	}
	x := op.Reshape(s, op.Const(s, bytes), ints(2, 6, 5, 8))
	asFours := op.Transpose(s, op.Reshape(s, x, ints(2, 6, 5, 2, 4)), ints(0, 3, 1, 2, 4))
	fours := op.Bitcast(s, asFours, tensor.QInt8)
	last := func(y op.Output, shape ...int32) op.Output {
		return op.Reshape(s, op.Transpose(s, op.Bitcast(s, y, tensor.Int8), ints(0, 2, 3, 1, 4)), ints(shape...))
	}
	byFours, byFoursV2 := op.MaxPoolDataFormat("NCHW_VECT_C"), op.MaxPoolV2DataFormat("NCHW_VECT_C")
	for _, padding := range []string{"SAME", "VALID"} {
		rows := map[string]int32{"SAME": 3, "VALID": 2}[padding]
		pooled := op.MaxPool(s, x, []int64{1, 3, 2, 1}, []int64{1, 2, 1, 1}, padding)
		cols := map[string]int32{"SAME": 5, "VALID": 4}[padding]
		compare(last(op.MaxPool(gpu, fours, []int64{1, 1, 3, 2}, []int64{1, 1, 2, 1}, padding, byFours), 2, rows, cols, 8), pooled)
		compare(last(op.MaxPoolV2(gpu, fours, ints(1, 1, 3, 2), ints(1, 1, 2, 1), padding, byFoursV2), 2, rows, cols, 8), pooled)
	}
	compare(op.Bitcast(s, op.Relu(gpu, fours), tensor.Int8), op.Relu(s, asFours))

	session := open(t, s)
	out, err := session.Run(t.Context(), nil, append(got, want...), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if g, w := out[i].Summary(1000), out[len(got)+i].Summary(1000); g != w {
			t.Errorf("output %d is %s, want %s", i, out[i].Summary(20), out[len(got)+i].Summary(20))
		}
	}

	for message, bad := range map[string]op.Output{
		"Tensor size must be a multiple of 4 for Relu<qint8>. Got 9": op.Relu(gpu, op.Bitcast(s, op.Const(s, bytes[:9]), tensor.QInt8)),
		"qint8 should be used with data_format NCHW_VECT_C.": op.MaxPool(gpu, op.Bitcast(s, x, tensor.QInt8), []int64{1, 2, 2, 1},
			[]int64{1, 1, 1, 1}, "SAME"),
	} {
		_, err := open(t, s).Run(t.Context(), nil, []op.Output{bad}, nil)
		if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), message) {
			t.Errorf("error %v, want %q", err, message)
		}
	}
}

// TestProximalHalf updates a float16 variable on a GPU as one of type float32 on a CPU, and rounds.
func TestProximalHalf(t *testing.T) {
	values, grads := []float32{1, -2, 0.5, 4}, []float32{0.5, 1, -0.25, 0.125}
	var read []op.Output
	s := op.NewScope()
	for device, dtype := range map[string]tensor.DType{"/cpu:0": tensor.Float32, "/gpu:0": tensor.Float16} {
		at := s.WithDevice(device)
		cast := func(v any) op.Output { return op.Cast(at, op.Const(at, v), dtype) }
		variable := func(name string) op.Output {
			return op.VarHandleOp(at, dtype, tensor.MakePartial(4), op.VarHandleOpSharedName(name))
		}
		v, accum := variable("v"), variable("accum")
		init := s.WithControlDependencies(op.AssignVariableOp(at, v, cast(values)), op.AssignVariableOp(at, accum, cast([]float32{1, 1, 1, 1})))
		update := op.ResourceApplyProximalAdagrad(init.WithDevice(device), v, accum, cast(float32(0.5)), cast(float32(0.25)), cast(float32(0.5)), cast(grads))
		read = append(read, op.Cast(s, op.ReadVariableOp(at.WithControlDependencies(update), v, dtype), tensor.Float16))
	}
	out, err := open(t, s).Run(t.Context(), nil, read, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := out[0].Summary(4), out[1].Summary(4); a != b {
		t.Errorf("%s on one device and %s on the other", a, b)
	}
}
