package random

import (
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// origin describes how an operation obtains its generator, and which of its inputs that takes.
type origin struct {
	shape int                             // index of the input that holds the shape of the output
	args  int                             // index of the first input after those of the origin
	check func(ctx *kernel.Context) error // runs before begin
	late  bool                            // whether check follows the check of the shape
	// begin returns the generator for an output of n elements. n is positive unless the generator
	// is seeded.
	begin func(ctx *kernel.Context, n int) (philox.Generator, error)
}

// newOrigin creates the origin of a node.
type newOrigin func(c *kernel.Construction) origin

func noCheck(*kernel.Context) error { return nil }

// perSample is the number of outputs that TensorFlow reserves for each element of a tensor.
const perSample = 256

// sourceOf returns the stream of a node with attributes seed and seed2.
func sourceOf(attrs opdef.Attrs) *philox.Source {
	return philox.NewSource(attrs.Int("seed"), attrs.Int("seed2"))
}

// seeded is an origin with a stream per node. The first input is the shape.
func seeded(c *kernel.Construction) origin {
	source := sourceOf(c.Attrs)
	return origin{shape: 0, args: 1, check: noCheck, begin: func(_ *kernel.Context, n int) (philox.Generator, error) {
		return source.Take(uint64(n) * perSample), nil
	}}
}

// bySeed is an origin whose stream is selected by an input of two numbers. The first inputs are the
// shape and the seed.
func bySeed(*kernel.Construction) origin {
	return origin{shape: 0, args: 2, late: true, check: func(ctx *kernel.Context) error { return checkSeed(ctx.Input(1)) },
		begin: func(ctx *kernel.Context, _ int) (philox.Generator, error) { return fromSeed(ctx.Input(1)) }}
}

// byKey is an origin that starts at a position in a stream. The first inputs are the shape, the
// key, the counter and the algorithm.
func byKey(*kernel.Construction) origin {
	return origin{shape: 0, args: 4, check: func(ctx *kernel.Context) error { return checkKey(ctx, 1, 2) },
		begin: func(ctx *kernel.Context, _ int) (philox.Generator, error) { return fromKey(ctx, 1) }}
}

// byVariable is an origin that takes its position in a stream from a variable and advances it. The
// first inputs are the variable, the algorithm and the shape.
func byVariable(*kernel.Construction) origin {
	return origin{shape: 2, args: 3, check: func(ctx *kernel.Context) error {
		_, err := algorithm(ctx, 1)
		return err
	}, begin: func(ctx *kernel.Context, n int) (philox.Generator, error) {
		return advance(ctx, 0, uint64(n)*perSample)
	}}
}

// byPhiloxVariable is like byVariable, for operations that support no other algorithm.
func byPhiloxVariable(c *kernel.Construction) origin {
	o := byVariable(c)
	o.check = func(ctx *kernel.Context) error {
		alg, err := scalarInput(ctx, 1)
		if err == nil && alg != algPhilox {
			err = status.InvalidArgumentf("Unsupported algorithm id: %d", alg)
		}
		return err
	}
	return o
}

// byTaggedVariable is like byVariable, for a variable whose first element is the algorithm. The
// first inputs are the variable and the shape.
func byTaggedVariable(*kernel.Construction) origin {
	return origin{shape: 1, args: 2, check: noCheck, begin: func(ctx *kernel.Context, n int) (philox.Generator, error) {
		return advance(ctx, 1, uint64(n)*perSample)
	}}
}

func checkSeed(seed *tensor.Tensor) error {
	if !seed.Shape().Equal(tensor.Shape{2}) {
		return status.InvalidArgumentf("seed must have shape [2], not %v", seed.Shape())
	}
	return nil
}

// fromSeed scrambles two numbers into a key and a counter.
func fromSeed(seed *tensor.Tensor) (philox.Generator, error) {
	if d := seed.DType(); d != tensor.Int32 && d != tensor.Int64 {
		return philox.Generator{}, status.InvalidArgumentf("Invalid seed type: %v", d)
	}
	s := intarg.Values(seed)
	return philox.FromPair(uint64(s[0]), uint64(s[1])), nil
}

// Algorithms of generators, numbered as in inputs.
const (
	algPhilox   = 1
	algThreeFry = 2
	algAuto     = 3 // the device chooses the algorithm
)

// scalarInput returns the value of input i, which must be a scalar.
func scalarInput(ctx *kernel.Context, i int) (int64, error) {
	in := ctx.Input(i)
	if in.Rank() != 0 {
		return 0, status.InvalidArgumentf("input %d (0-based) must have shape [], not %v", i, in.Shape())
	}
	return intarg.Scalar(in), nil
}

// checkKey checks a key, a counter of at least the given number of words, and an algorithm. They
// are inputs first, first+1 and first+2.
func checkKey(ctx *kernel.Context, first int, words int64) error {
	alg, err := scalarInput(ctx, first+2)
	if err != nil {
		return err
	}
	if alg == algAuto {
		alg = algPhilox
	}
	key, counter := ctx.Input(first).Shape(), ctx.Input(first+1).Shape()
	if !key.Equal(tensor.Shape{1}) {
		return status.InvalidArgumentf("key must have shape [1], not %v. (Note that batched keys are not supported yet.)", key)
	}
	least := alg
	// TensorFlow reads past the end of a counter that is too short.
	if alg == algPhilox && len(counter) == 1 && counter[0] > 0 {
		least = words
	}
	if len(counter) != 1 || counter[0] < least {
		return status.InvalidArgumentf("counter must be a vector with length at least %d; got shape: %v. (Note that batched counters are not supported yet.)",
			least, counter)
	}
	return nil
}

// fromKey returns the generator for inputs first and following. Call checkKey first.
func fromKey(ctx *kernel.Context, first int) (philox.Generator, error) {
	if alg := intarg.Scalar(ctx.Input(first + 2)); alg != algPhilox && alg != algAuto {
		return philox.Generator{}, status.InvalidArgumentf("Unsupported algorithm id: %d", alg)
	}
	key, err := onHost(ctx.Input(first))
	if err != nil {
		return philox.Generator{}, err
	}
	counter, err := onHost(ctx.Input(first + 1))
	if err != nil {
		return philox.Generator{}, err
	}
	return philox.At(key[0], counter[0], counter[1]), nil
}

// algorithm returns the algorithm in input i.
func algorithm(ctx *kernel.Context, i int) (int64, error) {
	alg, err := scalarInput(ctx, i)
	if err != nil {
		return 0, err
	}
	return resolve(alg)
}

func resolve(alg int64) (int64, error) {
	switch alg {
	case algPhilox, algThreeFry:
		return alg, nil
	case algAuto:
		return algPhilox, nil
	}
	return 0, status.InvalidArgumentf("Unsupported algorithm id: %d", alg)
}
