package clustering

import (
	"context"
	"math"
	"sort"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "KmeansPlusPlusInitialization",
		Doc: "Selects points as initial centers by the k-means++ algorithm: the probability of a point is proportional to its squared distance from the nearest selected one " +
			"(Arthur and Vassilvitskii, k-means++, SODA 2007). Takes the best of 1 + num_retries_per_sample draws.",
		In:  []string{"points: float32", "num_to_sample: int64", "seed: int64", "num_retries_per_sample: int64"},
		Out: []string{"samples: float32"}, Shape: opdef.UnknownShape,
	}, plusPlus)
}

func plusPlus(ctx *kernel.Context) error {
	p, err := inputPoints(ctx, 0, "points")
	if err != nil {
		return err
	}
	var args [3]int64
	for i, name := range []string{"num_to_sample", "seed", "num_retries_per_sample"} {
		if args[i], err = scalar(ctx, 1+i, name); err != nil {
			return err
		}
	}
	n, seed, retries := args[0], args[1], args[2]
	switch {
	case p.n == 0:
		return status.InvalidArgumentf("Expected points.rows() > 0.")
	case n <= 0:
		return status.InvalidArgumentf("Expected num_to_sample > 0.")
	case n > int64(p.n):
		return status.InvalidArgumentf("Expected num_to_sample <= points.rows(). %d vs %d.", n, p.n)
	case retries < 0:
		retries = 2 + int64(math.Log(float64(n)))
	}
	out, err := ctx.Allocate(0, tensor.Shape{n, int64(p.dims)})
	if err != nil {
		return err
	}
	s := newSampling(p, seed)
	for i := range int(n) {
		chosen, err := s.choose(ctx.Context(), 1+retries)
		if err != nil {
			return err
		}
		copy(tensor.Values[float32](out)[i*p.dims:], p.at(chosen))
	}
	return nil
}

// sampling is the state of selecting centers.
type sampling struct {
	*points
	random  *philox.Words
	chosen  map[int]bool
	meter   membudget.Meter // of chosen
	nearest []float32       // half of the squared distance of each point from the nearest center
	sums    []float32       // prefix sums of nearest, inclusive
}

func newSampling(p *points, seed int64) *sampling {
	s := &sampling{
		points: p, random: philox.NewWords(philox.New(uint64(seed), 0)), chosen: map[int]bool{},
		nearest: membudget.Make[float32](p.n), sums: membudget.Make[float32](p.n),
	}
	for i := range s.nearest {
		s.nearest[i] = float32(math.Inf(1))
	}
	return s
}

// choose returns the next center: the draw that minimizes the sum of the distances. It fails if ctx
// ends.
func (s *sampling) choose(ctx context.Context, draws int64) (int, error) {
	sum := float32(0)
	for i, d := range s.nearest {
		sum += d
		s.sums[i] = sum
	}
	best, least := 0, math.Inf(1)
	var after []float32
	for range draws {
		if ctx.Err() != nil {
			return 0, status.FromContext(ctx, "choosing centers")
		}
		i := s.draw()
		nearest := s.with(i)
		total := 0.0
		for _, d := range nearest {
			total += float64(d)
		}
		if after == nil || total < least {
			best, least, after = i, total, nearest
		}
	}
	s.nearest = after
	s.meter.MustTakeEntry(0)
	s.chosen[best] = true
	return best, nil
}

// maxMisses bounds consecutive draws of points that are already selected. Only rounding makes such
// draws possible.
const maxMisses = 1000

func (s *sampling) draw() int {
	if len(s.chosen) == 0 {
		return int(s.random.Below64(uint64(s.n)))
	}
	for range maxMisses {
		limit := s.random.Unit32() * s.sums[s.n-1]
		i := sort.Search(s.n, func(i int) bool { return s.sums[i] > limit })
		if i == s.n {
			return s.n - 1 // all points coincide with centers
		}
		if !s.chosen[i] {
			return i
		}
	}
	for i := range s.n {
		if !s.chosen[i] {
			return i
		}
	}
	return s.n - 1
}

// with returns the distances from the nearest center if point i becomes one.
func (s *sampling) with(i int) []float32 {
	out, center := membudget.Make[float32](s.n), s.at(i)
	parallel.For(s.n, max(1, 8192/max(1, s.dims)), func(lo, hi int) {
		for k := lo; k < hi; k++ {
			out[k] = min(s.nearest[k], s.halfNorms[k]-dot(s.at(k), center)+s.halfNorms[i])
		}
	})
	return out
}
