package graphtext

import (
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// implied returns the attributes that may be omitted because they follow from the types or the
// number of the inputs, or from the value of a constant. ins are the types of the inputs, Invalid
// if unknown. given are the attributes in the text, or all attributes.
func implied(op *opdef.Op, given opdef.Attrs, ins []tensor.DType) opdef.Attrs {
	out := opdef.Attrs{}
	counts := argCounts(op, given, len(ins))
	at := 0
	for i := range op.Inputs {
		arg := &op.Inputs[i]
		if counts[i] < 0 || at+counts[i] > len(ins) {
			return out
		}
		types := ins[at : at+counts[i]]
		at += counts[i]
		if arg.NumberAttr != "" {
			out[arg.NumberAttr] = int64(counts[i])
		}
		if arg.TypeListAttr != "" {
			if list, ok := baseTypes(types); ok {
				out[arg.TypeListAttr] = list
			}
		}
		if arg.TypeAttr != "" {
			for _, t := range types {
				if _, have := out[arg.TypeAttr]; !have && t != tensor.Invalid {
					out[arg.TypeAttr] = t.Base()
				}
			}
		}
	}
	if v, ok := given["value"].(tensor.Tensor); ok && op.Attr("dtype") != nil {
		out["dtype"] = v.DType()
	}
	return out
}

// argCounts returns the number of tensors of each input argument, or -1 if it is unknown. A single
// argument of unknown length gets the remaining tensors.
func argCounts(op *opdef.Op, given opdef.Attrs, total int) []int {
	counts := make([]int, len(op.Inputs))
	open := -1
	for i := range op.Inputs {
		arg := &op.Inputs[i]
		counts[i] = 1
		if list, ok := given[arg.TypeListAttr].([]tensor.DType); ok {
			counts[i] = len(list)
		} else if n, ok := given[arg.NumberAttr].(int64); ok {
			counts[i] = int(n)
		} else if arg.TypeListAttr != "" || arg.NumberAttr != "" {
			counts[i], open = -1, i
		}
		if counts[i] > 0 {
			total -= counts[i]
		}
	}
	if open >= 0 {
		counts[open] = max(total, -1)
	}
	return counts
}

func baseTypes(types []tensor.DType) ([]tensor.DType, bool) {
	out := make([]tensor.DType, len(types))
	for i, t := range types {
		if t == tensor.Invalid {
			return nil, false
		}
		out[i] = t.Base()
	}
	return out, true
}
