package sparse

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const csrTypes = "{float32, float64, complex64, complex128}"

func init() {
	register := func(def opdef.Def, attr string, compute kernel.Func) {
		k := kernel.Stateless(compute)
		kernel.Register(kernel.Op{Def: def, Kernels: byCSR(attr, k, k, k, k)})
	}
	register(opdef.Def{
		Name: "SparseTensorToCSRSparseMatrix",
		Doc:  "Converts a sparse tensor with ordered indices to CSR matrices.",
		In:   []string{"indices: int64", "values: T", "dense_shape: int64"}, Out: []string{"sparse_matrix: variant"},
		Attrs: []string{"T: " + csrTypes}, Shape: toCSRShape,
	}, "T", tensorToCSR)
	register(opdef.Def{
		Name: "DenseToCSRSparseMatrix",
		Doc:  "Gathers the elements of dense matrices at ordered indices into CSR matrices.",
		In:   []string{"dense_input: T", "indices: int64"}, Out: []string{"sparse_output: variant"},
		Attrs: []string{"T: " + csrTypes}, Shape: denseToCSRShape,
	}, "T", denseToCSR)
	register(opdef.Def{
		Name: "CSRSparseMatrixToSparseTensor", Doc: "Converts CSR matrices to a sparse tensor.",
		In: []string{"sparse_matrix: variant"}, Out: []string{"indices: int64", "values: type", "dense_shape: int64"},
		Attrs: []string{"type: " + csrTypes},
		Shape: func(c *opdef.ShapeContext) error {
			s, err := csrShape(c, 0)
			rank := shapefn.Unknown
			if s.RankKnown() {
				rank = int64(s.Rank())
			}
			copy(c.Out, unknownCOO(rank))
			return err
		},
	}, "type", csrToTensor)
	register(opdef.Def{
		Name: "CSRSparseMatrixToDense", Doc: "Converts CSR matrices to a dense tensor.",
		In: []string{"sparse_input: variant"}, Out: []string{"dense_output: type"}, Attrs: []string{"type: " + csrTypes},
		Shape: func(c *opdef.ShapeContext) (err error) {
			c.Out[0], err = csrShape(c, 0)
			return err
		},
	}, "type", csrToDense)
	register(opdef.Def{
		Name:  "CSRSparseMatrixComponents",
		Doc:   "Returns the row pointers, column indices and values of one matrix of a batch.",
		In:    []string{"csr_sparse_matrix: variant", "index: int32"},
		Out:   []string{"row_ptrs: int32", "col_inds: int32", "values: type"},
		Attrs: []string{"type: " + csrTypes},
		Shape: func(c *opdef.ShapeContext) error {
			s, err := csrShape(c, 0)
			if c.In[1].RankKnown() && c.In[1].Rank() != 0 {
				return status.InvalidArgumentf("index must be a scalar.")
			}
			c.SetAll(shapefn.Of(shapefn.Unknown))
			c.Out[0] = shapefn.Of(shapefn.Add(s.Dim(-2), 1))
			return err
		},
	}, "type", csrComponents)
	kernel.RegisterFunc(opdef.Def{
		Name: "SparseMatrixNNZ", Doc: "Returns the number of nonzero elements of each CSR matrix.",
		In: []string{"sparse_matrix: variant"}, Out: []string{"nnz: int32"},
		Shape: func(c *opdef.ShapeContext) error {
			s, err := csrShape(c, 0)
			if s.RankKnown() {
				c.Out[0] = shapefn.Sub(s, 0, s.Rank()-2)
			}
			return err
		},
	}, csrCount)
}

func toCSRShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 2, 1, 1); err != nil {
		return err
	}
	s, err := shapefn.Input(c, 2)
	if err != nil {
		return err
	}
	if !s.RankKnown() || s.Rank() < 2 || s.Rank() > 3 {
		return status.InvalidArgumentf("Invalid rank: %d.  Expected a known rank of either 2 or 3.", s.Rank())
	}
	setCSR(c, c.Attrs.Type("T"), s)
	return nil
}

