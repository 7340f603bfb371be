package random

import (
	"context"
	"fmt"
	"math"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Returns num_sampled candidate classes, %s. Also returns the expected number of occurrences of each true and each sampled class among them."
	sizes := []string{"num_true: int >= 1", "num_sampled: int >= 1", "unique: bool"}
	withRange := with(sizes, "range_max: int >= 1")
	for _, op := range []struct {
		name, how string
		attrs     []string
		class     opdef.Class
		classes   func(fileio.Files, opdef.Attrs) (*classes, error)
	}{
		{"AllCandidateSampler", "namely all classes", sizes, 0, allClasses},
		{"UniformCandidateSampler", "drawn from a uniform distribution", withRange, 0, uniformClasses},
		{"LogUniformCandidateSampler", "drawn from a log-uniform distribution", withRange, 0, logUniformClasses},
		{"LearnedUnigramCandidateSampler", "drawn from a unigram distribution learned from the true classes so far", withRange, 0, learnedClasses},
		{"ThreadUnsafeUnigramCandidateSampler", "drawn from a unigram distribution learned from the true classes so far", withRange, 0, learnedClasses},
		{"FixedUnigramCandidateSampler", "drawn from a unigram distribution with weights that are given or read from the last column of a file", with(withRange,
			"vocab_file: string = ''", "distortion: float = 1", "num_reserved_ids: int = 0", "num_shards: int >= 1 = 1",
			"shard: int >= 0 = 0", "unigrams: list(float) = []"), opdef.FilesRead, weightedClasses},
	} {
		kernel.RegisterNew(opdef.Def{
			Name: op.name, Doc: fmt.Sprintf(doc, op.how), In: []string{"true_classes: int64"},
			Out:   []string{"sampled_candidates: int64", "true_expected_count: float32", "sampled_expected_count: float32"},
			Attrs: with(op.attrs, seedAttrs...), Stateful: true, Class: op.class, Shape: candidatesShape,
		}, newCandidates(op.classes))
	}
}

func candidatesShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRank(c.In[0], 2)
	if err != nil {
		return err
	}
	n := int64(c.Attrs.Int("num_sampled"))
	c.Out[0] = tensor.MakePartial(n)
	c.Out[1] = tensor.MakePartial(in.Dim(0), int64(c.Attrs.Int("num_true")))
	c.Out[2] = tensor.MakePartial(n)
	return nil
}

// classes is a distribution over the classes 0 to n-1.
type classes struct {
	n           int64
	draw        func(*philox.Words) int64 // nil if all classes are taken
	probability func(class int64) float32
	// session calls f, and then learn unless it is nil. No other session changes the probabilities
	// during the call. It fails if ctx ends while another session takes long.
	session func(ctx context.Context, f func()) error
	learn   func(seen []int64)
}

func newCandidates(newClasses func(fileio.Files, opdef.Attrs) (*classes, error)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		from, err := newClasses(c.Files(), c.Attrs)
		if err != nil {
			return nil, err
		}
		source, perRow, n, unique := sourceOf(c.Attrs), c.Attrs.Int("num_true"), c.Attrs.Int("num_sampled"), c.Attrs.Bool("unique")
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			if err := from.check(in, perRow, n, unique); err != nil {
				return err
			}
			sampled, err := ctx.Allocate(0, tensor.Shape{int64(n)})
			if err != nil {
				return err
			}
			trueCounts, err := ctx.Allocate(1, in.Shape())
			if err != nil {
				return err
			}
			counts, err := ctx.Allocate(2, tensor.Shape{int64(n)})
			if err != nil {
				return err
			}
			seen := tensor.Values[int64](in)
			for _, class := range seen {
				if class < 0 || class >= from.n {
					return status.InvalidArgumentf("`true_candidate` out of range [0, %d), received %d", from.n, class)
				}
			}
			const perCandidate = 2048 // words that TensorFlow reserves
			d := draw{from, philox.NewWords(source.TakeWords(perCandidate * n)), tensor.Values[int64](sampled)}
			waited := from.session(ctx.Context(), func() {
				var tries int
				if tries, err = d.run(ctx.Context(), unique); err != nil {
					return
				}
				d.expect(tensor.Values[float32](counts), d.out, tries)
				d.expect(tensor.Values[float32](trueCounts), seen, tries)
				if from.learn != nil {
					from.learn(seen)
				}
			})
			if waited != nil {
				return waited
			}
			return err
		}), nil
	}
}

