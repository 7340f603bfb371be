package math

import (
	"github.com/weft-ml/weft/internal/dtypes"
	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "AddN", Doc: "Adds tensors of one shape.",
			In: []string{"inputs: N * T"}, Out: []string{"sum: T"},
			Attrs: []string{
				"N: int >= 1",
				"T: {float32, float64, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, float16, uint32, uint64, variant}",
			},
			Commutative: true, Aggregate: true, Shape: opdef.MergedShape,
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(addN), dtypes.Numbers...),
	})
}

func addN(ctx *kernel.Context) error {
	first := ctx.Input(0)
	for i := 1; i < ctx.NumInputs(); i++ {
		if t := ctx.Input(i); !t.Shape().Equal(first.Shape()) {
			return status.InvalidArgumentf("Inputs to operation %s of type AddN must have the same size and shape.  "+
				"Input 0: %v != input %d: %v", ctx.Node, first.Shape(), i, t.Shape())
		}
	}
	if ctx.NumInputs() == 1 {
		return ctx.PassInput(0, 0)
	}
	src := *first // a borrowed header: whoever has the elements after Forward, they stay
	out, err := ctx.Forward(0, 0)
	if err != nil {
		return err
	}
	if !out.SharesBuffer(&src) {
		copy(out.Bytes(), src.Bytes())
	}
	for i := 1; i < ctx.NumInputs(); i++ {
		elementwise.Accumulate(elementwise.Add, out, ctx.Input(i))
	}
	return nil
}
