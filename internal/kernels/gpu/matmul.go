package gpu

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/linalg"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerNew("MatMul", func(c *kernel.Construction) (compute, error) {
		ta, tb := c.Attrs.Bool("transpose_a"), c.Attrs.Bool("transpose_b")
		return func(ctx *kernel.Context, d *device.Device) error {
			a, b := ctx.Input(0), ctx.Input(1)
			if a.Rank() != 2 || b.Rank() != 2 {
				return errDetour
			}
			return multiply(ctx, d, a, b, ta, tb)
		}, nil
	}, withKernel("T", "matmul32"))
	for op, attr := range map[string]string{"BatchMatMul": "T", "BatchMatMulV2": "T", "BatchMatMulV3": "Ta"} {
		registerNew(op, func(c *kernel.Construction) (compute, error) {
			ta, tb := c.Attrs.Bool("adj_x"), c.Attrs.Bool("adj_y")
			return func(ctx *kernel.Context, d *device.Device) error {
				a, b := ctx.Input(0), ctx.Input(1)
				if a.Rank() < 2 || b.Rank() < 2 || op == "BatchMatMul" && !a.Shape()[:a.Rank()-2].Equal(b.Shape()[:b.Rank()-2]) {
					return errDetour
				}
				return multiply(ctx, d, a, b, ta, tb)
			}, nil
		}, withKernel(attr, "matmul32"))
	}
}

// multiply sets output 0 to the products of the matrices in the last two dimensions. The other
// dimensions are broadcast.
func multiply(ctx *kernel.Context, d *device.Device, a, b *tensor.Tensor, ta, tb bool) error {
	am, bm := a.Shape()[a.Rank()-2:], b.Shape()[b.Rank()-2:]
	p := driver.MatMul{
		Type: a.DType(), M: int(am[0]), K: int(am[1]), N: int(bm[1]), TransA: ta, TransB: tb,
	}
	inner := int(bm[0])
	if ta {
		p.M, p.K = p.K, p.M
	}
	if tb {
		p.N, inner = inner, p.N
	}
	ab, bb := a.Shape()[:a.Rank()-2], b.Shape()[:b.Rank()-2]
	batch, err := elementwise.Broadcast(ab, bb)
	if err != nil || p.K != inner {
		return errDetour
	}
	out, err := ctx.Allocate(0, append(append(tensor.Shape{}, batch...), int64(p.M), int64(p.N)))
	if err != nil || out.NumElements() == 0 {
		return err
	}
	if p.K == 0 {
		return d.Fill(out, 0)
	}
	p.Batch = int(batch.NumElements())
	p.StrideC = p.M * p.N
	x, err := spreadBatch(ctx, a, ab, batch, &p.StrideA)
	if err != nil {
		return err
	}
	defer x.Release()
	y, err := spreadBatch(ctx, b, bb, batch, &p.StrideB)
	if err != nil {
		return err
	}
	defer y.Release()
	return linalg.Product(d, out, &x, &y, p)
}

// spreadBatch returns t with one matrix for each of a batch, or one for all, and sets stride to the
// distance of the matrices. The caller releases the result.
func spreadBatch(ctx *kernel.Context, t *tensor.Tensor, from, batch tensor.Shape, stride *int) (tensor.Tensor, error) {
	matrix := t.Shape()[t.Rank()-2:]
	*stride = int(matrix.NumElements())
	switch n := from.NumElements(); {
	case n == batch.NumElements():
		return t.Retain(), nil
	case n == 1:
		*stride = 0
		return t.Retain(), nil
	}
	shape := append(append(tensor.Shape{}, batch...), matrix...)
	all, err := ctx.Scratch(t.DType(), shape)
	if err == nil {
		strided.Copy(&all, strided.Of(shape), t, strided.Of(t.Shape()).Broadcast(strided.Of(shape).Dims))
	}
	return all, err
}