func (c *classes) check(in *tensor.Tensor, perRow, n int, unique bool) error {
	switch {
	case in.Rank() != 2:
		return status.InvalidArgumentf("true_classes must be a matrix")
	case in.Dim(1) != perRow:
		return status.InvalidArgumentf("true_classes must have num_true columns, expected: %d was: %d", in.Dim(1), perRow)
	case unique && int64(n) > c.n:
		return status.InvalidArgumentf("Sampler's range is too small.")
	}
	return nil
}

// draw is a draw of classes.
type draw struct {
	from  *classes
	words *philox.Words
	out   []int64
}

// checkEvery is the number of draws between two looks at the context of a step.
const checkEvery = 1 << 16

// run fills the output and returns the number of classes that were drawn for it.
func (d *draw) run(ctx context.Context, unique bool) (tries int, err error) {
	switch {
	case d.from.draw == nil:
		for i := range d.out {
			d.out[i] = int64(i)
		}
		return len(d.out), nil
	case !unique:
		for i := range d.out {
			if i%checkEvery == checkEvery-1 && ctx.Err() != nil {
				return 0, status.FromContext(ctx, "drawing classes")
			}
			d.out[i] = d.from.draw(d.words)
		}
		return len(d.out), nil
	}
	used := map[int64]struct{}{}
	var meter membudget.Meter
	for i := 0; i < len(d.out); {
		if tries++; tries%checkEvery == 0 {
			if ctx.Err() != nil {
				return 0, status.FromContext(ctx, "drawing classes")
			}
		}
		class := d.from.draw(d.words)
		if _, ok := used[class]; !ok {
			meter.MustTakeEntry(0)
			used[class] = struct{}{}
			d.out[i] = class
			i++
		}
	}
	return tries, nil
}

// expect sets counts to the expected number of occurrences of classes among those drawn in the
// given number of tries.
func (d *draw) expect(counts []float32, classes []int64, tries int) {
	for i, class := range classes {
		switch p := d.from.probability(class); {
		case d.from.draw == nil:
			counts[i] = 1
		case tries == len(d.out):
			counts[i] = p * float32(len(d.out))
		default: // 1-(1-p)^tries
			counts[i] = float32(-math.Expm1(float64(float32(tries) * float32(math.Log1p(float64(-p))))))
		}
	}
}

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "ComputeAccidentalHits",
		Doc:  "Computes the positions of sampled classes that match a true class: the row of each match, its index among the samples, and the lowest float as a weight that masks it.",
		In:   []string{"true_classes: int64", "sampled_candidates: int64"}, Out: []string{"indices: int32", "ids: int64", "weights: float32"},
		Attrs: with([]string{"num_true: int"}, seedAttrs...),
		Shape: func(c *opdef.ShapeContext) error {
			in, err := opdef.WithRank(c.In[0], 2)
			if err != nil {
				return err
			}
			if err := shapefn.CheckDim(in.Dim(1), int64(c.Attrs.Int("num_true"))); err != nil {
				return err
			}
			_, err = opdef.WithRank(c.In[1], 1)
			c.SetAll(tensor.MakePartial(tensor.UnknownDim))
			return err
		},
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		perRow := c.Attrs.Int("num_true")
		return kernel.Func(func(ctx *kernel.Context) error { return accidentalHits(ctx, perRow) }), nil
	})
}

func accidentalHits(ctx *kernel.Context, perRow int) error {
	classes, sampled := ctx.Input(0), ctx.Input(1)
	if classes.Rank() != 2 || classes.Dim(1) != perRow {
		return status.InvalidArgumentf("true_candidates must be a batch_size * num_true matrix")
	}
	if sampled.Rank() != 1 {
		return status.InvalidArgumentf("sampled_candidates must be a vector, which is typically an output from CandidateSampler")
	}
	at := map[int64]int64{}
	var meter membudget.Meter
	for i, class := range tensor.Values[int64](sampled) {
		meter.MustTakeEntry(0)
		at[class] = int64(i)
	}
	var rows []int32
	var ids []int64
	for i, class := range tensor.Values[int64](classes) {
		if id, ok := at[class]; ok {
			rows, ids = membudget.Append(rows, int32(i/perRow)), membudget.Append(ids, id)
		}
	}
	weights := membudget.Make[float32](len(ids))
	for i := range weights {
		weights[i] = -math.MaxFloat32
	}
	ctx.SetOutput(0, tensor.Vector(rows...))
	ctx.SetOutput(1, tensor.Vector(ids...))
	ctx.SetOutput(2, tensor.Vector(weights...))
	return nil
}
