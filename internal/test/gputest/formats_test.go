package gputest_test

import (
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestDepthSpaceFormats compares formats that only GPUs have with the format of the CPU.
func TestDepthSpaceFormats(t *testing.T) {
	s := op.NewScope()
	gpu := s.WithDevice("/gpu:0")
	values := make([]int8, 2*4*6*16)
	for i := range values {
		values[i] = int8(i % 127)
	}
	ints := func(v ...int32) op.Output { return op.Const(s, v) }
	x := op.Reshape(s, op.Const(s, values), ints(2, 4, 6, 16))
	depth, space := op.SpaceToDepth(s, x, 2), op.DepthToSpace(s, x, 2)

	planes := op.Cast(s, op.Transpose(s, x, ints(0, 3, 1, 2)), tensor.Float32)
	back := func(y op.Output) op.Output { return op.Transpose(s, op.Cast(s, y, tensor.Int8), ints(0, 2, 3, 1)) }
	depthOfPlanes := back(op.SpaceToDepth(gpu, planes, 2, op.SpaceToDepthDataFormat("NCHW")))
	spaceOfPlanes := back(op.DepthToSpace(gpu, planes, 2, op.DepthToSpaceDataFormat("NCHW")))

	fours := op.Bitcast(s, op.Transpose(s, op.Reshape(s, x, ints(2, 4, 6, 4, 4)), ints(0, 3, 1, 2, 4)), tensor.QInt8)
	merge := func(y op.Output, channels int32) op.Output {
		y = op.Transpose(s, op.Bitcast(s, y, tensor.Int8), ints(0, 2, 3, 1, 4))
		return op.Reshape(s, y, op.ConcatV2(s, []op.Output{op.Slice(s, op.Shape(s, y), ints(0), ints(3)), ints(channels)}, op.Const(s, int32(0))))
	}
	depthOfFours := merge(op.SpaceToDepth(gpu, fours, 2, op.SpaceToDepthDataFormat("NCHW_VECT_C")), 64)
	spaceOfFours := merge(op.DepthToSpace(gpu, fours, 2, op.DepthToSpaceDataFormat("NCHW_VECT_C")), 4)

	out, err := open(t, s).Run(t.Context(), nil, []op.Output{depth, depthOfPlanes, depthOfFours, space, spaceOfPlanes, spaceOfFours}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		if want := out[i/3*3].Summary(1000); out[i].Summary(1000) != want {
			t.Errorf("output %d is %s, want %s", i, out[i].Summary(20), out[i/3*3].Summary(20))
		}
	}
}
