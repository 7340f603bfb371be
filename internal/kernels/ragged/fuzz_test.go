package ragged

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// FuzzPartitions checks that arbitrary row splits, row ids and shapes do not crash the conversions
// and RaggedGather, and that these fail only with expected errors.
func FuzzPartitions(f *testing.F) {
	node := func(op string, attrs opdef.Attrs) *kerneltest.Node {
		n, err := kerneltest.NewEnv().Make(op, attrs)
		if err != nil {
			f.Fatal(err)
		}
		return n
	}
	bySplits := node("RaggedTensorToTensor", opdef.Attrs{"T": tensor.Float32, "Tindex": tensor.Int64, "Tshape": tensor.Int64,
		"num_row_partition_tensors": int64(2), "row_partition_types": []string{rowSplits, valueRowIDs}})
	byRows := node("RaggedTensorToTensor", opdef.Attrs{"T": tensor.Float32, "Tindex": tensor.Int64, "Tshape": tensor.Int64,
		"num_row_partition_tensors": int64(2), "row_partition_types": []string{firstDimSize, valueRowIDs}})
	toSparse := node("RaggedTensorToSparse", opdef.Attrs{"RAGGED_RANK": int64(2), "T": tensor.Float32})
	gather := node("RaggedGather", opdef.Attrs{"Tvalues": tensor.Float32, "Tindices": tensor.Int64, "PARAMS_RAGGED_RANK": int64(2), "OUTPUT_RAGGED_RANK": int64(2)})
	fillRows := node("RaggedFillEmptyRows", opdef.Attrs{"T": tensor.Float32})
	f.Add([]byte{0, 2, 3}, []byte{0, 0, 2}, byte(4), byte(255))
	f.Add([]byte{0, 1, 4}, []byte{0, 1, 1, 4, 4}, byte(4), byte(2))
	f.Fuzz(func(t *testing.T, a, b []byte, n, dim byte) {
		ints := func(v []byte) tensor.Tensor {
			var out []int64
			for _, x := range v {
				out = append(out, int64(int8(x)))
			}
			return tensor.Vector(out...)
		}
		values, fill := tensor.Vector(make32(int(n%32))...), tensor.Scalar[float32](9)
		shape := ints([]byte{255, dim, 255})
		for _, run := range []func() ([]tensor.Tensor, error){
			func() ([]tensor.Tensor, error) { return bySplits.Run(shape, values, fill, ints(a), ints(b)) },
			func() ([]tensor.Tensor, error) {
				return byRows.Run(ints([]byte{dim, 255}), values, fill, tensor.Scalar(int64(n)), ints(b))
			},
			func() ([]tensor.Tensor, error) { return toSparse.Run(ints(a), ints(b), values) },
			func() ([]tensor.Tensor, error) { return gather.Run(ints(a), ints(b), values, ints([]byte{dim, 0})) },
			func() ([]tensor.Tensor, error) { return fillRows.Run(ints(b), values, tensor.Scalar(int64(dim)), fill) },
		} {
			outs, err := run()
			if err != nil && status.CodeOf(err) != status.InvalidArgument {
				t.Errorf("%v, %v, %d values, dimension %d: %v", a, b, n, dim, err)
			}
			for i := range outs {
				outs[i].Release()
			}
		}
	})
}

// make32 returns n numbers.
func make32(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i)
	}
	return out
}
