package mathops

import (
	"context"
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/linalg"
	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Einsum",
			Doc:  "Computes an Einstein summation of one or two operands: sums products of elements over the labels that are not in the output. \"ij,jk->ik\" is a matrix product.",
			In:   []string{"inputs: N * T"}, Out: []string{"output: T"},
			Attrs: []string{"equation: string", "N: int >= 1", "T: type"}, Shape: einsumShape,
		},
		Kernels: byT(kernel.Table{
			tensor.Float32: newEinsum(product[float32], 1), tensor.Float64: newEinsum(product[float64], 1),
			tensor.Float16:  newEinsum(halfProduct[tensor.Float16Elem], tensor.Float16Of(1)),
			tensor.BFloat16: newEinsum(bfloatProduct, tensor.BFloat16Of(1)),
			tensor.Int32:    newEinsum(anyProduct[int32], 1), tensor.Int64: newEinsum(anyProduct[int64], 1),
			tensor.Complex64: newEinsum(anyProduct[complex64], 1), tensor.Complex128: newEinsum(anyProduct[complex128], 1),
		}),
	})
}

func newEinsum[T tensor.Elem](mul multiply[T], one T) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		e, err := parseEquation(c.Attrs.String("equation"), len(c.Inputs))
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			s := summation[T]{equation: e, mul: mul, one: one}
			defer s.release()
			return s.run(ctx)
		}), nil
	}
}

// operand is a tensor whose dimensions have distinct labels.
type operand struct {
	t      *tensor.Tensor
	view   strided.View
	labels []label
}

func (o operand) has(l label) bool { return slices.Contains(o.labels, l) }

// size returns the number of elements along the given labels.
func (o operand) size(labels []label) int {
	n := 1
	for _, l := range labels {
		n *= o.view.Dims[slices.Index(o.labels, l)]
	}
	return n
}

// summation is one evaluation of an equation, in three steps. First it sums labels that only one
// operand has and the output does not. Then it multiplies the operands as stacks of matrices.
// Finally it permutes the result into the order of the output.
type summation[T tensor.Elem] struct {
	equation
	mul   multiply[T]
	one   T
	sizes map[label]int
	out   []label         // labels of the output, in order, with repetitions
	temps []tensor.Tensor // released at the end
	gpu   *device.Device  // nil on a CPU
	step  context.Context //nolint:containedctx // a summation lives within one call of a kernel
}

func (s *summation[T]) release() {
	for i := range s.temps {
		s.temps[i].Release()
	}
}

