package random

import (
	"math/rand/v2"
	"sync"

	"github.com/weft-ml/weft/internal/ints"
	"github.com/weft-ml/weft/internal/philox"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// source is the stream of a node. Each call takes a part of it, so that calls at the same time draw different numbers.
type source struct {
	mu  sync.Mutex
	gen philox.Generator // guarded by mu
}

func newSource(attrs opdef.Attrs) *source {
	seed, seed2 := uint64(attrs.Int("seed")), uint64(attrs.Int("seed2"))
	if seed == 0 && seed2 == 0 {
		seed, seed2 = rand.Uint64(), rand.Uint64()
	}
	return &source{gen: philox.New(seed, seed2)}
}

// take returns the place in the stream where the next n outputs are, which are the caller's.
func (s *source) take(n uint64) philox.Generator {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gen
	s.gen.Skip(n)
	return g
}

// perSample is the number of outputs that TensorFlow sets aside for each element of a tensor.
const perSample = 256

// sampler draws a tensor of the shape that input 0 gives.
type sampler[T tensor.Elem] struct {
	source *source
	dist   *philox.Distribution[T]
}

func (s *sampler[T]) Compute(ctx *kernel.Context) error {
	out, err := allocate(ctx)
	if err != nil {
		return err
	}
	philox.Fill(tensor.Values[T](out), s.source.take(uint64(out.NumElements())*perSample), s.dist)
	return nil
}

// allocate makes output 0 of the shape that input 0 gives.
func allocate(ctx *kernel.Context) (*tensor.Tensor, error) {
	in := ctx.Input(0)
	if in.Rank() != 1 {
		return nil, status.InvalidArgumentf("shape must be a vector of {int32,int64}, got shape %v", in.Shape())
	}
	shape, err := ints.Shape(ints.Values(in))
	if err != nil {
		return nil, err
	}
	return ctx.Allocate(0, shape)
}

// drawing returns the kernel that fills a tensor with samples of a distribution.
func drawing[T tensor.Elem](dist *philox.Distribution[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		return &sampler[T]{newSource(c.Attrs), dist}, nil
	}
}
