package random

import (
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	const doc = "Randomly shuffles a tensor along its first dimension."
	kernel.RegisterNew(opdef.Def{
		Name: "RandomShuffle", Doc: doc, In: []string{"value: T"}, Out: []string{"output: T"},
		Attrs: with(seedAttrs, "T: type"), Stateful: true, Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		source := sourceOf(c.Attrs)
		return kernel.Func(func(ctx *kernel.Context) error {
			return shuffle(ctx, func(words int) (philox.Generator, error) { return source.TakeWords(words), nil })
		}), nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "StatelessShuffle", Doc: doc + originDoc[false],
		In: []string{"value: T", "key: uint64", "counter: uint64", "alg: int32"}, Out: []string{"output: T"},
		Attrs: []string{"T: type"}, Shape: opdef.SameShape,
	}, func(ctx *kernel.Context) error {
		if err := checkKey(ctx, 1, 2); err != nil {
			return err
		}
		g, err := fromKey(ctx, 1)
		if err != nil {
			return err
		}
		return shuffle(ctx, func(int) (philox.Generator, error) { return g, nil })
	})
}

// shuffle shuffles input 0 with words from a generator.
func shuffle(ctx *kernel.Context, begin func(words int) (philox.Generator, error)) error {
	in := ctx.Input(0)
	if in.NumElements() <= 1 || in.Dim(0) <= 1 {
		return ctx.PassInput(0, 0)
	}
	n := in.Dim(0)
	g, err := begin(n - 1)
	if err != nil {
		return err
	}
	out, err := ctx.AllocateLike(0, in)
	if err != nil {
		return err
	}
	order, words := membudget.Make[int64](n), philox.NewWords(g)
	for i := range order {
		order[i] = int64(i)
	}
	for i := range n - 1 {
		j := i + int(words.Next()%uint32(n-i))
		order[i], order[j] = order[j], order[i]
	}
	gatherscatter.Gather(out, in, gatherscatter.List{Rows: order}, gatherscatter.Layout{Outer: 1, Rows: n, Width: in.NumElements() / n})
	return nil
}
