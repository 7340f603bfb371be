package array

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "InplaceUpdate", Doc: "Returns x with rows i replaced by the rows of v.",
		In:    []string{"x: T", "i: int32", "v: T"},
		Out:   []string{"y: T"},
		Attrs: []string{"T: type"},
		Shape: opdef.SameShape,
	}, inplace(elementwise.Assign))
	kernel.RegisterFunc(opdef.Def{
		Name: "InplaceAdd", Doc: "Returns x with the rows of v added to rows i.",
		In:    []string{"x: T", "i: int32", "v: T"},
		Out:   []string{"y: T"},
		Attrs: []string{"T: type"},
		Shape: opdef.SameShape,
	}, inplace(elementwise.Add))
	kernel.RegisterFunc(opdef.Def{
		Name: "InplaceSub", Doc: "Returns x with the rows of v subtracted from rows i.",
		In:    []string{"x: T", "i: int32", "v: T"},
		Out:   []string{"y: T"},
		Attrs: []string{"T: type"},
		Shape: opdef.SameShape,
	}, inplace(elementwise.Sub))
}

// canAdd reports whether there are sums of a type here.
func canAdd(t tensor.DType) bool {
	switch t {
	case tensor.Int4, tensor.Uint4, tensor.Float8E5M2, tensor.Float8E4M3:
		return false
	default:
		return t.IsInteger() || t.IsFloating() || t.IsComplex()
	}
}

func inplace(op elementwise.Op) kernel.Func {
	return func(ctx *kernel.Context) error {
		x, i, v := ctx.Input(0), ctx.Input(1), ctx.Input(2)
		if t := x.DType(); op != elementwise.Assign && !canAdd(t) {
			return status.InvalidArgumentf("Unsupported data type: %v", t)
		}
		if i.Rank() != 1 {
			return status.InvalidArgumentf("i must be a vector. %v", i.Shape())
		}
		if x.Rank() != v.Rank() {
			return status.InvalidArgumentf("x and v shape doesn't match (ranks differ): %v vs. %v", x.Shape(), v.Shape())
		}
		for k := 1; k < x.Rank(); k++ {
			if x.Dim(k) != v.Dim(k) {
				return status.InvalidArgumentf("x and v shape doesn't match at index %d : %v vs. %v", k, x.Shape(), v.Shape())
			}
		}
		if x.Rank() == 0 || i.Dim(0) != v.Dim(0) {
			return status.InvalidArgumentf("i and x shape doesn't match at index 0: %v vs. %v", i.Shape(), v.Shape())
		}
		if x.Dim(0) == 0 {
			ctx.SetOutput(0, x.Retain())
			return nil
		}
		indices, err := device.PlaceNow(i.Retain(), nil)
		if err != nil {
			return err
		}
		defer indices.Release()
		list, err := gatherscatter.NewList(i.NumElements())
		if err != nil {
			return err
		}
		defer list.Release()
		intarg.Read(list.Rows, &indices, 0)
		n := int64(x.Dim(0))
		for k, row := range list.Rows {
			list.Rows[k] = (row%n + n) % n // row numbers wrap around
		}
		out, err := owned(x)
		if err != nil {
			return err
		}
		gatherscatter.Scatter(op, &out, v, list, int(out.Shape()[1:].NumElements()))
		ctx.SetOutput(0, out)
		return nil
	}
}
