package sparse

import (
	"context"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "SparseMatrixOrderingAMD",
		Doc: "Computes a minimum degree ordering of rows and columns, which keeps Cholesky factors " +
			"sparse.",
		In: []string{"input: variant"}, Out: []string{"output: int32"},
		Shape: func(c *opdef.ShapeContext) error {
			s, err := squareCSR(c)
			if s.RankKnown() {
				c.Out[0] = shapefn.Sub(s, 0, s.Rank()-1)
			}
			return err
		},
	}, func(ctx *kernel.Context) error {
		m, err := csrInput(ctx, 0)
		if err != nil {
			return err
		}
		n := m.height()
		if n != m.width() {
			return status.InvalidArgumentf("sparse matrix must be square; got: %d != %d", n, m.width())
		}
		out, err := ctx.Allocate(0, m.shape[:len(m.shape)-1])
		if err != nil {
			return err
		}
		for b := range m.size() {
			order, err := leastDegree(ctx.Context(), m, b)
			if err != nil {
				return err
			}
			copy(tensor.Values[int32](out)[b*n:(b+1)*n], order)
		}
		return nil
	})
}

const (
	// smallestMap is the memory of a map of neighbors with one entry, in bytes.
	smallestMap = 128
	// neighborSize is the memory of a neighbor, in bytes: a slot of 8 bytes, 7/16 of them used
	// after a map has grown, and the smaller map that it grew from.
	neighborSize = 32
)

// leastDegree returns a minimum degree ordering: it repeatedly eliminates the row with the fewest
// remaining neighbors. Eliminating a row connects all of its neighbors. It fails if ctx ends.
func leastDegree(ctx context.Context, m *CSR, b int) ([]int32, error) {
	n := m.height()
	near := membudget.Make[map[int32]bool](n)
	var meter membudget.Meter
	for r := range near {
		meter.MustTake(smallestMap)
		near[r] = map[int32]bool{}
	}
	rows, lo := m.rows[b*(n+1):(b+1)*(n+1)], m.batch[b]
	for r := range n {
		for _, c := range m.cols[lo+rows[r] : lo+rows[r+1]] {
			if int(c) != r {
				meter.MustTake(2 * neighborSize)
				near[r][c], near[c][int32(r)] = true, true
			}
		}
	}
	order := membudget.MakeCap[int32](n)
	for range n {
		best := -1
		for r := range near {
			if near[r] != nil && (best < 0 || len(near[r]) < len(near[best])) {
				best = r
			}
		}
		if ctx.Err() != nil {
			return nil, status.FromContext(ctx, "ordering a sparse matrix")
		}
		for x := range near[best] {
			if ctx.Err() != nil {
				return nil, status.FromContext(ctx, "ordering a sparse matrix")
			}
			before := len(near[x])
			delete(near[x], int32(best))
			for y := range near[best] {
				if x != y {
					near[x][y] = true
				}
			}
			meter.MustTake(max(0, len(near[x])-before) * neighborSize)
		}
		near[best] = nil
		order = membudget.Append(order, int32(best))
	}
	return order, nil
}
