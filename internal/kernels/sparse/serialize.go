package sparse

import (
	"context"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register := func(name, doc string, out shapefn.Shape, f func(*kernel.Context, encoder) error) {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: name, Doc: doc,
				In:    []string{"sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"},
				Out:   []string{"serialized_sparse: out_type"},
				Attrs: []string{"T: type", "out_type: {string, variant} = string"},
				Shape: func(c *opdef.ShapeContext) error {
					c.Out[0] = out
					return shapefn.CheckRanks(c, 0, 2, 1, 1)
				},
			},
			Kernels: kernel.ByType("out_type", kernel.Table{
				tensor.String:  kernel.Stateless(func(ctx *kernel.Context) error { return f(ctx, encodeText) }),
				tensor.Variant: kernel.Stateless(func(ctx *kernel.Context) error { return f(ctx, encodeVariant) }),
			}),
		})
	}
	register("SerializeSparse", "Serializes a sparse tensor into a vector of three strings or variants.", shapefn.Of(3), serialize)
	register("SerializeManySparse", "Serializes each row of a sparse tensor into three strings or variants.", shapefn.Of(shapefn.Unknown, 3), serializeMany)
}

// tensorVariant is the type name of encoded variants that hold a tensor.
const tensorVariant = "tensorflow::Tensor"

// encoder sets element i of dst to the encoded form of t. It takes ownership of t.
type encoder func(dst *tensor.Tensor, i int, t tensor.Tensor) error

func encodeText(dst *tensor.Tensor, i int, t tensor.Tensor) error {
	defer t.Release()
	p, err := pbconv.TensorToWire(&t)
	if err != nil {
		return err
	}
	tensor.Values[string](dst)[i], err = pbconv.MarshalText(p)
	return err
}

func encodeVariant(dst *tensor.Tensor, i int, t tensor.Tensor) error {
	tensor.Values[tensor.VariantValue](dst)[i].Value = tensor.EncodedVariant{TypeName: tensorVariant, Tensors: []tensor.Tensor{t}}
	return nil
}

// decode decodes element i of a tensor of strings or variants. ok is false for a variant that holds
// no tensor. The caller releases the result.
func decode(packed *tensor.Tensor, i int) (t tensor.Tensor, ok bool, err error) {
	if packed.DType() == tensor.Variant {
		v, ok := tensor.Values[tensor.VariantValue](packed)[i].Value.(tensor.EncodedVariant)
		if !ok || v.TypeName != tensorVariant || len(v.Tensors) != 1 {
			return tensor.Tensor{}, false, nil
		}
		return v.Tensors[0].Retain(), true, nil
	}
	var p pb.TensorProto
	if protomem.Unmarshal([]byte(tensor.Values[string](packed)[i]), &p) != nil {
		return t, false, status.InvalidArgumentf("Could not parse serialized proto")
	}
	if t, err = pbconv.TensorFromProto(&p); err != nil {
		return t, false, status.InvalidArgumentf("Could not construct tensor from proto")
	}
	return t, true, nil
}

// checkParts checks the ranks of the components of a sparse tensor in inputs 0 to 2.
func checkParts(ctx *kernel.Context) error {
	for i, part := range []string{"indices should be a matrix", "values should be a vector", "shape should be a vector"} {
		rank := 1
		if i == 0 {
			rank = 2
		}
		if s := ctx.Input(i).Shape(); len(s) != rank {
			return status.InvalidArgumentf("Input %s but received shape %v", part, s)
		}
	}
	return nil
}

func serialize(ctx *kernel.Context, encode encoder) error {
	if err := checkParts(ctx); err != nil {
		return err
	}
	out, err := ctx.Allocate(0, tensor.Shape{3})
	if err != nil {
		return err
	}
	for i := range 3 {
		if err := encode(out, i, ctx.Input(i).Retain()); err != nil {
			return err
		}
	}
	return nil
}

func serializeMany(ctx *kernel.Context, encode encoder) error {
	s, err := rowsInput(ctx)
	if err != nil {
		return err
	}
	// The size of the output comes from the dense shape, not from the number of elements. The
	// allocator bounds it.
	out, err := ctx.Allocate(0, tensor.Shape{s.shape[0], 3})
	if err != nil {
		return err
	}
	if err := s.checkOrder(); err != nil {
		return err
	}
	return s.eachRow(ctx.Context(), func(i int, row rowParts) error {
		for j, t := range row.tensors() {
			if err := encode(out, 3*i+j, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// rowsInput returns the sparse tensor in inputs 0 to 2, checked for iteration over its rows.
func rowsInput(ctx *kernel.Context) (*coo, error) {
	if err := checkParts(ctx); err != nil {
		return nil, err
	}
	if rank := ctx.Input(2).NumElements(); rank <= 1 {
		return nil, status.InvalidArgumentf("Rank of input SparseTensor should be > 1, but saw rank: %d", rank)
	}
	return makeCOO(ctx.Input(0), ctx.Input(1), intarg.Values(ctx.Input(2)))
}

// rowParts holds the components of one row, a sparse tensor with one dimension less.
type rowParts struct {
	indices, values tensor.Tensor
	shape           tensor.Shape
}

func (r rowParts) tensors() [3]tensor.Tensor {
	return [3]tensor.Tensor{r.indices, r.values, tensor.Vector(r.shape...)}
}

// eachRow calls f for each row, including empty ones, of a tensor with ordered indices, until ctx
// ends. f takes ownership of the components.
func (s *coo) eachRow(ctx context.Context, f func(i int, row rowParts) error) error {
	next := 0
	p := stepctx.Progress{Context: ctx, Each: 512}
	for i := range int(s.shape[0]) {
		if err := p.Pass(0); err != nil {
			return err
		}
		start := next
		for next < s.n && s.at(next)[0] == int64(i) {
			next++
		}
		row, err := s.row(start, next)
		if err != nil {
			return err
		}
		if err := f(i, row); err != nil {
			return err
		}
	}
	return nil
}

// row returns elements lo to hi without their first coordinate.
func (s *coo) row(lo, hi int) (row rowParts, err error) {
	row.shape = s.shape[1:]
	if row.indices, err = tensor.Alloc(tensor.Int64, tensor.Shape{int64(hi - lo), int64(s.rank - 1)}); err != nil {
		return row, err
	}
	ix := tensor.Values[int64](&row.indices)[:0]
	for i := lo; i < hi; i++ {
		ix = membudget.AppendAll(ix, s.at(i)[1:]...)
	}
	if row.values, err = tensor.Alloc(s.values.DType(), tensor.Shape{int64(hi - lo)}); err != nil {
		return row, err
	}
	from := s.values.Rows(lo, hi)
	gather(&row.values, &from, longs(hi-lo))
	return row, nil
}
