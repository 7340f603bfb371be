package graph

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// sameFunction reports whether two definitions of a function are equal. It ignores shape functions,
// which messages do not contain.
func sameFunction(a, b *FunctionDef) bool {
	x, y := a.Signature, b.Signature
	x.Shape, y.Shape = nil, nil
	return reflect.DeepEqual(&x, &y) && slices.EqualFunc(a.Nodes, b.Nodes, sameNode) && maps.Equal(a.Ret, b.Ret) &&
		maps.Equal(a.ControlRet, b.ControlRet) && sameAttrs(a.Attrs, b.Attrs) && maps.EqualFunc(a.ArgAttrs, b.ArgAttrs, sameAttrs)
}

func sameNode(a, b NodeDef) bool {
	return a.Name == b.Name && a.Op == b.Op && a.Device == b.Device && slices.Equal(a.Inputs, b.Inputs) && sameAttrs(a.Attrs, b.Attrs)
}

func sameAttrs(a, b opdef.Attrs) bool { return maps.EqualFunc(a, b, sameValue) }

// sameValue reports whether two attribute values are equal. Tensors are equal if their elements
// are.
func sameValue(a, b any) bool {
	switch x := a.(type) {
	case tensor.Tensor:
		y, ok := b.(tensor.Tensor)
		return ok && sameTensor(x, y)
	case []tensor.Tensor:
		y, ok := b.([]tensor.Tensor)
		return ok && slices.EqualFunc(x, y, sameTensor)
	case opdef.Func:
		y, ok := b.(opdef.Func)
		return ok && sameFunc(x, y)
	case []opdef.Func:
		y, ok := b.([]opdef.Func)
		return ok && slices.EqualFunc(x, y, sameFunc)
	default:
		return reflect.DeepEqual(a, b)
	}
}

func sameFunc(a, b opdef.Func) bool { return a.Name == b.Name && sameAttrs(a.Attrs, b.Attrs) }

func sameTensor(a, b tensor.Tensor) bool {
	if a.DType() != b.DType() || !a.Shape().Equal(b.Shape()) || !bytes.Equal(a.Bytes(), b.Bytes()) {
		return false
	}
	if a.DType() == tensor.String {
		return slices.Equal(tensor.Values[string](&a), tensor.Values[string](&b))
	}
	return a.Bytes() != nil || a.NumElements() == 0 || a.SharesBuffer(&b)
}
