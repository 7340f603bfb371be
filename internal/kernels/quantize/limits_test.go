package quantize

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/tensor"
)

// Rows without columns, and places of an empty batch or of windows without inputs, take no time.
func TestSizesOfNothing(t *testing.T) {
	quickly := func(f func()) {
		kerneltest.Quickly(t, func() error {
			f()
			return nil
		})
	}
	quickly(func() { dot(nil, nil, 1<<40, 0, func(int) int32 { return 0 }, nil, nil) })
	quickly(func() { channels{outer: 1 << 40, n: 1}.each(func(_, _, _ int) {}) })
	order := []int64{0, 1, 2, 3}
	ones := []int64{1, 1}
	conv := &convolution{
		in: order, kernel: order, out: order, featureGroups: 1, batchGroups: 1, strides: ones, dilations: ones, kernelDilations: ones,
		pads: make([]int64, 4),
	}
	const large = 1 << 25
	for _, s := range []sweep{
		{conv, tensor.Shape{0, 1, large, large}, tensor.Shape{1, 1, 1, 1}, tensor.Shape{0, 1, large, large}},
		{conv, tensor.Shape{1, 0, large, 1}, tensor.Shape{1, 0, large, 1}, tensor.Shape{1, 1, 1000, 1}},
	} {
		quickly(func() {
			s.run(nil, nil, func(int) int32 { return 0 }, []int32{0}, func(_, _, _ int, sum int32) {
				if sum != 0 {
					t.Errorf("a sum of nothing is %d", sum)
				}
			})
		})
	}
	quickly(func() { conv.dynamicBatch(nil, tensor.Shape{1, 1 << 40, 0, 1}) })
}
