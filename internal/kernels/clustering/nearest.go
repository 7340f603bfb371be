package clustering

import (
	"cmp"
	"context"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "NearestNeighbors", Doc: "Returns the indices and squared distances of the k centers nearest to each point, in ascending order of distance.",
		In:    []string{"points: float32", "centers: float32", "k: int64"},
		Out:   []string{"nearest_center_indices: int64", "nearest_center_distances: float32"},
		Shape: opdef.UnknownShape,
	}, nearestNeighbors)
}

// Numbers of points and centers whose inner products are computed at a time. They bound the memory
// for the products.
const (
	pointBlock  = 256
	centerBlock = 1024
)

func nearestNeighbors(ctx *kernel.Context) error {
	p, err := inputPoints(ctx, 0, "points")
	if err != nil {
		return err
	}
	centers, err := inputPoints(ctx, 1, "centers")
	if err != nil {
		return err
	}
	k, err := scalar(ctx, 2, "k")
	switch {
	case err != nil:
		return err
	case p.n == 0:
		return status.InvalidArgumentf("Expected points.rows() > 0.")
	case p.dims != centers.dims:
		return status.InvalidArgumentf("Expected point_dimensions == center_dimensions: %d vs %d.", p.dims, centers.dims)
	case k < 0:
		return status.InvalidArgumentf("Expected k >= 0, got %d.", k)
	}
	k = min(k, int64(centers.n))
	shape := tensor.Shape{int64(p.n), k}
	indices, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	distances, err := ctx.Allocate(1, shape)
	if err != nil || k == 0 {
		return err
	}
	s := search{p, centers, int(k), tensor.Values[int64](indices), tensor.Values[float32](distances)}
	products := membudget.Make[float32](min(pointBlock, p.n) * min(centerBlock, centers.n))
	for lo := 0; lo < p.n; lo += pointBlock {
		if err := s.block(ctx.Context(), lo, min(lo+pointBlock, p.n), products); err != nil {
			return err
		}
	}
	return nil
}

// search is a nearest-center search and the destination of its results.
type search struct {
	points, centers *points
	k               int
	indices         []int64
	distances       []float32
}

// block searches for points lo to hi. products is scratch memory. It fails if ctx ends.
func (s *search) block(ctx context.Context, lo, hi int, products []float32) error {
	n, dims := hi-lo, s.points.dims
	found := membudget.Make[candidates](n)
	for from := 0; from < s.centers.n; from += centerBlock {
		if ctx.Err() != nil {
			return status.FromContext(ctx, "finding the nearest centers")
		}
		to := min(from+centerBlock, s.centers.n)
		c := products[:n*(to-from)]
		clear(c)
		if dims > 0 {
			gemm.Mul(gemm.Dense(c, n, to-from), gemm.Dense(s.points.coords[lo*dims:hi*dims], n, dims),
				gemm.Dense(s.centers.coords[from*dims:to*dims], to-from, dims).T(), gemm.Options[float32]{})
		}
		parallel.For(n, 8, func(a, b int) {
			for i := a; i < b; i++ {
				found[i].add(c[i*(to-from):(i+1)*(to-from)], s.centers.halfNorms[from:to], from, s.k)
			}
		})
	}
	for i := range found {
		s.store(lo+i, found[i].nearest(s.k))
	}
	return nil
}

// store stores the results for point i.
func (s *search) store(i int, nearest []candidate) {
	for j, c := range nearest {
		s.indices[i*s.k+j] = int64(c.center)
		s.distances[i*s.k+j] = 2 * (s.points.halfNorms[i] + c.distance)
	}
}

// candidate is a center that may be among the nearest. Its distance omits the term that all
// candidates share.
type candidate struct {
	distance float32
	center   int
}

// candidates holds the candidates of one point.
type candidates struct {
	all []candidate
	cut bool // the first k are the nearest so far, in order
}

// add considers centers first and following.
func (c *candidates) add(products, halfNorms []float32, first, k int) {
	for i, norm := range halfNorms {
		d := norm - products[i]
		if c.cut && d >= c.all[k-1].distance {
			continue
		}
		c.all = membudget.Append(c.all, candidate{d, first + i})
		if len(c.all) >= 2*k+16 {
			c.nearest(k)
		}
	}
}

// nearest drops all but the nearest k candidates and returns these.
func (c *candidates) nearest(k int) []candidate {
	slices.SortFunc(c.all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.center, b.center))
	})
	if len(c.all) > k {
		c.all = c.all[:k]
	}
	c.cut = len(c.all) == k
	return c.all
}
