// Package nested counts the lists of tensors that are written as nested lists.
package nested

import (
	"math"

	"github.com/weft-ml/weft/tensor"
)

// Lists returns the number of lists in the nested lists of a tensor. Numbers above [math.MaxInt32]
// are too small. A tensor without elements may have any number of lists: one of shape [1000000, 0]
// has a million.
func Lists(shape tensor.Shape) int64 {
	total, n := int64(0), int64(1)
	for _, d := range shape {
		total += n
		if n *= min(d, math.MaxInt32); n == 0 {
			break
		}
		n = min(n, math.MaxInt32)
	}
	return total
}
