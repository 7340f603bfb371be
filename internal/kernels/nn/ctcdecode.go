package nn

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name:  "CTCGreedyDecoder",
			Doc:   "Decodes the logits greedily: takes the most likely class of each step and removes blanks, and repetitions if merge_repeated is true. Returns a sparse matrix of labels, and minus the sum of the logits as log_probability.",
			In:    []string{"inputs: T", "sequence_length: int32"},
			Out:   []string{"decoded_indices: int64", "decoded_values: int64", "decoded_shape: int64", "log_probability: T"},
			Attrs: []string{"merge_repeated: bool = false", "blank_index: int = -1", "T: {float32, float64} = float32"},
			Shape: decodedShape(func(opdef.Attrs) int { return 1 }),
		},
		Kernels: kernel.ByType("T", kernel.Table{tensor.Float32: newGreedyDecoder[float32], tensor.Float64: newGreedyDecoder[float64]}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "CTCBeamSearchDecoder",
			Doc:  "Decodes the logits by a beam search. Returns the most likely label sequences as sparse matrices, and their log probabilities. The last class is the blank.",
			In:   []string{"inputs: T", "sequence_length: int32"},
			Out: []string{"decoded_indices: top_paths * int64", "decoded_values: top_paths * int64", "decoded_shape: top_paths * int64",
				"log_probability: T"},
			Attrs: []string{"beam_width: int >= 1", "top_paths: int >= 1", "merge_repeated: bool = true", "T: {float32, float64} = float32"},
			Shape: decodedShape(func(attrs opdef.Attrs) int { return attrs.Int("top_paths") }),
		},
		Kernels: kernel.ByType("T", kernel.Table{tensor.Float32: newBeamDecoder[float32], tensor.Float64: newBeamDecoder[float64]}),
	})
}

func decodedShape(paths func(opdef.Attrs) int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		if err := shapefn.CheckRanks(c, 0, 3, 1); err != nil {
			return err
		}
		batch, err := opdef.MergeDims(c.In[0].Dim(1), c.In[1].Dim(0))
		if err != nil {
			return err
		}
		n := paths(c.Attrs)
		for i := range n {
			c.Out[i], c.Out[n+i], c.Out[2*n+i] = shapefn.Of(shapefn.Unknown, 2), shapefn.Of(shapefn.Unknown), shapefn.Of(2)
		}
		c.Out[3*n] = shapefn.Of(batch, int64(n))
		return nil
	}
}

// decoding holds the inputs of a decoder: logits indexed by step, sequence and class.
type decoding[T float32 | float64] struct {
	logits         []T
	batch, classes int
	lengths        []int32
	scores         []T // indexed by sequence and path
	paths          int
}

// newDecoding checks the inputs and allocates the last output.
func newDecoding[T float32 | float64](ctx *kernel.Context, paths int) (*decoding[T], error) {
	in, lengths := ctx.Input(0), ctx.Input(1)
	switch {
	case in.Rank() != 3:
		return nil, status.InvalidArgumentf("inputs is not a 3-Tensor")
	case in.NumElements() == 0:
		return nil, status.InvalidArgumentf("inputs must not be empty")
	case lengths.Rank() != 1:
		return nil, status.InvalidArgumentf("sequence_length is not a vector")
	case in.Dim(1) != lengths.Dim(0):
		return nil, status.FailedPreconditionf("len(sequence_length) != batch_size.  len(sequence_length):  %d batch_size: %d", lengths.Dim(0), in.Dim(1))
	}
	for b, n := range tensor.Values[int32](lengths) {
		if int(n) > in.Dim(0) {
			return nil, status.FailedPreconditionf("sequence_length(%d) <= %d", b, in.Dim(0))
		}
	}
	out, err := ctx.AllocateZeros(3*paths, tensor.Shape{int64(in.Dim(1)), int64(paths)})
	if err != nil {
		return nil, err
	}
	return &decoding[T]{tensor.Values[T](in), in.Dim(1), in.Dim(2), tensor.Values[int32](lengths), tensor.Values[T](out), paths}, nil
}

// row returns the logits of a step of a sequence.
func (d *decoding[T]) row(t, b int) []T {
	lo := (t*d.batch + b) * d.classes
	return d.logits[lo : lo+d.classes]
}

