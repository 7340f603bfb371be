package sparse

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// csrTypeName is TensorFlow's type name of variants with a CSR matrix.
const csrTypeName = "tensorflow::CSRSparseMatrix"

func init() { tensor.RegisterVariant(csrTypeName, decodeCSR) }

// CSR is a sparse matrix in compressed sparse row format, or a batch of matrices of one shape. The
// elements of a row are adjacent. A CSR is the value of a variant and is immutable.
type CSR struct {
	shape tensor.Shape // 2 or 3 dimensions
	batch []int32      // start of each matrix's elements and, at the end, the total number
	// Start of each row's elements within its matrix, with the number of elements at the end of
	// each matrix.
	rows   []int32
	cols   []int32       // column of each element
	values tensor.Tensor // value of each element
}

// csrElem is the constraint of the element types of CSR matrices.
type csrElem interface {
	tensor.Elem
	float32 | float64 | complex64 | complex128
}

func (m *CSR) size() int   { return len(m.batch) - 1 }
func (m *CSR) height() int { return int(m.shape[len(m.shape)-2]) }
func (m *CSR) width() int  { return int(m.shape[len(m.shape)-1]) }

// csrPart is one matrix of a batch.
type csrPart[T csrElem] struct {
	rows, cols    []int32
	vals          []T
	height, width int
}

func part[T csrElem](m *CSR, b int) csrPart[T] {
	lo, hi, h := m.batch[b], m.batch[b+1], m.height()
	return csrPart[T]{m.rows[b*(h+1) : (b+1)*(h+1)], m.cols[lo:hi], tensor.Values[T](&m.values)[lo:hi], h, m.width()}
}

// newCSR combines matrices into a batch.
func newCSR[T csrElem](shape tensor.Shape, parts []csrPart[T]) (*CSR, error) {
	m := &CSR{shape: shape, batch: []int32{0}}
	var vals []T
	for _, p := range parts {
		m.rows, m.cols, vals = membudget.AppendAll(m.rows, p.rows...), membudget.AppendAll(m.cols, p.cols...), membudget.AppendAll(vals, p.vals...)
		if len(vals) > math.MaxInt32 {
			return nil, status.ResourceExhaustedf("a sparse matrix has more than %d elements", math.MaxInt32)
		}
		m.batch = membudget.Append(m.batch, int32(len(vals)))
	}
	var err error
	m.values, err = tensor.FromSlice(tensor.Shape{int64(len(vals))}, vals)
	return m, err
}

// EncodeVariant returns TensorFlow's encoded form. The metadata holds a validity flag and the
// element type.
func (m *CSR) EncodeVariant() (tensor.EncodedVariant, error) {
	meta := binary.LittleEndian.AppendUint32(nil, 1)
	return tensor.EncodedVariant{
		TypeName: csrTypeName, Metadata: binary.LittleEndian.AppendUint32(meta, uint32(m.values.DType())),
		Tensors: []tensor.Tensor{tensor.Vector[int64](m.shape...), tensor.Vector(m.batch...), tensor.Vector(m.rows...), tensor.Vector(m.cols...), m.values.Retain()},
	}, nil
}

func decodeCSR(v tensor.EncodedVariant) (any, error) {
	bad := status.InvalidArgumentf("malformed variant of a sparse matrix")
	if len(v.Tensors) != 5 || v.Tensors[0].DType() != tensor.Int64 {
		return nil, bad
	}
	for i := range v.Tensors {
		if v.Tensors[i].Rank() != 1 || 1 <= i && i <= 3 && v.Tensors[i].DType() != tensor.Int32 {
			return nil, bad
		}
	}
	ints := func(i int) []int32 { return tensor.Values[int32](&v.Tensors[i]) }
	m := &CSR{tensor.Values[int64](&v.Tensors[0]), ints(1), ints(2), ints(3), v.Tensors[4]}
	if slices.ContainsFunc(m.shape, func(n int64) bool { return n < 0 || n >= math.MaxInt32 }) || !m.valid() {
		return nil, bad
	}
	return m, nil
}

