package data

import (
	"context"
	"iter"
	"math/rand/v2"
)

// Shuffle changes the order of the elements at random: each element is drawn from a buffer of the
// next buffer elements. With a buffer of all elements every order is equally likely. The order
// depends on the seed and the epoch.
func (d *Dataset) Shuffle(buffer int, seed uint64) *Dataset {
	buffer = max(buffer, 1)
	return d.ordered(func(p *Dataset) *Dataset { return p.Shuffle(buffer, seed) }, func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			rng := rand.New(rand.NewPCG(seed, uint64(epoch)))
			var waiting []Element
			for e, err := range d.read(ctx, epoch) {
				if err != nil {
					yield(nil, err)
					return
				}
				if len(waiting) < buffer {
					waiting = append(waiting, e)
					continue
				}
				i := rng.IntN(buffer)
				next := waiting[i]
				waiting[i] = e
				if !yield(next, nil) {
					return
				}
			}
			rng.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
			for _, e := range waiting {
				if !yield(e, nil) {
					return
				}
			}
		}
	})
}

// Split divides the elements at random into two data sets, the first with the given fraction. The
// division depends only on the seed and the positions of the elements. If the number of elements is
// not known, the fraction is approximate.
func (d *Dataset) Split(fraction float64, seed uint64) (first, second *Dataset) {
	inFirst := func(i int) bool { return rand.New(rand.NewPCG(seed, uint64(i))).Float64() < fraction }
	n1, n2 := unknown, unknown
	if d.count >= 0 {
		n1 = int(float64(d.count)*fraction + 0.5)
		n2 = d.count - n1
		chosen := make([]bool, d.count)
		for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(d.count)[:n1] {
			chosen[i] = true
		}
		inFirst = func(i int) bool { return i < len(chosen) && chosen[i] }
	}
	first, second = d.filter(inFirst), d.filter(func(i int) bool { return !inFirst(i) })
	first.count, second.count = n1, n2
	return first, second
}

// Shard returns every n-th element, beginning with element i: the part of worker i of n.
func (d *Dataset) Shard(n, i int) *Dataset {
	out := d.filter(func(at int) bool { return at%n == i })
	if d.count >= 0 {
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
	})
	if d.count >= 0 {
		out.count = min(d.count, max(n, 0))
	}
	return out
}

// Skip returns the elements after the first n.
func (d *Dataset) Skip(n int) *Dataset {
	out := d.filter(func(i int) bool { return i >= n })
	if d.count >= 0 {
		out.count = max(d.count-n, 0)
	}
	return out
}

// filter returns the elements whose positions keep accepts.
func (d *Dataset) filter(keep func(i int) bool) *Dataset {
	return d.ordered(func(p *Dataset) *Dataset { return p.filter(keep) }, func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			i := 0
			for e, err := range d.read(ctx, epoch) {
				if (err != nil || keep(i)) && !yield(e, err) {
					return
				}
				i++
			}
		}
	})
}
