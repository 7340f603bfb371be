package queue

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// denseSum is the sum of gradients that are one tensor each, of one shape.
type denseSum[T tensor.Elem] struct {
	shape tensor.PartialShape
	total tensor.Tensor
}

func (s *denseSum[T]) add(gradient []tensor.Tensor, first bool) error {
	g := &gradient[0]
	if !first && !s.total.Shape().Equal(g.Shape()) {
		return status.InvalidArgumentf("Shape mismatch: expected %v, got %v", s.total.Shape(), g.Shape())
	}
	if !s.shape.CompatibleWith(g.Shape()) {
		return status.InvalidArgumentf("Shape mismatch: expected %v, got %v", s.shape, g.Shape())
	}
	if first {
		s.total, *g = *g, tensor.Tensor{}
		return nil
	}
	total, err := kernel.Writable(&s.total)
	if err == nil {
		elementwise.Accumulate(elementwise.Add, total, g)
	}
	return err
}

func (s *denseSum[T]) divide(count int) error {
	total, err := kernel.Writable(&s.total)
	if err == nil {
		divide(tensor.Values[T](total), count)
	}
	return err
}

func (s *denseSum[T]) take() []tensor.Tensor {
	total := s.total
	s.total = tensor.Tensor{}
	return []tensor.Tensor{total}
}

// divide divides elements by a number.
func divide[T tensor.Elem](vals []T, by int) {
	if by == 1 {
		return
	}
	number, err := tensor.FromFloat(tensor.DTypeOf[T](), float64(by))
	if err != nil {
		panic(err) // unreachable: sums have floating-point dtypes
	}
	const grain = 1 << 13
	divisor := slices.Repeat([]T{tensor.Value[T](&number)}, min(grain, len(vals)))
	quotient := elementwise.Arithmetic[T](elementwise.Div)
	parallel.For(len(vals), grain, func(lo, hi int) { quotient(vals[lo:hi], vals[lo:hi], divisor[:hi-lo]) })
}

// sparseSum is the sum of gradients that are indexed rows of a large tensor. Indices should be
// ascending. The mean of a row is over the gradients that contain it.
type sparseSum[T tensor.Elem] struct {
	shape   tensor.PartialShape // of the large tensor
	indices []int64
	counts  []int // gradients in each row
	rows    tensor.Tensor
}

// add adds a gradient of indices, rows and an optional shape of the large tensor.
func (s *sparseSum[T]) add(gradient []tensor.Tensor, first bool) error {
	if err := s.check(gradient, first); err != nil {
		return err
	}
	indices, rows := tensor.Values[int64](&gradient[0]), &gradient[1]
	if first {
		s.indices, s.counts = slices.Clone(indices), ones(len(indices))
		s.rows, *rows = *rows, tensor.Tensor{}
		return nil
	}
	return s.merge(indices, rows)
}

// merge adds rows by merging two sorted lists.
func (s *sparseSum[T]) merge(indices []int64, rows *tensor.Tensor) error {
	var from [][2]int // positions of each row in the sum and in the gradient, or -1
	for i, j := 0, 0; i < len(s.indices) || j < len(indices); {
		switch {
		case j == len(indices) || i < len(s.indices) && s.indices[i] < indices[j]:
			from = membudget.Append(from, [2]int{i, -1})
			i++
		case i == len(s.indices) || indices[j] < s.indices[i]:
			from = membudget.Append(from, [2]int{-1, j})
			j++
		default:
			from = membudget.Append(from, [2]int{i, j})
			i++
			j++
		}
	}
	shape := slices.Clone(rows.Shape())
	shape[0] = int64(len(from))
	total, err := tensor.AllocShared(rows.DType(), shape)
	if err != nil {
		return err
	}
	sum := sparseSum[T]{shape: s.shape, indices: membudget.Make[int64](len(from)), counts: membudget.Make[int](len(from)), rows: total}
	plus := elementwise.Arithmetic[T](elementwise.Add)
	for r, f := range from {
		switch {
		case f[1] < 0:
			sum.indices[r], sum.counts[r] = s.indices[f[0]], s.counts[f[0]]
			copy(row[T](&total, r), row[T](&s.rows, f[0]))
		case f[0] < 0:
			sum.indices[r], sum.counts[r] = indices[f[1]], 1
			copy(row[T](&total, r), row[T](rows, f[1]))
		default:
			sum.indices[r], sum.counts[r] = indices[f[1]], s.counts[f[0]]+1
			plus(row[T](&total, r), row[T](rows, f[1]), row[T](&s.rows, f[0]))
		}
	}
	s.rows.Release()
	*s = sum
	return nil
}

