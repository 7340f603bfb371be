package tensor_test

import (
	"fmt"

	"github.com/weft-ml/weft/tensor"
)

func ExampleNew() {
	t, err := tensor.New([][]float32{{1, 2}, {3, 4}, {5, 6}})
	if err != nil {
		panic(err)
	}
	fmt.Println(t.DType().Name(), t.Shape(), t.Go())
	// Output: float32 [3,2] [[1 2] [3 4] [5 6]]
}

func ExamplePartialShape_CompatibleWith() {
	batch := tensor.MakePartial(-1, 2) // any number of rows of two elements
	fmt.Println(batch, batch.CompatibleWith(tensor.Shape{5, 2}), batch.CompatibleWith(tensor.Shape{5, 3}))
	// Output: [?,2] true false
}
