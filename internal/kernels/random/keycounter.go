package random

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in, attrs := []string{"seed: Tseed"}, []string{"Tseed: {int32, int64} = int64"}
	kernel.RegisterFunc(opdef.Def{
		Name: "StatelessRandomGetKeyCounterAlg", Doc: "Scrambles a seed into a key and a counter, and returns the algorithm that they are for.",
		In: in, Out: []string{"key: uint64", "counter: uint64", "alg: int32"}, Attrs: attrs, Shape: keyCounterShape,
	}, func(ctx *kernel.Context) error {
		if err := keyCounter(ctx); err != nil {
			return err
		}
		ctx.SetOutput(2, tensor.Scalar[int32](algPhilox))
		return nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "StatelessRandomGetKeyCounter", Doc: "Scrambles a seed into a key and a counter.",
		In: in, Out: []string{"key: uint64", "counter: uint64"}, Attrs: attrs, Shape: keyCounterShape,
	}, keyCounter)
	kernel.RegisterFunc(opdef.Def{
		Name: "StatelessRandomGetAlg", Doc: "Returns the algorithm of the device's random number generators: 1, Philox.",
		Out: []string{"alg: int32"}, Stateful: true, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		ctx.SetOutput(0, tensor.Scalar[int32](algPhilox))
		return nil
	})
}

func keyCounterShape(c *opdef.ShapeContext) error {
	if err := seedShape(c, 0); err != nil {
		return err
	}
	c.SetAll(tensor.MakePartial())
	c.Out[0], c.Out[1] = tensor.MakePartial(1), tensor.MakePartial(2)
	return nil
}

func keyCounter(ctx *kernel.Context) error {
	seed := ctx.Input(0)
	if err := checkSeed(seed); err != nil {
		return err
	}
	g, err := fromSeed(seed)
	if err != nil {
		return err
	}
	low, high := g.Counter()
	ctx.SetOutput(0, tensor.Vector(g.Key()))
	ctx.SetOutput(1, tensor.Vector(low, high))
	return nil
}