// row returns the elements of row i.
func row[T tensor.Elem](t *tensor.Tensor, i int) []T {
	vals := tensor.Values[T](t)
	n := len(vals) / t.Dim(0)
	return vals[i*n : (i+1)*n]
}

func (s *sparseSum[T]) divide(int) error {
	rows, err := kernel.Writable(&s.rows)
	if err != nil {
		return err
	}
	for i, n := range s.counts {
		divide(row[T](rows, i), n)
	}
	return nil
}

// take returns indices, rows and the shape of the large tensor.
func (s *sparseSum[T]) take() []tensor.Tensor {
	shape := slices.Clone(s.rows.Shape())
	shape[0] = -1
	if s.shape.Rank() > 0 {
		shape[0] = s.shape.Dim(0)
	}
	out := []tensor.Tensor{tensor.Vector(s.indices...), s.rows, tensor.Vector([]int64(shape)...)}
	*s = sparseSum[T]{shape: s.shape}
	return out
}

// check compares a gradient with the shape of the large tensor and with the rows of the sum.
func (s *sparseSum[T]) check(gradient []tensor.Tensor, first bool) error {
	indices, rows := &gradient[0], &gradient[1]
	if indices.Rank() != 1 {
		return status.InvalidArgumentf("Input indices should be vector but received shape: %v", indices.Shape())
	}
	if rows.Rank() == 0 {
		return status.InvalidArgumentf("Values cannot be 0-dimensional.")
	}
	if n := indices.Dim(0); rows.Dim(0) != n {
		return status.InvalidArgumentf("Expected %d non-empty input values, got %d", n, rows.Dim(0))
	}
	if len(gradient) > 2 {
		if err := s.checkShape(tensor.Values[int64](&gradient[2])); err != nil {
			return err
		}
	}
	if limit := s.shape.Dim(0); s.shape.Rank() > 0 && limit >= 0 {
		for i, index := range tensor.Values[int64](indices) {
			if index >= limit {
				return status.InvalidArgumentf("Shape mismatch: index of slice %d exceeded limits of shape; index is %d exceeded %d",
					i, index, limit)
			}
		}
	}
	if first {
		return s.checkRows(s.shape, "expected values rank at least %d, got %d", rows, rows.Rank() < s.shape.Rank())
	}
	have := s.rows.Shape().Partial()
	return s.checkRows(have, "expected values rank %d, got %d", rows, rows.Rank() != have.Rank())
}

func (s *sparseSum[T]) checkShape(dims []int64) error {
	if s.shape.Rank() > len(dims) {
		return status.InvalidArgumentf("Shape mismatch: expected shape rank at least %d, got %d", s.shape.Rank(), len(dims))
	}
	for i, want := range s.shape.Dims() {
		if want >= 0 && want != dims[i] {
			return status.InvalidArgumentf("Shape mismatch: expected shape dim %d to be %d, got %d", i, want, dims[i])
		}
	}
	return nil
}

// checkRows compares the dimensions of rows after the first with those of want.
func (s *sparseSum[T]) checkRows(want tensor.PartialShape, rank string, rows *tensor.Tensor, wrongRank bool) error {
	if wrongRank {
		return status.InvalidArgumentf("Shape mismatch: "+rank, want.Rank(), rows.Rank())
	}
	for i := 1; i < want.Rank(); i++ {
		if d := want.Dim(i); d >= 0 && d != int64(rows.Dim(i)) {
			return status.InvalidArgumentf("Shape mismatch: expected values dim %d to be %d, got %d", i, d, rows.Dim(i))
		}
	}
	return nil
}

// ones returns n ones.
func ones(n int) []int {
	out := membudget.Make[int](n)
	for i := range out {
		out[i] = 1
	}
	return out
}