// store sets the outputs to the decoded labels, indexed by sequence and path.
func (d *decoding[T]) store(ctx *kernel.Context, decoded [][][]int64) error {
	for p := range d.paths {
		total, longest := 0, 0
		for b := range decoded {
			total, longest = total+len(decoded[b][p]), max(longest, len(decoded[b][p]))
		}
		indices, err := ctx.Allocate(p, tensor.Shape{int64(total), 2})
		if err != nil {
			return err
		}
		values, err := ctx.Allocate(d.paths+p, tensor.Shape{int64(total)})
		if err != nil {
			return err
		}
		at, to := tensor.Values[int64](indices), tensor.Values[int64](values)
		for b := range decoded {
			for t, label := range decoded[b][p] {
				at[0], at[1], to[0] = int64(b), int64(t), label
				at, to = at[2:], to[1:]
			}
		}
		ctx.SetOutput(2*d.paths+p, tensor.Vector(int64(d.batch), int64(longest)))
	}
	return nil
}

func newGreedyDecoder[T float32 | float64](c *kernel.Construction) (kernel.Kernel, error) {
	merge, index := c.Attrs.Bool("merge_repeated"), c.Attrs.Int("blank_index")
	return kernel.Func(func(ctx *kernel.Context) error {
		d, err := newDecoding[T](ctx, 1)
		if err != nil {
			return err
		}
		blank := index
		if blank < 0 {
			blank += d.classes
		}
		if blank < 0 || blank >= d.classes {
			return status.InvalidArgumentf("blank_index expected to be between %d and %d but was %d", -d.classes, d.classes-1, index)
		}
		decoded := membudget.Make[[][]int64](d.batch)
		parallel.For(d.batch, max(1, 10_000/d.classes/max(1, len(d.logits)/d.batch/d.classes)), func(lo, hi int) {
			for b := lo; b < hi; b++ {
				var labels []int64
				before := -1
				for t := range int(d.lengths[b]) {
					row := d.row(t, b)
					best := 0
					for class, v := range row {
						if v > row[best] {
							best = class
						}
					}
					d.scores[b] -= row[best]
					if best != blank && !(merge && best == before) {
						labels = membudget.Append(labels, int64(best))
					}
					before = best
				}
				decoded[b] = [][]int64{labels}
			}
		})
		return d.store(ctx, decoded)
	}), nil
}