func denseToCSRShape(c *opdef.ShapeContext) error {
	dense, indices := c.In[0], c.In[1]
	switch {
	case !dense.RankKnown() || dense.Rank() < 2 || dense.Rank() > 3:
		return status.InvalidArgumentf("Invalid rank of dense: %d.  Expected a known rank of either 2 or 3.", dense.Rank())
	case indices.Rank() != 2:
		return status.InvalidArgumentf("indices must be a matrix; but its rank is not 2: %d", indices.Rank())
	case indices.Dim(1) != int64(dense.Rank()):
		return status.InvalidArgumentf("indices.shape[1] must match rank of dense; saw: %d vs. %d", indices.Dim(1), dense.Rank())
	}
	setCSR(c, c.Attrs.Type("T"), dense)
	return nil
}

// compress returns CSR matrices with elements at the given indices, which are ordered. It takes
// ownership of values.
func compress(ix []int64, values tensor.Tensor, shape tensor.Shape) (*CSR, error) {
	rank, n := len(shape), int64(1)
	if rank == 3 {
		n = shape[0]
	}
	h := shape[rank-2]
	switch {
	case n >= math.MaxInt32:
		return nil, status.InvalidArgumentf("dense_shape batch_size must be < Int32Max, but the input value is %d", n)
	case values.NumElements() > math.MaxInt32:
		return nil, status.InvalidArgumentf("values number of elements must be <= Int32Max, but the input value is %d", values.NumElements())
	case h >= math.MaxInt32 || (h+1)*n > math.MaxInt32:
		return nil, status.InvalidArgumentf("The csr row index size, computed based on the dense_shape, must be <= Int32Max, but is too large. Current value is %d", (h+1)*n)
	}
	// Each row takes memory even if it has no elements. The allocator bounds the size.
	pointers, err := tensor.Zeros(tensor.Int32, tensor.Shape{(h + 1) * n})
	if err != nil {
		return nil, err
	}
	shape = slices.Clone(shape) // it may share memory with an input
	m := &CSR{shape, membudget.Make[int32](n + 1), tensor.Values[int32](&pointers), membudget.Make[int32](values.NumElements()), values}
	for i := range m.cols {
		at, b := ix[i*rank:(i+1)*rank], int64(0)
		if rank == 3 {
			b = at[0]
		}
		m.batch[b+1]++
		m.rows[b*(h+1)+at[rank-2]+1]++
		m.cols[i] = int32(at[rank-1])
	}
	for b := range n {
		m.batch[b+1] += m.batch[b]
		for r := range h {
			m.rows[b*(h+1)+r+1] += m.rows[b*(h+1)+r]
		}
	}
	return m, nil
}

func tensorToCSR(ctx *kernel.Context) error {
	s, err := checkedCOO(ctx.Input(0), ctx.Input(1), ctx.Input(2))
	if err == nil {
		err = s.checkBounds()
	}
	if err != nil {
		return err
	}
	if s.rank != 2 && s.rank != 3 {
		return status.InvalidArgumentf("SparseTensor must have rank 2 or 3; but indices has rank: %d", s.rank)
	}
	m, err := compress(s.ix, s.values.Retain(), s.shape)
	return putCSR(ctx, m, err)
}

func denseToCSR(ctx *kernel.Context) error {
	dense, indices := ctx.Input(0), ctx.Input(1)
	switch {
	case dense.Rank() != 2 && dense.Rank() != 3:
		return status.InvalidArgumentf("params must have rank == 2 or 3; but saw shape: %v", dense.Shape())
	case indices.Rank() != 2:
		return status.InvalidArgumentf("indices must be a matrix, but saw shape: %v", indices.Shape())
	case indices.Dim(1) != dense.Rank():
		return status.InvalidArgumentf("indices.shape[1] must be equal to the rank of params, but saw: %d vs. %d", indices.Dim(1), dense.Rank())
	}
	list, bad, err := gatherscatter.ReadVectors(indices, dense.Shape(), false)
	defer list.Release()
	if err != nil {
		return err
	}
	if bad >= 0 {
		return status.InvalidArgumentf("indices[%d] = [%s] does not index into param shape %v", bad, gatherscatter.Vector(indices, bad), dense.Shape())
	}
	values, err := tensor.Alloc(dense.DType(), tensor.Shape{int64(indices.Dim(0))})
	if err != nil {
		return err
	}
	gather(&values, dense, list.Rows)
	m, err := compress(intarg.Values(indices), values, dense.Shape())
	return putCSR(ctx, m, err)
}

