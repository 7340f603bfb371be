package philox

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
)

// Distribution describes how samples are computed from the outputs of a generator.
type Distribution[T any] struct {
	// Group is the number of samples that are computed together.
	Group int
	// Stride is the number of outputs between the starts of two groups.
	Stride uint64
	// Cost is the time per group, in nanoseconds.
	Cost float64
	// Fill computes the samples of consecutive groups. The first group starts at g. The last
	// group may be truncated.
	Fill func(g Generator, out []T)
}

// blockTime is the target duration of one block of a parallel loop, in nanoseconds.
const blockTime = 50_000

// Fill sets out to samples of d from g on. The result does not depend on the number of cores.
func Fill[T any](out []T, g Generator, d *Distribution[T]) {
	groups := (len(out) + d.Group - 1) / d.Group
	parallel.For(groups, int(max(1, blockTime/d.Cost)), func(lo, hi int) {
		at := g
		at.Skip(uint64(lo) * d.Stride)
		d.Fill(at, out[lo*d.Group:min(hi*d.Group, len(out))])
	})
}

// outputs returns a distribution that computes a group from each output with f.
func outputs[T any](group int, cost float64, f func(x *[4]uint32, out []T)) *Distribution[T] {
	return &Distribution[T]{Group: group, Stride: 1, Cost: cost, Fill: func(g Generator, out []T) {
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		for len(out) > 0 {
			x := s.outputs(g, 1, min(most, (len(out)+group-1)/group))
			g.Skip(uint64(len(x)))
			for i := range x {
				if len(out) < group {
					var last [4]T
					f(&x[i], last[:group])
					out = out[copy(out, last[:]):]
					break
				}
				f(&x[i], out[:group])
				out = out[group:]
			}
		}
	}}
}

// mapped returns a distribution of float32 that computes a sample from each word with convert.
// convert takes a multiple of 16 words.
func mapped(cost float64, convert func(dst []float32, words []uint32)) *Distribution[float32] {
	return &Distribution[float32]{Group: 4, Stride: 1, Cost: cost, Fill: func(g Generator, out []float32) {
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		for len(out) > 0 {
			x := s.outputs(g, 1, min(most, (len(out)+15)/16*4))
			g.Skip(uint64(len(x)))
			if n := 4 * len(x); len(out) >= n {
				convert(out[:n], flat(x))
				out = out[n:]
				continue
			}
			last := s.samples[0][:4*len(x)]
			convert(last, flat(x))
			out = out[copy(out, last):]
		}
	}}
}

// reserved is the number of 32-bit words reserved for a sample that consumes a varying number of
// them.
const reserved = 256

// rejecting returns a distribution that draws candidates with propose from consecutive outputs
// until accept has admitted a full group.
func rejecting[T any](group int, cost float64, propose func(x *[4]uint32) [4]T, candidates int, accept func(T) bool) *Distribution[T] {
	stride := uint64(group * reserved / 4)
	return &Distribution[T]{Group: group, Stride: stride, Cost: cost, Fill: func(g Generator, out []T) {
		for len(out) > 0 {
			n := min(group, len(out))
			untilFull(g, out[:n], propose, candidates, accept)
			g.Skip(stride)
			out = out[n:]
		}
	}}
}

// untilFull fills one group with the accepted candidates from g on.
func untilFull[T any](g Generator, out []T, propose func(x *[4]uint32) [4]T, candidates int, accept func(T) bool) {
	for i := 0; i < len(out); {
		x := g.Next()
		drawn := propose(&x)
		for _, v := range drawn[:candidates] {
			if i < len(out) && accept(v) {
				out[i] = v
				i++
			}
		}
	}
}