func newBeamDecoder[T float32 | float64](c *kernel.Construction) (kernel.Kernel, error) {
	merge, width, paths := c.Attrs.Bool("merge_repeated"), c.Attrs.Int("beam_width"), c.Attrs.Int("top_paths")
	return kernel.Func(func(ctx *kernel.Context) error {
		d, err := newDecoding[T](ctx, paths)
		if err != nil {
			return err
		}
		if paths > width {
			return status.InvalidArgumentf("requested more paths than the beam width.")
		}
		decoded := membudget.Make[[][]int64](d.batch)
		err = parallel.Each(ctx.Context(), d.batch, 1, func(b int) error {
			s := newBeamSearch(width, d.classes)
			for t := range int(d.lengths[b]) {
				for class, v := range d.row(t, b) {
					s.logProbs[class] = float64(v)
				}
				if err := s.step(ctx.Context()); err != nil {
					return err
				}
			}
			best := s.kept.descending()
			if len(best) < paths {
				return status.InvalidArgumentf("Less leaves in the beam search than requested.")
			}
			decoded[b] = membudget.Make[[]int64](paths)
			for p, e := range best[:paths] {
				decoded[b][p], d.scores[b*paths+p] = e.labels(merge), T(e.now.total)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return d.store(ctx, decoded)
	}), nil
}

// beamSearch searches for the most likely label sequences. It keeps the width best prefixes.
type beamSearch struct {
	width    int
	logProbs []float64 // input of step: logits, which it turns into log probabilities
	kept     beamHeap
	meter    membudget.Meter // of beams; the tree keeps those that are no longer in kept
}

// beam is a label sequence: that of its parent followed by one label.
type beam struct {
	parent   *beam
	label    int
	children map[int]*beam
	before   beamProb // as of the previous step
	now      beamProb // impossible while the beam is not kept
}

// smallestMap is the memory of a map of children with one entry, in bytes.
const smallestMap = 200

// beamProb holds log probabilities of a label sequence: of all paths, and of the paths that end in
// a blank or in a label.
type beamProb struct{ total, blank, label float64 }

var impossible = beamProb{math.Inf(-1), math.Inf(-1), math.Inf(-1)}

func newBeamSearch(width, classes int) *beamSearch {
	root := &beam{label: -1, before: impossible, now: beamProb{0, 0, math.Inf(-1)}}
	return &beamSearch{width: width, logProbs: membudget.Make[float64](classes), kept: beamHeap{root}}
}

func (b *beam) kept() bool { return !math.IsInf(b.now.total, -1) }

func (b *beam) labels(merge bool) []int64 {
	var out []int64
	for before := -1; b.parent != nil; b = b.parent {
		if !merge || b.label != before {
			out = membudget.Append(out, int64(b.label))
		}
		before = b.label
	}
	slices.Reverse(out)
	return out
}

// grownBy returns the log probability of the paths that a label can extend. To repeat the beam's
// last label, a path must end in a blank.
func (b *beam) grownBy(label int) float64 {
	if label == b.label {
		return b.before.blank
	}
	return b.before.total
}

// normalize replaces the logits in logProbs by log probabilities.
func (s *beamSearch) normalize() {
	largest, sum := slices.Max(s.logProbs), 0.0
	for _, v := range s.logProbs {
		sum += math.Exp(v - largest)
	}
	for class := range s.logProbs {
		s.logProbs[class] -= largest + math.Log(sum)
	}
}

// checkEvery is the number of beams between two looks at the context of the step. A beam grows by
// each class.
const checkEvery = 64

// step advances the search by one step, with the logits in logProbs. When ctx ends, it returns the
// error of ctx soon.
func (s *beamSearch) step(ctx context.Context) error {
	s.normalize()
	blank := len(s.logProbs) - 1
	beams := s.kept.descending()
	for _, b := range beams {
		b.before = b.now
	}
	for _, b := range beams {
		if b.parent != nil {
			if b.parent.kept() {
				b.now.label = logAdd(b.now.label, b.parent.grownBy(b.label))
			}
			b.now.label += s.logProbs[b.label]
		}
		b.now.blank = b.before.total + s.logProbs[blank]
		b.now.total = logAdd(b.now.blank, b.now.label)
	}
	heap.Init(&s.kept)
	for i, b := range beams {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !s.promising(b.before.total) {
			continue
		}
		for label, logProb := range s.logProbs[:blank] {
			s.grow(b, label, logProb+b.grownBy(label))
		}
	}
	return nil
}

// promising reports whether a beam of the given log probability would be kept.
func (s *beamSearch) promising(total float64) bool {
	return !math.IsInf(total, -1) && (len(s.kept) < s.width || total > s.kept[0].now.total)
}

// grow keeps the extension of b by a label if it is promising and not kept already.
func (s *beamSearch) grow(b *beam, label int, total float64) {
	child := b.children[label]
	switch {
	case child != nil && child.kept():
		return
	case !s.promising(total):
		if child != nil {
			// It may have been kept until this step. It must not grow then.
			child.before = impossible
		}
		return
	case child == nil:
		if b.children == nil {
			s.meter.MustTake(smallestMap)
			b.children = map[int]*beam{}
		}
		s.meter.MustTakeEntry(int(unsafe.Sizeof(beam{})))
		child = &beam{parent: b, label: label, before: impossible}
		b.children[label] = child
	}
	if len(s.kept) == s.width {
		heap.Pop(&s.kept).(*beam).now = impossible
	}
	child.now = beamProb{total, math.Inf(-1), total}
	heap.Push(&s.kept, child)
}

// beamHeap is a heap with the least likely beam on top.
type beamHeap []*beam

func (h beamHeap) Len() int           { return len(h) }
func (h beamHeap) Less(i, j int) bool { return h[i].now.total < h[j].now.total }
func (h beamHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *beamHeap) Push(x any)        { *h = append(*h, x.(*beam)) }

func (h *beamHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// descending returns the beams sorted by descending probability.
func (h beamHeap) descending() []*beam {
	out := membudget.AppendAll(nil, h...)
	slices.SortStableFunc(out, func(a, b *beam) int { return cmp.Compare(b.now.total, a.now.total) })
	return out
}
