package jsontensor

import (
	"github.com/weft-ml/weft/internal/serving/jsondoc"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxRank is the largest rank of a tensor. It bounds the recursion over lists.
const maxRank = 254

// denseShape returns the shape that the first elements of nested lists give.
func denseShape(v jsondoc.Value) (tensor.Shape, error) {
	shape := tensor.Shape{}
	for v.Kind() == jsondoc.Array {
		if len(shape) == maxRank {
			return nil, status.InvalidArgumentf("a tensor cannot have more than %d dimensions", maxRank)
		}
		shape = append(shape, int64(v.Len()))
		if v.Len() == 0 {
			break
		}
		v = v.First()
	}
	return shape, nil
}

// fill adds the elements of nested lists, which must agree with the shape. level is the number of
// enclosing lists.
func fill(to elements, v jsondoc.Value, level int, shape tensor.Shape) error {
	if v.Kind() != jsondoc.Array {
		if level != len(shape) {
			return status.InvalidArgumentf("JSON Value: %s found at incorrect level: %d in the JSON DOM. Expected at level: %d", v, level+1, len(shape))
		}
		return to.add(v)
	}
	if level >= len(shape) {
		return status.InvalidArgumentf("Encountered list at unexpected level: %d expected < %d", level, len(shape))
	}
	if int64(v.Len()) != shape[level] {
		return status.InvalidArgumentf("Encountered list at unexpected size: %d at level: %d expected size: %d", v.Len(), level, shape[level])
	}
	for e := range v.Elements() {
		if err := fill(to, e, level+1, shape); err != nil {
			return err
		}
	}
	return nil
}
