package data

import (
	"context"
	"iter"
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Shuffle changes the order of the elements at random: each element is drawn from a buffer of the
// next buffer elements. With a buffer of all elements every order is equally likely. The order
// depends on the seed and the epoch. It is that of ShuffleDatasetV3 with the seeds seed and
// epoch+1.
func (d *Dataset) Shuffle(buffer int, seed uint64) *Dataset {
	buffer = max(buffer, 1)
	return d.ordered(func(p *Dataset) *Dataset { return p.Shuffle(buffer, seed) }, func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			random := philox.NewWords(philox.New(seed, uint64(epoch)+1))
			var waiting []Element
			draw := func() bool {
				i := int(int64(random.Next()) % int64(len(waiting)))
				e := waiting[i]
				waiting[i], waiting[0] = waiting[0], nil
				waiting = waiting[1:]
				return yield(e, nil)
			}
			for e, err := range d.read(ctx, epoch) {
				if err != nil {
					yield(nil, err)
					return
				}
				if waiting = append(waiting, e); len(waiting) == buffer && !draw() {
					return
				}
			}
			for len(waiting) > 0 {
				if !draw() {
					return
				}
			}
		}
	}, func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
		// two zero seeds would mean random ones
		seed2 := op.Add(p.s, p.epoch, p.number(1))
		return op.ShuffleDatasetV3(p.s, in, p.number(buffer), op.Const(p.s, int64(seed)), seed2, op.DummySeedGenerator(p.s),
			types, shapes, op.ShuffleDatasetV3ReshuffleEachIteration(false))
	})
}

// Split divides the elements at random into two data sets, the first with the given fraction. The
// division depends only on the seed and the positions of the elements. If the number of elements is
// not known, the fraction is approximate.
func (d *Dataset) Split(fraction float64, seed uint64) (first, second *Dataset) {
	if d.count < 0 {
		return d.draw(fraction, seed, true), d.draw(fraction, seed, false)
	}
	n := int(float64(d.count)*fraction + 0.5)
	chosen, others := make([]bool, d.count), make([]bool, d.count)
	for at, i := range rand.New(rand.NewPCG(seed, 0)).Perm(d.count) {
		chosen[i], others[i] = at < n, at >= n
	}
	first, second = d.chosen(chosen), d.chosen(others)
	first.count, second.count = n, d.count-n
	return first, second
}

// chosen returns the elements at the positions where keep is true.
func (d *Dataset) chosen(keep []bool) *Dataset {
	at := func(i int) bool { return i < len(keep) && keep[i] }
	return d.filter(func() func(int) bool { return at }, func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
		which := op.TensorSliceDataset(p.s, []op.Output{op.Const(p.s, keep)}, []tensor.PartialShape{tensor.MakePartial()})
		return p.choose(in, which, tensor.Bool, types, shapes, func(_ *op.Scope, keep op.Output) op.Output { return keep })
	})
}

// draw returns the elements for which a random number is below a fraction, or the others. The
// numbers are those of RandomDataset.
func (d *Dataset) draw(fraction float64, seed uint64, below bool) *Dataset {
	limit := fraction * (1 << 32) // of 32-bit numbers
	const seed2 = 1               // two zero seeds would mean random ones
	return d.filter(func() func(int) bool {
		random := philox.NewWords(philox.New(seed, seed2))
		return func(int) bool { return float64(random.Next()) < limit == below }
	}, func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
		numbers := op.RandomDataset(p.s, op.Const(p.s, int64(seed)), p.number(seed2), []tensor.DType{tensor.Int64}, []tensor.PartialShape{tensor.MakePartial()})
		return p.choose(in, numbers, tensor.Int64, types, shapes, func(s *op.Scope, number op.Output) op.Output {
			is := op.Less(s, op.Cast(s, number, tensor.Float64), op.Const(s, limit))
			return op.Equal(s, is, op.Const(s, below))
		})
	})
}

// Shard returns every n-th element, beginning with element i: the part of worker i of n.
func (d *Dataset) Shard(n, i int) *Dataset {
	var wrong error
	if i < 0 || i >= n {
		wrong = status.InvalidArgumentf("data: Shard(%d, %d): there are only the parts from 0 to %d", n, i, n-1)
	}
	out := d.filter(func() func(int) bool { return func(at int) bool { return at%n == i } },
		func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
			if wrong != nil {
				return p.fail(wrong)
			}
			return op.ShardDataset(p.s, in, p.number(n), p.number(i), types, shapes)
		})
	switch {
	case wrong != nil:
		out.read = failing(wrong)
	case d.count >= 0:
		out.count = (d.count - i + n - 1) / n
	}
	return out
}

// Take returns the first n elements.
func (d *Dataset) Take(n int) *Dataset {
	out := d.ordered(func(p *Dataset) *Dataset { return p.Take(n) }, func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			left := n
			if left <= 0 {
				return
			}
			for e, err := range d.read(ctx, epoch) {
				left--
				if !yield(e, err) || left == 0 {
					return
				}
			}
		}
	}, func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
		return op.TakeDataset(p.s, in, p.number(max(n, 0)), types, shapes)
	})
	if d.count >= 0 {
		out.count = min(d.count, max(n, 0))
	}
	return out
}

// Skip returns the elements after the first n.
func (d *Dataset) Skip(n int) *Dataset {
	out := d.filter(func() func(int) bool { return func(i int) bool { return i >= n } },
		func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
			return op.SkipDataset(p.s, in, p.number(max(n, 0)), types, shapes)
		})
	if d.count >= 0 {
		out.count = max(d.count-n, 0)
	}
	return out
}

// filter returns the elements whose positions are accepted. accepts returns, for a pass over the
// elements, a function that is called with the positions in order. add does the same in a graph.
func (d *Dataset) filter(accepts func() func(i int) bool, add stage) *Dataset {
	return d.ordered(func(p *Dataset) *Dataset { return p.filter(accepts, nil) }, func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			keep, i := accepts(), 0
			for e, err := range d.read(ctx, epoch) {
				if (err != nil || keep(i)) && !yield(e, err) {
					return
				}
				i++
			}
		}
	}, add)
}
