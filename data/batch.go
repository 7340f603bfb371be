package data

import (
	"context"
	"iter"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Batch makes one element of n: it stacks their tensors, which must have the same shapes, along a
// new first dimension. The last batch may be smaller.
func (d *Dataset) Batch(n int) *Dataset { return d.batch(n, false, false) }

// BatchDropRemainder is [Dataset.Batch] without a last batch that is smaller.
func (d *Dataset) BatchDropRemainder(n int) *Dataset { return d.batch(n, true, false) }

// PaddedBatch is [Dataset.Batch] for tensors of different sizes, such as sequences: it appends
// zeros, or empty strings, up to the longest of the batch in each dimension.
func (d *Dataset) PaddedBatch(n int) *Dataset { return d.batch(n, false, true) }

func (d *Dataset) batch(n int, drop, pad bool) *Dataset {
	same := func(p *Dataset) *Dataset { return p.batch(n, drop, pad) }
	var wrong error
	switch {
	case n < 1:
		wrong = status.InvalidArgumentf("data: batches of %d elements", n)
	case d.batched:
		wrong = status.FailedPreconditionf("data: Batch was called twice")
	}
	out := d.ordered(same, func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		if wrong != nil {
			return failed(wrong)
		}
		return func(yield func(Element, error) bool) {
			waiting := make([]Element, 0, n)
			for e, err := range d.read(ctx, epoch) {
				if err != nil {
					yield(nil, err)
					return
				}
				if waiting = append(waiting, e); len(waiting) < n {
					continue
				}
				b, err := stackElements(waiting, pad)
				if !yield(b, err) || err != nil {
					return
				}
				waiting = waiting[:0]
			}
			if len(waiting) > 0 && !drop {
				yield(stackElements(waiting, pad))
			}
		}
	}, func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
		switch {
		case wrong != nil:
			return p.fail(wrong)
		case pad:
			return p.padded(in, d.spec, n, types, shapes)
		}
		return op.BatchDatasetV2(p.s, in, p.number(n), op.Const(p.s, drop), types, shapes)
	})
	out.batched = true
	out.spec = make([]Spec, len(d.spec))
	for i, s := range d.spec {
		out.spec[i] = Spec{s.DType, withBatch(s.Shape)}
	}
	if d.count >= 0 && n > 0 {
		if out.count = d.count / n; !drop {
			out.count = (d.count + n - 1) / n
		}
	}
	return out
}

// padded adds the batches of [Dataset.PaddedBatch]. Every dimension has the size of the longest.
func (p *pipeline) padded(in op.Output, spec []Spec, n int, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
	var sizes, zeros []op.Output
	for i, s := range spec {
		if !s.Shape.RankKnown() {
			return p.fail(status.InvalidArgumentf("data: PaddedBatch on a worker needs the number of dimensions of tensor %d", i))
		}
		longest := make([]int64, s.Shape.Rank())
		for d := range longest {
			longest[d] = -1
		}
		zero, err := tensor.Zeros(types[i], nil)
		if err != nil {
			return p.fail(err)
		}
		sizes, zeros = append(sizes, op.Const(p.s, longest)), append(zeros, op.Const(p.s, zero))
	}
	return op.PaddedBatchDatasetV2(p.s, in, p.number(n), sizes, zeros, op.Const(p.s, false), shapes)
}

// stackElements stacks each tensor of several elements.
func stackElements(elements []Element, pad bool) (Element, error) {
	out := make(Element, len(elements[0]))
	column := make([]tensor.Tensor, len(elements))
	for i := range out {
		for j, e := range elements {
			if len(e) != len(out) {
				return nil, status.InvalidArgumentf("data: an element has %d tensors, another of the batch %d", len(e), len(out))
			}
			column[j] = e[i]
		}
		var err error
		if out[i], err = stack(column, pad); err != nil {
			return nil, status.Errorf(status.CodeOf(err), "data: tensor %d of the elements: %w", i, err)
		}
	}
	return out, nil
}

// stack stacks tensors along a new first dimension.
func stack(parts []tensor.Tensor, pad bool) (tensor.Tensor, error) {
	shape, same := append(tensor.Shape{}, parts[0].Shape()...), true
	for i := range parts {
		s := parts[i].Shape()
		switch {
		case parts[i].DType() != parts[0].DType():
			return tensor.Tensor{}, status.InvalidArgumentf("types %v and %v in one batch", parts[i].DType(), parts[0].DType())
		case s.Equal(shape):
			continue
		case !pad || len(s) != len(shape):
			return tensor.Tensor{}, status.InvalidArgumentf("shapes %v and %v in one batch; for sequences of different lengths use PaddedBatch", s, shape)
		}
		same = false
		for d := range shape {
			shape[d] = max(shape[d], s[d])
		}
	}
	out, err := tensor.Zeros(parts[0].DType(), append(tensor.Shape{int64(len(parts))}, shape...))
	if err != nil {
		return tensor.Tensor{}, err
	}
	for i := range parts {
		to := out.Rows(i, i+1)
		if same || parts[i].Shape().Equal(shape) {
			copyElements(&to, &parts[i], 0, 0, parts[i].NumElements())
			continue
		}
		copyCorner(&to, &parts[i], shape)
	}
	return out, nil
}

// copyElements copies n elements, from an index of one tensor to an index of another.
func copyElements(to, from *tensor.Tensor, at, start, n int) {
	if from.DType() == tensor.String {
		copy(tensor.Values[string](to)[at:at+n], tensor.Values[string](from)[start:start+n])
		return
	}
	size := from.DType().Size()
	copy(to.Bytes()[at*size:(at+n)*size], from.Bytes()[start*size:])
}

// copyCorner copies a tensor into the first rows, columns … of a larger one with the given shape.
func copyCorner(to, from *tensor.Tensor, shape tensor.Shape) {
	small := from.Shape()
	last := len(small) - 1
	run := int(small[last])
	if run == 0 {
		return
	}
	index := make([]int64, last)
	for start := 0; start < from.NumElements(); start += run {
		at := 0
		for d := range last {
			at = at*int(shape[d]) + int(index[d])
		}
		copyElements(to, from, at*int(shape[last]), start, run)
		for d := last - 1; d >= 0; d-- {
			if index[d]++; index[d] < small[d] {
				break
			}
			index[d] = 0
		}
	}
}
