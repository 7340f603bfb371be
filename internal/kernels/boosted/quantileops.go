package boosted

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const quantileHandle = "quantile_stream_resource_handle"

func init() {
	handle := []string{quantileHandle + ": resource"}
	with := func(more ...string) []string { return slices.Concat(handle, more) }
	features := []string{"num_features: int >= 0"}
	registerHandle[*quantiles]("BoostedTreesQuantileStreamResourceHandleOp", "streams of quantiles")
	registerInitialized[*quantiles]("IsBoostedTreesQuantileStreamResourceInitialized", quantileHandle, "the resource of streams of quantiles")
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesCreateQuantileStreamResource", Doc: "Creates streams of quantiles, unless they exist.",
		In: with("epsilon: float32", "num_streams: int64"), Attrs: []string{"max_elements: int = 1099511627776"}, Stateful: true, Shape: scalarsShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		elements := int64(c.Attrs.Int("max_elements"))
		return kernel.Func(func(ctx *kernel.Context) error { return createQuantiles(ctx, elements) }), nil
	})
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesMakeQuantileSummaries", Doc: "Summarizes the distributions of features. The columns of a summary are value, weight, and minimum and maximum rank.",
		In:  []string{"float_values: num_features * float32", "example_weights: float32", "epsilon: float32"},
		Out: []string{"summaries: num_features * float32"}, Attrs: features,
		Shape: func(c *opdef.ShapeContext) error {
			n := c.Attrs.Int("num_features")
			c.SetAll(shapefn.Of(shapefn.Unknown, 4))
			//sizedmake:ok one for each input
			return shapefn.CheckRanks(c, 0, append(slices.Repeat([]int{1}, n+1), 0)...)
		},
	}, kernel.Stateless(makeSummaries))
	kernel.RegisterFunc(opdef.Def{
		Name: "BoostedTreesFlushQuantileSummaries", Doc: "Returns the summaries of streams of quantiles, and empties the streams.",
		In: handle, Out: []string{"summaries: num_features * float32"}, Attrs: features, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			c.SetAll(shapefn.Of(shapefn.Unknown, 4))
			return nil
		},
	}, flushSummaries)
	kernel.RegisterFunc(opdef.Def{
		Name: "BoostedTreesQuantileStreamResourceAddSummaries", Doc: "Adds summaries to streams of quantiles.",
		In: with("summaries: num_features * float32"), Attrs: features, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			//sizedmake:ok one for each input
			return shapefn.CheckRanks(c, 0, append([]int{0}, slices.Repeat([]int{2}, c.Attrs.Int("num_features"))...)...)
		},
	}, addSummaries)
	kernel.RegisterFunc(opdef.Def{
		Name: "BoostedTreesQuantileStreamResourceDeserialize", Doc: "Sets the boundaries of buckets.",
		In: with("bucket_boundaries: num_streams * float32"), Attrs: []string{"num_streams: int >= 1"}, Stateful: true, Shape: opdef.UnknownShape,
	}, setBoundaries)
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesQuantileStreamResourceFlush", Doc: "Sets the boundaries of buckets to those of the streams of quantiles, and empties the streams.",
		In: with("num_buckets: int64"), Attrs: []string{"generate_quantiles: bool = false"}, Stateful: true, Shape: scalarsShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		exact := c.Attrs.Bool("generate_quantiles")
		return kernel.Func(func(ctx *kernel.Context) error { return flushBoundaries(ctx, exact) }), nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "BoostedTreesQuantileStreamResourceGetBucketBoundaries", Doc: "Returns the boundaries of buckets.",
		In: handle, Out: []string{"bucket_boundaries: num_features * float32"}, Attrs: features, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			c.SetAll(shapefn.Of(shapefn.Unknown))
			return shapefn.CheckRanks(c, 0, 0)
		},
	}, boundaries)
}

// quantiles are streams of values, one for each feature, and the boundaries of buckets that were
// made of them.
type quantiles struct {
	epsilon  float32
	elements int64

	mu         sync.Mutex
	streams    []*stream   // guarded by mu
	boundaries [][]float32 // guarded by mu
}

// TypeName names the resource as TensorFlow does.
func (*quantiles) TypeName() string { return "N10tensorflow34BoostedTreesQuantileStreamResourceE" }

// reset empties the streams. The caller holds the lock.
func (q *quantiles) reset() {
	for i := range q.streams {
		q.streams[i] = newStream(q.epsilon, q.elements)
	}
}

func createQuantiles(ctx *kernel.Context, elements int64) error {
	epsilon, err := scalar[float32](ctx, 1, "epsilon")
	if err != nil {
		return err
	}
	n, err := scalar[int64](ctx, 2, "num_streams")
	if err != nil {
		return err
	}
	if err := checkStream(epsilon, elements); err != nil {
		return err
	}
	if n < 0 {
		return status.InvalidArgumentf("Num_streams input cannot be a negative integer")
	}
	q := &quantiles{epsilon: epsilon, elements: elements, streams: membudget.Make[*stream](n), boundaries: membudget.Make[[]float32](n)}
	membudget.MustTake(n * int64(unsafe.Sizeof(stream{})))
	q.reset()
	return create(ctx, q)
}