// valid reports whether the components of the matrix are consistent.
func (m *CSR) valid() bool {
	n := int64(1)
	if len(m.shape) == 3 {
		n = m.shape[0]
	}
	switch m.values.DType() {
	case tensor.Float32, tensor.Float64, tensor.Complex64, tensor.Complex128:
	default:
		return false
	}
	if len(m.shape) < 2 || len(m.shape) > 3 || int64(len(m.batch)) != n+1 || int64(len(m.rows)) != n*int64(m.height()+1) ||
		len(m.cols) != m.values.NumElements() || !ascending(m.batch, len(m.cols)) {
		return false
	}
	for b := range m.size() {
		if !ascending(m.rows[b*(m.height()+1):(b+1)*(m.height()+1)], int(m.batch[b+1]-m.batch[b])) {
			return false
		}
	}
	for _, c := range m.cols {
		if c < 0 || int(c) >= m.width() {
			return false
		}
	}
	return true
}

// ascending reports whether starts ascend from 0 to n.
func ascending(starts []int32, n int) bool {
	for i := 1; i < len(starts); i++ {
		if starts[i] < starts[i-1] {
			return false
		}
	}
	return starts[0] == 0 && int(starts[len(starts)-1]) == n
}

// Conj returns the complex conjugate of the matrices.
func (m *CSR) Conj() (any, error) {
	out := *m
	switch m.values.DType() {
	case tensor.Complex64:
		out.values = tensor.Vector(conjugated(tensor.Values[complex64](&m.values), true)...)
	case tensor.Complex128:
		out.values = tensor.Vector(conjugated(tensor.Values[complex128](&m.values), true)...)
	default:
		out.values = m.values.Retain()
	}
	return &out, nil
}

// csrInput returns the matrix in input i.
func csrInput(ctx *kernel.Context, i int) (*CSR, error) {
	in := ctx.Input(i)
	if in.Rank() != 0 {
		return nil, status.InvalidArgumentf("Invalid input matrix: Shape must be rank 0 but is rank %d", in.Rank())
	}
	m, ok := tensor.Value[tensor.VariantValue](in).Value.(*CSR)
	if !ok {
		return nil, status.InvalidArgumentf("Could not retrieve Variant input %d", i)
	}
	return m, nil
}

// typedInput is csrInput for matrices with elements of type T.
func typedInput[T csrElem](ctx *kernel.Context, i int) (*CSR, error) {
	m, err := csrInput(ctx, i)
	if err == nil && m.values.DType() != tensor.DTypeOf[T]() {
		err = status.InvalidArgumentf("Asked for a CSRSparseMatrix of type %v but saw dtype: %v", tensor.DTypeOf[T](), m.values.DType())
	}
	return m, err
}

func putCSR(ctx *kernel.Context, m *CSR, err error) error {
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(tensor.VariantValue{Value: m}))
	}
	return err
}

// csrShape returns what is known about the shape of the matrix in input i of a shape function.
func csrShape(c *opdef.ShapeContext, i int) (shapefn.Shape, error) {
	if _, err := opdef.WithRank(c.In[i], 0); err != nil {
		return shapefn.Shape{}, err
	}
	if i >= len(c.InHandles) || len(c.InHandles[i]) != 1 {
		return shapefn.Shape{}, nil
	}
	s, err := opdef.WithRankAtLeast(c.InHandles[i][0].Shape, 2)
	if err != nil {
		return s, err
	}
	return opdef.WithRankAtMost(s, 3)
}

// setCSR sets output 0 of a shape function to a matrix of the given type and shape.
func setCSR(c *opdef.ShapeContext, dtype tensor.DType, s shapefn.Shape) {
	c.Out[0] = shapefn.Of()
	if len(c.OutHandles) > 0 {
		c.OutHandles[0] = []tensor.HandleElem{{DType: dtype, Shape: s}}
	}
}

// byCSR returns one kernel per element type.
func byCSR(attr string, f32, f64, c64, c128 kernel.New) []kernel.Impl {
	return kernel.ByType(attr, kernel.Table{tensor.Float32: f32, tensor.Float64: f64, tensor.Complex64: c64, tensor.Complex128: c128})
}

// conj returns the complex conjugate of v.
func conj[T elementwise.Number](v T) T {
	switch x := any(v).(type) {
	case complex64:
		return any(complex(real(x), -imag(x))).(T)
	case complex128:
		return any(complex(real(x), -imag(x))).(T)
	}
	return v
}

// conjugated returns v, or a copy with complex conjugates if yes is true.
func conjugated[T csrElem](v []T, yes bool) []T {
	if !yes {
		return v
	}
	out := membudget.Make[T](len(v))
	for i, x := range v {
		out[i] = conj(x)
	}
	return out
}
