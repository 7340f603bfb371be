package state

import (
	"context"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// read checks the inputs and allocates the outputs for the weight changes.
func (o *sdca) read(ctx *kernel.Context) (*batch, error) {
	b := &batch{
		weights: tensor.Values[float32](o.input(ctx, "example_weights", 0)),
		labels:  tensor.Values[float32](o.input(ctx, "example_labels", 0)),
		sparse:  membudget.Make[sparseGroup](o.count["sparse_weights"]), dense: membudget.Make[denseGroup](o.count["dense_weights"]),
	}
	for i := range b.sparse {
		deltas, err := ctx.AllocateZeros(1+i, o.input(ctx, "sparse_weights", i).Shape())
		if err != nil {
			return nil, err
		}
		b.sparse[i].deltas = tensor.Values[float32](deltas)
	}
	for i := range b.dense {
		deltas, err := ctx.AllocateZeros(1+len(b.sparse)+i, o.input(ctx, "dense_weights", i).Shape())
		if err != nil {
			return nil, err
		}
		b.dense[i].deltas = tensor.Values[float32](deltas)
	}
	if len(b.labels) != len(b.weights) {
		return nil, status.InvalidArgumentf("Expected %d example labels but got %d", len(b.weights), len(b.labels))
	}
	for i := range b.dense {
		if rank := o.input(ctx, "dense_features", i).Rank(); rank != 2 {
			return nil, status.InvalidArgumentf("Dense features at index %d must be rank 2 but is rank %d", i, rank)
		}
	}
	for i := range b.sparse {
		if err := o.readSparse(ctx, i, &b.sparse[i], len(b.weights)); err != nil {
			return nil, err
		}
	}
	for i := range b.dense {
		if err := o.readDense(ctx, i, &b.dense[i], len(b.weights)); err != nil {
			return nil, err
		}
	}
	return b, b.measure(ctx.Context())
}

// mostNamed is the number of indices that an error names.
const mostNamed = 10

func (o *sdca) readSparse(ctx *kernel.Context, i int, g *sparseGroup, examples int) error {
	owners := tensor.Values[int64](o.input(ctx, "sparse_example_indices", i))
	g.features = tensor.Values[int64](o.input(ctx, "sparse_feature_indices", i))
	g.weights = tensor.Values[float32](o.input(ctx, "sparse_weights", i))
	if len(owners) != len(g.features) {
		return status.InvalidArgumentf("Found mismatched example_indices and feature_indices [%s] vs [%s]",
			o.input(ctx, "sparse_example_indices", i).Summary(mostNamed), o.input(ctx, "sparse_feature_indices", i).Summary(mostNamed))
	}
	if i < o.count["sparse_feature_values"] {
		if g.values = tensor.Values[float32](o.input(ctx, "sparse_feature_values", i)); len(g.values) != len(g.features) {
			return status.InvalidArgumentf("%d sparse_feature_values for %d features", len(g.values), len(g.features))
		}
	}
	indices := tensor.Values[int64](o.input(ctx, "sparse_indices", i))
	if len(indices) > len(g.weights) {
		return status.InvalidArgumentf("%d sparse_indices for %d sparse_weights", len(indices), len(g.weights))
	}
	g.at = map[int64]int{}
	var meter membudget.Meter
	for j, feature := range indices {
		meter.MustTakeEntry(0)
		g.at[feature] = j
	}
	g.starts = membudget.Make[int](examples + 1)
	end := 0
	for example := range examples {
		for ; end < len(owners) && owners[end] == int64(example); end++ {
			if _, ok := g.at[g.features[end]]; !ok {
				return status.InvalidArgumentf("Found sparse feature indices out of valid range: %d", g.features[end])
			}
		}
		g.starts[example+1] = end
	}
	return nil
}

func (o *sdca) readDense(ctx *kernel.Context, i int, g *denseGroup, examples int) error {
	in := o.input(ctx, "dense_features", i)
	g.features, g.weights = tensor.Values[float32](in), tensor.Values[float32](o.input(ctx, "dense_weights", i))
	switch width := in.Dim(1); {
	case width == 0 || width > len(g.weights):
		return status.InvalidArgumentf("More dense features than we have parameters for: %d", width)
	case width < len(g.weights):
		return status.InvalidArgumentf("%d dense features for %d parameters", width, len(g.weights))
	case in.Dim(0) < examples:
		return status.InvalidArgumentf("dense features of %d examples, but there are %d", in.Dim(0), examples)
	}
	return nil
}

// measure computes the norms of the examples. It fails when ctx ends: there may be many groups of
// features without any.
func (b *batch) measure(ctx context.Context) error {
	b.norms = membudget.Make[float64](len(b.weights))
	var meter membudget.Meter
	p := b.progress(ctx)
	for i := range b.norms {
		if err := p.Pass(0); err != nil {
			return err
		}
		for j := range b.sparse {
			g := &b.sparse[j]
			seen := map[int64]bool{}
			for k := g.starts[i]; k < g.starts[i+1]; k++ {
				if seen[g.features[k]] {
					return status.InvalidArgumentf("Duplicate index in sparse vector.")
				}
				meter.MustTakeEntry(0)
				seen[g.features[k]] = true
				b.norms[i] += g.value(k) * g.value(k)
			}
		}
		for j := range b.dense {
			var sum float32
			for _, v := range b.dense[j].row(i) {
				sum += v * v
			}
			b.norms[i] += float64(sum)
		}
	}
	return nil
}

// progress returns what looks at the context of a step while examples are processed.
func (b *batch) progress(ctx context.Context) stepctx.Progress {
	each := 16 * (len(b.sparse) + len(b.dense) + 1)
	for i := range b.dense {
		each += len(b.dense[i].weights)
	}
	return stepctx.Progress{Context: ctx, Each: each}
}
