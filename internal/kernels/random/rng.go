package random

import (
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "RngSkip", Doc: "Advances the generator in a variable as if delta samples were drawn.",
		In: []string{"resource: resource", "algorithm: int64", "delta: int64"}, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error { return shapefn.CheckRanks(c, 1, 0, 0) },
	}, func(ctx *kernel.Context) error {
		delta, err := skipInputs(ctx)
		if err == nil {
			_, err = advance(ctx, 0, delta*perSample)
		}
		return err
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "RngReadAndSkip", Doc: "Returns the counter and the key of the generator in a variable, and advances it as if delta samples were drawn.",
		In: []string{"resource: resource", "alg: int32", "delta: uint64"}, Out: []string{"value: int64"}, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			c.SetAll(tensor.MakePartial(stateSize))
			return shapefn.CheckRanks(c, 1, 0, 0)
		},
	}, func(ctx *kernel.Context) error {
		delta, err := skipInputs(ctx)
		if err != nil {
			return err
		}
		g, err := advance(ctx, 0, delta*perSample)
		if err != nil {
			return err
		}
		low, high := g.Counter()
		ctx.SetOutput(0, tensor.Vector(int64(low), int64(high), int64(g.Key())))
		return nil
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "NonDeterministicInts", Doc: "Outputs random integers that no seed can reproduce.",
			In: []string{"shape: shape_dtype"}, Out: []string{"output: dtype"},
			Attrs: []string{"dtype: type = int64", byShapeTypeIn}, Stateful: true, Shape: shapeOfInput(0),
		},
		Kernels: kernel.ByType("dtype", kernel.Table{
			tensor.Int32: chance(func(v uint64) int32 { return int32(v) }), tensor.Uint32: chance(func(v uint64) uint32 { return uint32(v) }),
			tensor.Int64: chance(func(v uint64) int64 { return int64(v) }), tensor.Uint64: chance(func(v uint64) uint64 { return v }),
		}),
	})
}

// skipInputs checks the algorithm and returns the number of samples to skip.
func skipInputs(ctx *kernel.Context) (delta uint64, err error) {
	if _, err := algorithm(ctx, 1); err != nil {
		return 0, err
	}
	v, err := scalarInput(ctx, 2)
	return uint64(v), err
}

func chance[T tensor.Elem](convert func(uint64) T) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		shape, err := shapeInput(ctx, 0)
		if err != nil {
			return err
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		z := tensor.Values[T](out)
		for i := range z {
			z[i] = convert(rand.Uint64())
		}
		return nil
	})
}
