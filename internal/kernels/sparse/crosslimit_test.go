package sparse

import (
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestCrossOfManyRows crosses more rows than any machine has memory for, in a tensor that has no
// elements.
func TestCrossOfManyRows(t *testing.T) {
	for _, rows := range []int64{1 << 61, 1 << 62, 1<<63 - 1} {
		dense, err := tensor.FromSlice(tensor.Shape{rows, 0}, []int64{})
		if err != nil {
			t.Fatal(err)
		}
		attrs := opdef.Attrs{"N": int64(0), "sparse_types": []tensor.DType{}, "dense_types": []tensor.DType{tensor.Int64}}
		func() {
			defer func() {
				// an executor turns this into an error of the node
				if v, ok := recover().(*membudget.Exceeded); !ok {
					t.Errorf("%d rows: got the panic %v", rows, v)
				}
			}()
			_, err = kerneltest.Try("SparseCrossV2", attrs, dense, tensor.Scalar("_"))
			t.Errorf("%d rows: got %v", rows, err)
		}()
	}
}
