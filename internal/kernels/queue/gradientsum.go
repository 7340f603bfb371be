package queue

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// denseSum is the sum of gradients that are one tensor each, of one shape.
type denseSum[T tensor.Elem] struct {
	shape tensor.PartialShape
	total tensor.Tensor
}

func (s *denseSum[T]) add(a *membudget.Account, gradient []tensor.Tensor, first bool) error {
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
	if err := own(a, &s.total); err != nil {
		return err
	}
	elementwise.Accumulate(elementwise.Add, &s.total, g)
	return nil
}

func (s *denseSum[T]) divide(a *membudget.Account, count int) error {
	if err := own(a, &s.total); err != nil {
		return err
	}
	divide(tensor.Values[T](&s.total), count)
	return nil
}

// own replaces a tensor that has other holders by a copy, for which an account pays.
func own(a *membudget.Account, t *tensor.Tensor) error {
	if t.Exclusive() {
		return nil
	}
	c, err := t.Clone()
	if err == nil {
		err = resource.Charge(a, &c)
	}
	if err != nil {
		return err
	}
	t.Release()
	*t = c
	return nil
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
	indices tensor.Tensor       // int64, [n]
	counts  tensor.Tensor       // gradients in each row; int64, [n]
	rows    tensor.Tensor       // [n, …]
}

// release releases the value of the sum.
func (s *sparseSum[T]) release() {
	s.indices.Release()
	s.counts.Release()
	s.rows.Release()
}

// add adds a gradient of indices, rows and an optional shape of the large tensor.
func (s *sparseSum[T]) add(a *membudget.Account, gradient []tensor.Tensor, first bool) error {
	if err := s.check(gradient, first); err != nil {
		return err
	}
	indices, rows := &gradient[0], &gradient[1]
	if !first {
		return s.merge(a, tensor.Values[int64](indices), rows)
	}
	counts, err := numbers(a, indices.Dim(0))
	if err != nil {
		return err
	}
	n := tensor.Values[int64](&counts)
	for i := range n {
		n[i] = 1
	}
	s.indices, s.counts, s.rows = *indices, counts, *rows
	*indices, *rows = tensor.Tensor{}, tensor.Tensor{}
	return nil
}

// numbers returns n int64 numbers, for which an account pays.
func numbers(a *membudget.Account, n int) (tensor.Tensor, error) {
	t, err := tensor.Alloc(tensor.Int64, tensor.Shape{int64(n)})
	if err != nil {
		return t, err
	}
	return t, resource.Charge(a, &t)
}

// merge adds rows by merging two sorted lists.
func (s *sparseSum[T]) merge(a *membudget.Account, indices []int64, rows *tensor.Tensor) error {
	have, counts := tensor.Values[int64](&s.indices), tensor.Values[int64](&s.counts)
	var from [][2]int // positions of each row in the sum and in the gradient, or -1
	for i, j := 0, 0; i < len(have) || j < len(indices); {
		switch {
		case j == len(indices) || i < len(have) && have[i] < indices[j]:
			from = membudget.Append(from, [2]int{i, -1})
			i++
		case i == len(have) || indices[j] < have[i]:
			from = membudget.Append(from, [2]int{-1, j})
			j++
		default:
			from = membudget.Append(from, [2]int{i, j})
			i++
			j++
		}
	}
	sum := sparseSum[T]{shape: s.shape}
	if err := sum.allocate(a, rows, len(from)); err != nil {
		sum.release()
		return err
	}
	to, n, total := tensor.Values[int64](&sum.indices), tensor.Values[int64](&sum.counts), &sum.rows
	plus := elementwise.Arithmetic[T](elementwise.Add)
	for r, f := range from {
		switch {
		case f[1] < 0:
			to[r], n[r] = have[f[0]], counts[f[0]]
			copy(row[T](total, r), row[T](&s.rows, f[0]))
		case f[0] < 0:
			to[r], n[r] = indices[f[1]], 1
			copy(row[T](total, r), row[T](rows, f[1]))
		default:
			to[r], n[r] = indices[f[1]], counts[f[0]]+1
			plus(row[T](total, r), row[T](rows, f[1]), row[T](&s.rows, f[0]))
		}
	}
	s.release()
	*s = sum
	return nil
}

// allocate makes room for n rows like those of a gradient, for which an account pays.
func (s *sparseSum[T]) allocate(a *membudget.Account, like *tensor.Tensor, n int) (err error) {
	if s.indices, err = numbers(a, n); err != nil {
		return err
	}
	if s.counts, err = numbers(a, n); err != nil {
		return err
	}
	shape := slices.Clone(like.Shape())
	shape[0] = int64(n)
	if s.rows, err = tensor.AllocShared(like.DType(), shape); err != nil {
		return err
	}
	return resource.Charge(a, &s.rows)
}

// row returns the elements of row i.
func row[T tensor.Elem](t *tensor.Tensor, i int) []T {
	vals := tensor.Values[T](t)
	n := len(vals) / t.Dim(0)
	return vals[i*n : (i+1)*n]
}

func (s *sparseSum[T]) divide(a *membudget.Account, _ int) error {
	if err := own(a, &s.rows); err != nil {
		return err
	}
	for i, n := range tensor.Values[int64](&s.counts) {
		divide(row[T](&s.rows, i), int(n))
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
	s.counts.Release()
	out := []tensor.Tensor{s.indices, s.rows, tensor.Vector([]int64(shape)...)}
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
