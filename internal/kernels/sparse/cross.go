package sparse

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/featurecross"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in := []string{"indices: N * int64", "values: sparse_types", "shapes: N * int64", "dense_inputs: dense_types"}
	attrs := []string{"N: int >= 0", "sparse_types: list({int64, string}) >= 0", "dense_types: list({int64, string}) >= 0"}
	with := func(list []string, more ...string) []string { return slices.Concat(list, more) }
	shape := func(c *opdef.ShapeContext) error {
		copy(c.Out, []shapefn.Shape{shapefn.Of(shapefn.Unknown, 2), shapefn.Of(shapefn.Unknown), shapefn.Of(2)})
		return nil
	}
	out := func(values string) []string {
		return []string{"output_indices: int64", "output_values: " + values, "output_shape: int64"}
	}
	either := func(name, doc string, in []string, more []string, hash func(attrs opdef.Attrs, columns []*featurecross.Column) featurecross.Combination[int64]) {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: name, Doc: doc, In: in, Out: out("out_type"),
				Attrs: slices.Concat([]string{attrs[0], "hashed_output: bool", "num_buckets: int >= 0"}, more,
					attrs[1:], []string{"out_type: {int64, string}", "internal_type: {int64, string}"}),
				Shape: shape,
			},
			Kernels: kernel.ByType("out_type", kernel.Table{
				tensor.String: newCross(func(_ *kernel.Context, _ opdef.Attrs, columns []*featurecross.Column) (featurecross.Combination[string], error) {
					return featurecross.Join(columns, featurecross.Separator), nil
				}),
				tensor.Int64: newCross(func(_ *kernel.Context, attrs opdef.Attrs, columns []*featurecross.Column) (featurecross.Combination[int64], error) {
					return hash(attrs, columns), nil
				}),
			}),
		})
	}
	keyed := func(attrs opdef.Attrs, columns []*featurecross.Column) featurecross.Combination[int64] {
		return featurecross.Hash(columns, uint64(attrs.Int("hash_key")), int64(attrs.Int("num_buckets")))
	}
	combined := func(attrs opdef.Attrs, columns []*featurecross.Column) featurecross.Combination[int64] {
		return featurecross.CombinedHash(columns, int64(attrs.Int("num_buckets")))
	}
	const doc = "Computes the crosses of the features in each row, as strings or as hashes."
	const contrib = doc + " From tf.contrib.layers of TensorFlow 0.12 to 1.15."
	old := append(in[:3:3], "dense: dense_types")
	either("SparseCross", doc, in, []string{"hash_key: int"}, keyed)
	either("SparseFeatureCross", contrib, old, nil, combined)
	either("SparseFeatureCrossV2", contrib, old, []string{"hash_key: int"}, keyed)
	kernel.RegisterNew(opdef.Def{
		Name: "SparseCrossV2",
		Doc:  "Computes the crosses of the features in each row, as strings joined by a separator.",
		In:   with(in, "sep: string"), Out: out("string"), Attrs: attrs, Shape: shape,
	}, newCross(joinedWith))
	kernel.RegisterNew(opdef.Def{
		Name: "SparseCrossHashed",
		Doc:  "Computes the crosses of the features in each row, as hashes. Strong hashes use a key.",
		In:   with(in, "num_buckets: int64", "strong_hash: bool", "salt: int64"), Out: out("int64"), Attrs: attrs, Shape: shape,
	}, newCross(hashedWith))
}

func joinedWith(ctx *kernel.Context, _ opdef.Attrs, columns []*featurecross.Column) (featurecross.Combination[string], error) {
	sep := ctx.Input(ctx.NumInputs() - 1)
	if sep.Rank() != 0 {
		return nil, status.InvalidArgumentf("Input separator should be a scalar. Received: %v", sep)
	}
	return featurecross.Join(columns, tensor.Value[string](sep)), nil
}

func hashedWith(ctx *kernel.Context, _ opdef.Attrs, columns []*featurecross.Column) (featurecross.Combination[int64], error) {
	n := ctx.NumInputs()
	buckets, strong, salt := ctx.Input(n-3), ctx.Input(n-2), ctx.Input(n-1)
	switch {
	case salt.NumElements() != 2:
		return nil, status.InvalidArgumentf("Input \"salt\" must have length 2 but has length %d", salt.NumElements())
	case buckets.NumElements() != 1 || strong.NumElements() != 1:
		return nil, status.InvalidArgumentf("num_buckets and strong_hash must be scalars")
	}
	key := intarg.Values(salt)
	return featurecross.KeyedHash(columns, [2]uint64{uint64(key[0]), uint64(key[1])}, tensor.Value[bool](strong), intarg.Scalar(buckets)), nil
}

// crossed holds the inputs of a cross.
type crossed struct {
	indices, values, shapes, dense []*tensor.Tensor
	// Type of the features in SparseCross; Invalid if any type is allowed.
	internal tensor.DType
}

func readCrossed(ctx *kernel.Context, attrs opdef.Attrs) crossed {
	next := 0
	take := func(n int) []*tensor.Tensor {
		out := membudget.Make[*tensor.Tensor](n)
		for i := range out {
			out[i] = ctx.Input(next + i)
		}
		next += n
		return out
	}
	n := attrs.Int("N")
	return crossed{take(n), take(len(attrs.Types("sparse_types"))), take(n), take(len(attrs.Types("dense_types"))), attrs.Type("internal_type")}
}

