package data

import (
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in := []string{"input_dataset: variant", "batch_size: int64", "padded_shapes: N * int64", "padding_values: Toutput_types"}
	doc := "Creates a dataset that batches and pads the elements of its input."
	attrs := []string{"Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1", "N: int >= 1", metadata}
	register(opdef.Def{Name: "PaddedBatchDataset", Doc: doc, In: in[:4:4], Attrs: attrs}, newPaddedBatch)
	register(opdef.Def{
		Name: "PaddedBatchDatasetV2", Doc: doc, In: append(in, "drop_remainder: bool"),
		Attrs: append([]string{"parallel_copy: bool = false"}, attrs...),
	}, newPaddedBatch)
}

// padding is the parameters for padding the components of a batch.
type padding struct {
	// padded shapes; unknown dimensions are those of the largest element
	shapes []tensor.PartialShape
	values element
}

func newPaddedBatch(n *node, ctx *kernel.Context) (dataset, error) {
	s, err := n.stageOf(ctx)
	if err != nil {
		return nil, err
	}
	d := &batchDataset{stage: s}
	if err := d.parse(n, ctx); err != nil {
		return nil, err
	}
	p, err := newPadding(n, ctx, s.input.elementSpec().types)
	d.join = p.join
	return d, err
}

func newPadding(n *node, ctx *kernel.Context, types []tensor.DType) (*padding, error) {
	sizes, err := n.inputs(ctx, "padded_shapes")
	if err != nil {
		return nil, err
	}
	p := &padding{}
	if p.values, err = n.inputs(ctx, "padding_values"); err != nil {
		return nil, err
	}
	if len(sizes) != len(types) {
		return nil, status.InvalidArgumentf("Number of padded shapes (%d) must match the number of components in the input "+
			"dataset's elements (%d)", len(sizes), len(types))
	}
	for i := range sizes {
		if sizes[i].Rank() != 1 {
			return nil, status.InvalidArgumentf("All padded shapes must be vectors")
		}
		dims := tensor.Values[int64](&sizes[i])
		for _, n := range dims {
			if n < tensor.UnknownDim {
				return nil, status.InvalidArgumentf("Expected shape dimensions to be non-negative or -1, got %d", n)
			}
		}
		p.shapes = append(p.shapes, tensor.MakePartial(dims...))
	}
	if len(p.values) != len(types) {
		return nil, status.InvalidArgumentf("Number of padding values (%d) must match the number of components in the input "+
			"dataset's elements (%d)", len(p.values), len(types))
	}
	for i := range p.values {
		switch v := &p.values[i]; {
		case v.Rank() != 0:
			return nil, status.InvalidArgumentf("All padding values must be scalars")
		case v.DType() != types[i]:
			return nil, status.InvalidArgumentf("Mismatched type between padding value %d and input dataset's component %d: %v vs. %v",
				i, i, v.DType(), types[i])
		}
	}
	return p, nil
}

func (p *padding) join(rows []element, _ int64) (element, error) {
	out := element(membudget.Make[tensor.Tensor](len(p.shapes)))
	for i := range out {
		var err error
		if out[i], err = p.component(rows, i); err != nil {
			out.release()
			return nil, err
		}
	}
	return out, nil
}

func (p *padding) component(rows []element, i int) (out tensor.Tensor, err error) {
	dims, err := p.dims(rows, i)
	if err != nil {
		return out, err
	}
	if out, err = tensor.Alloc(p.values[i].DType(), dims); err != nil || out.NumElements() == 0 {
		return out, err
	}
	all := strided.Of(dims)
	strided.Copy(&out, all, &p.values[i], strided.Of(nil).Broadcast(all.Dims))
	for r, row := range rows {
		if row[i].NumElements() == 0 {
			continue
		}
		v := strided.Of(dims)
		v.Slice(0, r, 1, 1)
		v = v.Drop(0)
		for axis, n := range row[i].Shape() {
			v.Slice(axis, 0, int(n), 1)
		}
		strided.Copy(&out, v, &row[i], strided.Of(row[i].Shape()))
	}
	return out, nil
}

// dims returns the shape of a component of the batch.
func (p *padding) dims(rows []element, i int) (tensor.Shape, error) {
	want := p.shapes[i]
	dims := append(tensor.Shape{int64(len(rows))}, want.Dims()...)
	for _, row := range rows {
		have := row[i].Shape()
		if len(have) != want.Rank() {
			return nil, status.InvalidArgumentf("All elements in a batch must have the same rank as the padded shape for component%d: "+
				"expected rank %d but got element with rank %d", i, want.Rank(), len(have))
		}
		for axis, n := range have {
			switch {
			case want.Dim(axis) == tensor.UnknownDim:
				dims[1+axis] = max(dims[1+axis], n)
			case n > want.Dim(axis):
				return nil, status.DataLossf("Attempted to pad to a smaller size than the input element.")
			}
		}
	}
	for axis := range dims {
		dims[axis] = max(dims[axis], 0)
	}
	return dims, nil
}