// each calls f for each element with its number and index.
func (m *CSR) each(f func(i int, at []int64)) {
	at, h := membudget.Make[int64](len(m.shape)), m.height()
	for b := range m.size() {
		at[0] = int64(b)
		for r := range h {
			at[len(at)-2] = int64(r)
			for i := m.rows[b*(h+1)+r]; i < m.rows[b*(h+1)+r+1]; i++ {
				e := int(m.batch[b] + i)
				at[len(at)-1] = int64(m.cols[e])
				f(e, at)
			}
		}
	}
}

// csrOf returns the matrix in input 0, which must have the type of output i.
func csrOf(ctx *kernel.Context, i int) (*CSR, error) {
	m, err := csrInput(ctx, 0)
	if err == nil && m.values.DType() != ctx.OutputType(i) {
		err = status.InvalidArgumentf("Expected a CSRSparseMatrix of type %v but saw type: %v", ctx.OutputType(i), m.values.DType())
	}
	return m, err
}

func csrToTensor(ctx *kernel.Context) error {
	m, err := csrOf(ctx, 1)
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, tensor.Shape{int64(len(m.cols)), int64(len(m.shape))})
	if err != nil {
		return err
	}
	ix := tensor.Values[int64](out)
	m.each(func(i int, at []int64) { copy(ix[i*len(at):], at) })
	ctx.SetOutput(1, m.values.Retain())
	return putVector(ctx, 2, m.shape)
}

func csrToDense(ctx *kernel.Context) error {
	m, err := csrInput(ctx, 0)
	if err != nil {
		return err
	}
	if m.values.DType() != ctx.OutputType(0) {
		return status.InvalidArgumentf("Asked for a CSRSparseMatrix of type %v but saw dtype: %v", ctx.OutputType(0), m.values.DType())
	}
	out, err := ctx.AllocateZeros(0, m.shape)
	if err != nil {
		return err
	}
	size := m.values.DType().Size()
	dst, src := out.Bytes(), m.values.Bytes()
	m.each(func(i int, at []int64) {
		position := int64(0)
		for d, x := range at {
			position = position*m.shape[d] + x
		}
		copy(dst[int(position)*size:][:size], src[i*size:])
	})
	return nil
}

func csrComponents(ctx *kernel.Context) error {
	m, err := csrOf(ctx, 2)
	if err != nil {
		return err
	}
	index := ctx.Input(1)
	if index.Rank() != 0 {
		return status.InvalidArgumentf("index should be a scalar, but saw: %v", index)
	}
	b := intarg.Scalar(index)
	if b < 0 || b >= int64(m.size()) {
		return status.InvalidArgumentf("index (%d) not in [0, %d)", b, m.size())
	}
	h, lo, hi := m.height(), int(m.batch[b]), int(m.batch[b+1])
	ctx.SetOutput(0, tensor.Vector(m.rows[int(b)*(h+1):(int(b)+1)*(h+1)]...))
	ctx.SetOutput(1, tensor.Vector(m.cols[lo:hi]...))
	values := m.values.Rows(lo, hi)
	ctx.SetOutput(2, values.Retain())
	return nil
}

func csrCount(ctx *kernel.Context) error {
	m, err := csrInput(ctx, 0)
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, m.shape[:len(m.shape)-2])
	if err != nil {
		return err
	}
	for b := range tensor.Values[int32](out) {
		tensor.Values[int32](out)[b] = m.batch[b+1] - m.batch[b]
	}
	return nil
}