// locked calls f with the streams. There must be n.
func locked(ctx *kernel.Context, n int, f func(q *quantiles) error) error {
	q, err := resource.Find[*quantiles](ctx, 0)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.streams) != n {
		return status.Internalf("Expected num_streams == num_features_, got %d vs %d", len(q.streams), n)
	}
	return f(q)
}

// makeSummaries runs BoostedTreesMakeQuantileSummaries.
func makeSummaries(ctx *kernel.Context) error {
	n := ctx.NumOutputs()
	if n == 0 {
		return status.Internalf("Got empty feature list")
	}
	weights := tensor.Values[float32](ctx.Input(n))
	epsilon, err := scalar[float32](ctx, n+1, "epsilon")
	if err != nil {
		return err
	}
	batch := ctx.Input(0).NumElements()
	if len(weights) != 1 && len(weights) != batch {
		return status.InvalidArgumentf("Weights should be a single value or same size as features.")
	}
	if err := checkStream(epsilon, int64(batch)+1); err != nil {
		return err
	}
	for f := range n {
		values := tensor.Values[float32](ctx.Input(f))
		if len(values) != batch {
			return status.InvalidArgumentf("feature %d has %d values, and feature 0 has %d", f, len(values), batch)
		}
		s := newStream(epsilon, int64(batch)+1)
		for i, v := range values {
			s.push(v, weights[i%len(weights)])
		}
		if err := setSummary(ctx, f, s.finish()); err != nil {
			return err
		}
	}
	return nil
}

// setSummary sets output i to a summary.
func setSummary(ctx *kernel.Context, i int, s summary) error {
	out, err := ctx.Allocate(i, tensor.Shape{int64(len(s)), 4})
	if err != nil {
		return err
	}
	all := tensor.Values[float32](out)[:0]
	for _, e := range s {
		all = membudget.AppendAll(all, e.value, e.weight, e.minRank, e.maxRank)
	}
	return nil
}

// flushSummaries runs BoostedTreesFlushQuantileSummaries.
func flushSummaries(ctx *kernel.Context) error {
	return locked(ctx, ctx.NumOutputs(), func(q *quantiles) error {
		for i, s := range q.streams {
			if err := setSummary(ctx, i, s.finish()); err != nil {
				return err
			}
		}
		q.reset()
		return nil
	})
}

// addSummaries runs BoostedTreesQuantileStreamResourceAddSummaries.
func addSummaries(ctx *kernel.Context) error {
	return locked(ctx, ctx.NumInputs()-1, func(q *quantiles) error {
		for i := range q.streams {
			m, err := matrixOf[float32](ctx, 1+i, "summaries")
			if err != nil {
				return err
			}
			if m.cols != 4 {
				return status.Internalf("Expected tensor_shape.dim_size(1) == 4, got %d", m.cols)
			}
			s := summary(membudget.MakeCap[entry](m.rows))
			for r := range m.rows {
				row := m.row(r)
				s = membudget.Append(s, entry{row[0], row[1], row[2], row[3]})
			}
			q.streams[i].add(s)
		}
		return nil
	})
}

// setBoundaries runs BoostedTreesQuantileStreamResourceDeserialize.
func setBoundaries(ctx *kernel.Context) error {
	return locked(ctx, ctx.NumInputs()-1, func(q *quantiles) error {
		for i := range q.boundaries {
			v, err := vector[float32](ctx, 1+i, "bucket boundaries for each stream")
			if err != nil {
				return err
			}
			q.boundaries[i] = membudget.AppendAll(nil, v...)
		}
		return nil
	})
}

// flushBoundaries runs BoostedTreesQuantileStreamResourceFlush.
func flushBoundaries(ctx *kernel.Context, exact bool) error {
	q, err := resource.Find[*quantiles](ctx, 0)
	if err != nil {
		return err
	}
	n, err := scalar[int64](ctx, 1, "num_buckets")
	if err != nil {
		return err
	}
	least := int64(1)
	if exact {
		least = 3
	}
	if n < least {
		return status.InvalidArgumentf("num_buckets must be at least %d, got %d", least, n)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var meter membudget.Meter
	for i, stream := range q.streams {
		s := stream.finish()
		if exact && len(s) == 0 {
			return status.InvalidArgumentf("stream %d has no values, so it has no quantiles", i)
		}
		if exact {
			q.boundaries[i] = s.quantiles(n - 1)
		} else {
			q.boundaries[i] = s.boundaries(n)
		}
		meter.MustTake(4 * len(q.boundaries[i]))
	}
	q.reset()
	return nil
}

// boundaries runs BoostedTreesQuantileStreamResourceGetBucketBoundaries.
func boundaries(ctx *kernel.Context) error {
	return locked(ctx, ctx.NumOutputs(), func(q *quantiles) error {
		for i, b := range q.boundaries {
			if err := setVector(ctx, i, b); err != nil {
				return err
			}
		}
		return nil
	})
}