// rows checks the inputs and returns their number of rows.
func (c *crossed) rows() (int64, error) {
	if len(c.values) != len(c.indices) {
		return 0, status.InvalidArgumentf("Expected %d input values, got %d", len(c.indices), len(c.values))
	}
	for i := range c.indices {
		if err := c.checkSparse(i); err != nil {
			return 0, err
		}
	}
	for i, t := range c.dense {
		switch {
		case c.internal == tensor.String && t.DType() == tensor.Int64:
			return 0, status.InvalidArgumentf("Dense inputs should be of internal type %d but received %d", c.internal, t.DType())
		case t.Rank() != 2:
			return 0, status.InvalidArgumentf("Dense inputs should be a matrix but received shape %v at position %d", t.Shape(), i)
		}
	}
	rows := int64(0)
	switch {
	case len(c.shapes) > 0:
		rows = intarg.Values(c.shapes[0])[0]
	case len(c.dense) > 0:
		rows = int64(c.dense[0].Dim(0))
	}
	for i, s := range c.shapes {
		if n := intarg.Values(s)[0]; n != rows {
			return 0, status.InvalidArgumentf("Expected batch size %d got %d at position %d", rows, n, i)
		}
	}
	for i, t := range c.dense {
		if n := int64(t.Dim(0)); n != rows {
			return 0, status.InvalidArgumentf("Expected batch size %d got %d at dense tensor %d", rows, n, i)
		}
	}
	return rows, nil
}

func (c *crossed) checkSparse(i int) error {
	indices, values, shape := c.indices[i], c.values[i], c.shapes[i]
	switch {
	case indices.Rank() != 2:
		return status.InvalidArgumentf("Input indices should be a matrix but received shape %v at position %d", indices.Shape(), i)
	case indices.Dim(1) != 2:
		return status.InvalidArgumentf("Expected D2 of index to be 2 got %d at position %d", indices.Dim(1), i)
	case c.internal == tensor.String && values.DType() == tensor.Int64:
		return status.InvalidArgumentf("Input values should be of internal type %d but received %d", c.internal, values.DType())
	case values.Rank() != 1:
		return status.InvalidArgumentf("Input values should be a vector but received shape %v at position %d", values.Shape(), i)
	case indices.Dim(0) != values.Dim(0):
		return status.InvalidArgumentf("Expected size of values to be %d got %d at position %d", indices.Dim(0), values.Dim(0), i)
	case shape.Rank() != 1:
		return status.InvalidArgumentf("Input shapes should be a vector but received shape %v at position %d", shape.Shape(), i)
	case shape.NumElements() != 2:
		return status.InvalidArgumentf("shape should imply a 2D tensor, but got %v at position %d", shape.Shape(), i)
	}
	return nil
}

// columns returns the features, the sparse ones first.
func (c *crossed) columns(rows int64) (out []*featurecross.Column, err error) {
	for i, ix := range c.indices {
		column, err := featurecross.Sparse(ix, c.values[i], rows)
		if err != nil {
			return nil, err
		}
		out = append(out, column)
	}
	for _, t := range c.dense {
		out = append(out, featurecross.Dense(t))
	}
	return out, nil
}

func newCross[T tensor.Elem](combination func(*kernel.Context, opdef.Attrs, []*featurecross.Column) (featurecross.Combination[T], error)) kernel.New {
	return func(k *kernel.Construction) (kernel.Kernel, error) {
		return kernel.Func(func(ctx *kernel.Context) error {
			in := readCrossed(ctx, k.Attrs)
			rows, err := in.rows()
			if err != nil {
				return err
			}
			columns, err := in.columns(rows)
			if err != nil {
				return err
			}
			combine, err := combination(ctx, k.Attrs, columns)
			if err != nil {
				return err
			}
			return putCrossed(ctx, columns, int(rows), combine)
		}), nil
	}
}

// putCrossed sets the outputs to the sparse tensor of the combinations.
func putCrossed[T tensor.Elem](ctx *kernel.Context, columns []*featurecross.Column, rows int, combine featurecross.Combination[T]) error {
	splits := membudget.Make[int64](rows + 1)
	if len(columns) > 0 {
		var err error
		if splits, err = featurecross.Splits(ctx.Context(), columns, rows); err != nil {
			return err
		}
	}
	out, err := ctx.Allocate(1, tensor.Shape{splits[rows]})
	if err != nil {
		return err
	}
	ix, err := ctx.Allocate(0, tensor.Shape{splits[rows], 2})
	if err != nil {
		return err
	}
	vals, at, widest := tensor.Values[T](out), tensor.Values[int64](ix), int64(0)
	for r := range rows {
		n := splits[r+1] - splits[r]
		if err := featurecross.Row(ctx.Context(), columns, r, vals[splits[r]:splits[r+1]], combine); err != nil {
			return err
		}
		for i := range n {
			at[0], at[1], at = int64(r), i, at[2:]
		}
		widest = max(widest, n)
	}
	return putVector(ctx, 2, []int64{int64(rows), widest})
}