func (s *summation[T]) run(ctx *kernel.Context) error {
	s.step = ctx.Context()
	ops := membudget.Make[operand](len(s.in))
	under := 0
	for i := range ops {
		in := ctx.Input(i)
		if err := s.checkRank(i, in.Rank()); err != nil {
			return err
		}
		under = max(under, in.Rank()-len(s.in[i].text))
	}
	if under > 0 && !s.equation.out.dots {
		return status.InvalidArgumentf("Output contains %d broadcasting dimension(s) but no ellipsis (...) was found in the output subscripts.", under)
	}
	s.out, s.sizes = s.equation.out.labels(len(s.equation.out.text)+under), map[label]int{}
	for i := range ops {
		var err error
		if ops[i], err = s.open(ctx.Input(i), s.in[i]); err != nil {
			return err
		}
	}
	shape := tensor.Shape{}
	for _, l := range s.out {
		shape = append(shape, int64(s.sizes[l]))
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	s.gpu = device.Of(out)
	for i := range ops {
		if ops[i], err = s.sumOwn(ops, i); err != nil {
			return err
		}
	}
	result := ops[0]
	if len(ops) == 2 {
		if result, err = s.multiply(ops[0], ops[1]); err != nil {
			return err
		}
	}
	return s.write(out, result)
}

func (s *summation[T]) checkRank(i, rank int) error {
	switch in := s.in[i]; {
	case in.dots && rank < len(in.text):
		return status.InvalidArgumentf("Expected input %d to have rank at least %d but got: %d", i, len(in.text), rank)
	case !in.dots && rank != len(in.text):
		return status.InvalidArgumentf("Expected input %d to have rank %d but got: %d", i, len(in.text), rank)
	}
	return nil
}

// open returns an input as an operand with one dimension per label and records the sizes. A
// repeated label selects the diagonal.
func (s *summation[T]) open(t *tensor.Tensor, in subscript) (operand, error) {
	all, o := strided.Of(t.Shape()), operand{t: t}
	for axis, l := range in.labels(t.Rank()) {
		dim := all.Dims[axis]
		switch size, seen := s.sizes[l]; {
		case !seen || l < 0 && size == 1:
			//sizedmake:ok labels of the equation
			s.sizes[l] = dim
		case size == dim || l < 0 && dim == 1:
		case l < 0:
			return o, status.InvalidArgumentf("Invalid broadcasting dimensions: %d vs. %d", size, dim)
		default:
			return o, status.InvalidArgumentf("Expected dimension %d at axis %d of the input shaped %v but got dimension %d", size, axis, t.Shape(), dim)
		}
		if at := slices.Index(o.labels, l); at >= 0 {
			o.view.Strides[at] += all.Strides[axis]
			continue
		}
		o.labels = append(o.labels, l)
		o.view.Dims, o.view.Strides = append(o.view.Dims, dim), append(o.view.Strides, all.Strides[axis])
	}
	return o, nil
}

// sumOwn returns operand i summed over the labels that are in neither the output nor the other
// operand.
func (s *summation[T]) sumOwn(ops []operand, i int) (operand, error) {
	var kept, summed []label
	for _, l := range ops[i].labels {
		if slices.Contains(s.out, l) || len(ops) == 2 && ops[1-i].has(l) {
			kept = append(kept, l)
		} else {
			summed = append(summed, l)
		}
	}
	if len(summed) == 0 {
		return ops[i], nil
	}
	n, m := ops[i].size(kept), ops[i].size(summed)
	//sizedmake:ok labels of dimensions
	dense, err := s.dense(ops[i], slices.Concat(kept, summed), false)
	if err != nil {
		return dense, err
	}
	result, err := s.allocate(kept, dense.view.Dims[:len(kept)])
	if err != nil {
		return result, err
	}
	switch {
	case n == 0 || m == 0:
		return result, s.zero(result.t)
	case s.gpu != nil:
		return result, linalg.Reduce(s.gpu, "sum", result.t, dense.t, int64(n), int64(m), 1, -1)
	}
	z := tensor.Values[T](result.t)
	ones := membudget.Make[T](m)
	fill(ones, s.one)
	s.mul(gemm.Dense(z, n, 1), gemm.Dense(tensor.Values[T](dense.t), n, m), gemm.Dense(ones, m, 1))
	return result, nil
}

// multiply returns the product of x and y. Its labels are those of both operands, then those of x
// alone, then those of y alone.
func (s *summation[T]) multiply(x, y operand) (operand, error) {
	var batch, contracted, rows, cols []label
	for _, l := range x.labels {
		switch {
		case !y.has(l):
			rows = append(rows, l)
		case slices.Contains(s.out, l):
			batch = append(batch, l)
		default:
			contracted = append(contracted, l)
		}
	}
	for _, l := range y.labels {
		if !x.has(l) {
			cols = append(cols, l)
		}
	}
	m, n, k := x.size(rows), y.size(cols), x.size(contracted)
	var dims []int
	//sizedmake:ok labels of dimensions
	for _, l := range slices.Concat(batch, rows, cols) {
		dims = append(dims, s.sizes[l])
	}
	//sizedmake:ok labels of dimensions
	result, err := s.allocate(slices.Concat(batch, rows, cols), dims)
	if err != nil {
		return result, err
	}
	if k == 0 || result.t.NumElements() == 0 {
		return result, s.zero(result.t)
	}
	a, ta, err := s.stack(x, batch, rows, contracted)
	if err != nil {
		return result, err
	}
	b, tb, err := s.stack(y, batch, contracted, cols)
	if err != nil {
		return result, err
	}
	if s.gpu != nil {
		return result, linalg.Product(s.gpu, result.t, a, b, driver.MatMul{
			Type: a.DType(), M: m, N: n, K: k, TransA: ta, TransB: tb,
			Batch: result.size(batch), StrideA: m * k, StrideB: k * n, StrideC: m * n,
		})
	}
	z, as, bs := tensor.Values[T](result.t), tensor.Values[T](a), tensor.Values[T](b)
	products, grain := result.size(batch), max(1, elementwise.Grain(0.02)/(m*n*k))
	parallel.For(products, grain, func(lo, hi int) {
		p := stepctx.Progress{Context: s.step}
		for i := lo; i < hi && p.Pass(m*n*k) == nil; i++ {
			_ = inPieces(s.step, s.mul, gemm.Dense(z[i*m*n:(i+1)*m*n], m, n), stacked(as, i, m, k, ta), stacked(bs, i, k, n, tb))
		}
	})
	if products > grain || m*n*k > pieceWork {
		return result, s.step.Err()
	}
	return result, nil
}

// stacked returns matrix i of a stack.
func stacked[T any](all []T, i, rows, cols int, transposed bool) gemm.Matrix[T] {
	part := all[i*rows*cols : (i+1)*rows*cols]
	if transposed {
		return gemm.Dense(part, cols, rows).T()
	}
	return gemm.Dense(part, rows, cols)
}

// zero clears a tensor.
func (s *summation[T]) zero(t *tensor.Tensor) error {
	if s.gpu != nil {
		return s.gpu.Fill(t, 0)
	}
	clear(tensor.Values[T](t))
	return nil
}

// stack returns o as a dense stack of matrices. They stay transposed if they are already dense that
// way.
func (s *summation[T]) stack(o operand, batch, rows, cols []label) (all *tensor.Tensor, transposed bool, err error) {
	//sizedmake:ok labels of dimensions
	if order := slices.Concat(batch, cols, rows); s.contiguous(o, order) {
		return o.t, true, nil
	}
	//sizedmake:ok labels of dimensions
	dense, err := s.dense(o, slices.Concat(batch, rows, cols), true)
	return dense.t, false, err
}

// contiguous reports whether o's elements are contiguous in the given order of labels and not
// broadcast.
func (s *summation[T]) contiguous(o operand, order []label) bool {
	step := 1
	for _, l := range slices.Backward(order) {
		at := slices.Index(o.labels, l)
		if o.view.Dims[at] != s.sizes[l] || o.view.Dims[at] > 1 && o.view.Strides[at] != step {
			return false
		}
		step *= o.view.Dims[at]
	}
	return step == o.t.NumElements()
}

// dense returns o as a dense operand with its labels in the given order. With broadcast, it is
// broadcast to the sizes of the labels.
func (s *summation[T]) dense(o operand, order []label, broadcast bool) (operand, error) {
	if s.contiguous(o, order) {
		return operand{o.t, strided.Of(shapeOf(o, order)), order}, nil
	}
	view := s.arrange(o, order)
	if broadcast {
		for i, l := range order {
			if view.Dims[i] != s.sizes[l] {
				view.Dims[i], view.Strides[i] = s.sizes[l], 0
			}
		}
	}
	result, err := s.allocate(order, view.Dims)
	if err == nil {
		strided.Copy(result.t, result.view, o.t, view)
	}
	return result, err
}

func shapeOf(o operand, order []label) tensor.Shape {
	shape := tensor.Shape{}
	for _, l := range order {
		shape = append(shape, int64(o.view.Dims[slices.Index(o.labels, l)]))
	}
	return shape
}

// arrange returns o's view with its dimensions in the given order.
func (s *summation[T]) arrange(o operand, order []label) strided.View {
	perm := membudget.Make[int](len(order))
	for i, l := range order {
		perm[i] = slices.Index(o.labels, l)
	}
	return o.view.Permute(perm)
}

func (s *summation[T]) allocate(labels []label, dims []int) (operand, error) {
	shape := tensor.Shape{}
	for _, d := range dims {
		shape = append(shape, int64(d))
	}
	alloc := tensor.Alloc
	if s.gpu != nil {
		alloc = s.gpu.Alloc
	}
	t, err := alloc(tensor.DTypeOf[T](), shape)
	if err != nil {
		return operand{}, err
	}
	s.temps = append(s.temps, t)
	return operand{&t, strided.Of(shape), labels}, nil
}

// write copies the result to the output. If the output repeats a label, it writes the diagonal.
func (s *summation[T]) write(out *tensor.Tensor, result operand) error {
	to := operand{t: out}
	for axis, stride := range strided.Of(out.Shape()).Strides {
		l := s.out[axis]
		if at := slices.Index(to.labels, l); at >= 0 {
			to.view.Strides[at] += stride
			continue
		}
		to.labels = append(to.labels, l)
		to.view.Dims, to.view.Strides = append(to.view.Dims, s.sizes[l]), append(to.view.Strides, stride)
	}
	if len(to.labels) < len(s.out) {
		if err := s.zero(out); err != nil {
			return err
		}
	}
	strided.Copy(out, to.view, result.t, s.arrange(result, to.labels))
	return nil
}
