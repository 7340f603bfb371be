package train

import (
	"strings"

	"github.com/weft-ml/weft/tensor"
)

// Part says which part of a partitioned variable a variable is. Parts are saved under one name, as slices.
type Part struct {
	Name   string       // of the whole
	Shape  tensor.Shape // of the whole
	Offset []int64      // where the part begins in each dimension
}

// like returns the same part of a variable that an optimizer keeps beside the whole.
func (p *Part) like(slot string) *Part {
	out := *p
	out.Name = strings.TrimSuffix(p.Name, "/") + "/" + slot
	return &out
}
