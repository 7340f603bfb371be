package gatherscatter

import (
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/tensor"
)

// move copies rows between tensors of any one element type: a gather, or a scatter that assigns.
type move struct {
	list    []int64
	layout  Layout // only Width is used by a scatter
	scatter bool
}

// run moves rows from src to dst. Elements of plain memory move as integers of their size.
func (m move) run(dst, src *tensor.Tensor) {
	switch dtype := dst.DType(); dtype {
	case tensor.String:
		moveRows(m, tensor.Values[string](dst), tensor.Values[string](src))
	case tensor.Resource:
		moveRows(m, tensor.Values[*tensor.Handle](dst), tensor.Values[*tensor.Handle](src))
	case tensor.Variant:
		moveRows(m, tensor.Values[tensor.VariantValue](dst), tensor.Values[tensor.VariantValue](src))
	default:
		switch dtype.Size() {
		case 1:
			moveRows(m, strided.Words[uint8](dst), strided.Words[uint8](src))
		case 2:
			moveRows(m, strided.Words[uint16](dst), strided.Words[uint16](src))
		case 4:
			moveRows(m, strided.Words[uint32](dst), strided.Words[uint32](src))
		case 8:
			moveRows(m, strided.Words[uint64](dst), strided.Words[uint64](src))
		default:
			moveRows(m, tensor.Values[complex128](dst), tensor.Values[complex128](src))
		}
	}
}

func moveRows[E any](m move, dst, src []E) {
	if m.scatter {
		assign(dst, src, m.list, m.layout.Width)
	} else {
		gather(dst, src, m.list, m.layout)
	}
}
