package data

import (
	"context"
	"iter"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// An Element is a list of tensors that belong together: the inputs of a model and, as the last one,
// the label. After [Dataset.Batch] the first dimension of each is the batch.
type Element = []tensor.Tensor

// Spec is the type and the shape of one tensor of the elements.
type Spec struct {
	DType tensor.DType
	Shape tensor.PartialShape
}

// Dataset is a sequence of elements that can be read any number of times. It implements
// [train.Dataset] after [Dataset.Batch]. It may be used concurrently.
type Dataset struct {
	spec    []Spec
	count   int // elements; unknown if negative
	batched bool
	indexed *indexed // nil if the elements are not rows of tensors in memory
	why     string   // why not: the function that made the data set
	read    func(ctx context.Context, epoch int) iter.Seq2[Element, error]
	tfdata  func(p *pipeline) op.Output // adds the same to a graph; nil if it cannot
	program string                      // why not, and what to use instead
}

// unknown is the count of a data set whose number of elements is not known.
const unknown = -1

// New returns the data set of a function that reads the elements of an epoch. An error must be the
// last pair. count is the number of elements, or negative if it is not known.
func New(spec []Spec, count int, read func(ctx context.Context, epoch int) iter.Seq2[Element, error]) *Dataset {
	return &Dataset{
		spec: spec, count: count, read: read, why: "a file or a function of the program",
		program: "New reads the elements with a function of the program; begin with FromSlices, TextLines, TFRecord or ImageFolder",
	}
}

// source is New for what a graph can read, too.
func source(
	spec []Spec, count int, read func(ctx context.Context, epoch int) iter.Seq2[Element, error], tfdata func(p *pipeline) op.Output,
) *Dataset {
	d := New(spec, count, read)
	d.tfdata = tfdata
	return d
}

// FromSlices returns the data set of the rows of columns: Go slices, or anything else that
// [tensor.New] accepts, with the same first dimension. The columns must not be modified afterwards.
func FromSlices(columns ...any) (*Dataset, error) {
	if len(columns) == 0 {
		return nil, status.InvalidArgumentf("data: no columns")
	}
	tensors := make([]tensor.Tensor, len(columns))
	d := &Dataset{count: unknown}
	for i, c := range columns {
		t, err := tensor.New(c)
		if err != nil {
			return nil, status.Errorf(status.CodeOf(err), "data: column %d: %w", i, err)
		}
		if t.Rank() == 0 {
			return nil, status.InvalidArgumentf("data: column %d is a scalar, want one row per element", i)
		}
		if t.Dim(0) == 0 {
			return nil, status.InvalidArgumentf("data: column %d has no rows", i)
		}
		if n := t.Dim(0); d.count != unknown && n != d.count {
			return nil, status.InvalidArgumentf("data: column %d has %d rows, column 0 has %d", i, n, d.count)
		}
		d.count, tensors[i] = t.Dim(0), t
		d.spec = append(d.spec, Spec{t.DType(), t.Shape()[1:].Partial()})
	}
	d.indexed = &indexed{columns: tensors, count: d.count, order: func(positions *Dataset) *Dataset { return positions }}
	d.tfdata = func(p *pipeline) op.Output {
		_, shapes := components(d.spec)
		return p.rows(tensors, shapes)
	}
	d.read = func(context.Context, int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			for i := range d.count {
				e := make(Element, len(tensors))
				for j := range tensors {
					row := tensors[j].Rows(i, i+1)
					var err error
					if e[j], err = row.WithShape(tensors[j].Shape()[1:]); err != nil {
						yield(nil, err)
						return
					}
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	return d, nil
}

// Spec returns the types and shapes of the tensors of an element.
func (d *Dataset) Spec() []Spec { return d.spec }

// Len returns the number of elements, and false if it is not known before they are read.
func (d *Dataset) Len() (int, bool) { return max(d.count, 0), d.count >= 0 }

// Elements yields the elements of an epoch. An error is the last pair.
func (d *Dataset) Elements(ctx context.Context, epoch int) iter.Seq2[Element, error] {
	return func(yield func(Element, error) bool) {
		for e, err := range d.read(ctx, epoch) {
			if err == nil {
				err = ctx.Err()
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil { // a source may end early without an error
			yield(nil, err)
		}
	}
}

// Types implements [train.Dataset].
func (d *Dataset) Types() ([]tensor.DType, []tensor.PartialShape) {
	types, shapes := components(d.spec)
	if !d.batched {
		for i := range shapes {
			shapes[i] = withBatch(shapes[i])
		}
	}
	return types, shapes
}

// Batches implements [train.Dataset]. It yields an error if [Dataset.Batch] was not called.
func (d *Dataset) Batches(ctx context.Context, epoch int) iter.Seq2[[]tensor.Tensor, error] {
	if !d.batched {
		return failed(errNotBatched())
	}
	return d.Elements(ctx, epoch)
}

func errNotBatched() error {
	return status.FailedPreconditionf("data: the data set has single elements; call Batch")
}

// NumBatches returns the number of batches; 0 if it is not known.
func (d *Dataset) NumBatches() int { return max(d.count, 0) }

// failed returns a sequence of an error alone.
func failed(err error) iter.Seq2[Element, error] {
	return func(yield func(Element, error) bool) { yield(nil, err) }
}

// withBatch returns a shape with the batch, of unknown size, in front.
func withBatch(p tensor.PartialShape) tensor.PartialShape {
	if !p.RankKnown() {
		return p
	}
	return tensor.MakePartial(append([]int64{-1}, p.Dims()...)...)
}

// with returns a copy of d that reads its elements with another function, which changes them, and
// in a graph with another operation. name is that of the function.
func (d *Dataset) with(name string, read func(ctx context.Context, epoch int) iter.Seq2[Element, error], add stage) *Dataset {
	out := *d
	out.read, out.indexed, out.tfdata = read, nil, nil
	if d.indexed != nil {
		out.why = name
	}
	switch {
	case d.tfdata == nil:
	case add == nil:
		out.program = name + " calls a function of the program; make the function of operations (MapOps), or call ParseExamples"
	default:
		out.tfdata = func(p *pipeline) op.Output {
			in := d.tfdata(p)
			if in.Node == nil { // a build error
				return in
			}
			types, shapes := components(out.spec)
			return add(p, in, types, shapes)
		}
	}
	return &out
}

// ordered is with for a function that only chooses, orders and batches elements. same is the same
// function of another data set.
func (d *Dataset) ordered(
	same func(*Dataset) *Dataset, read func(ctx context.Context, epoch int) iter.Seq2[Element, error], add stage,
) *Dataset {
	out := d.with("", read, add)
	if in := d.indexed; in != nil {
		out.indexed = &indexed{columns: in.columns, count: in.count, order: func(p *Dataset) *Dataset { return same(in.order(p)) }}
	}
	return out
}
