package parsing

import (
	"slices"
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// step holds the values of one step of a feature list.
type step struct {
	list message
	n    int
}

// sequences holds the steps of a feature list in all records.
type sequences struct {
	of [][]step
	// start of each record's values in the concatenation, and the total
	start    []int
	steps    int // number of steps in all records
	longest  int // maximum number of steps in a record
	widest   int // maximum number of values in a step
	greatest int // maximum number of values in a record
}

// steps finds the values of a feature list in all records.
func (b *batch) steps(f *feature, spans []span) (*sequences, error) {
	s := &sequences{of: membudget.Make[[]step](len(spans)), start: membudget.Make[int](len(spans) + 1)}
	err := b.each(func(row int) error {
		for m := spans[row].text; m != ""; {
			feature, ok := m.partItem()
			if !ok {
				return status.InvalidArgumentf("Error in sequence feature %s in example %s", f.key, b.names.of(row))
			}
			list, n, err := b.step(f, row, len(s.of[row]), feature)
			if err != nil {
				return err
			}
			s.of[row] = membudget.Append(s.of[row], step{list, n})
			s.start[row+1] += n
		}
		// Append asks for long lists only, and there may be a short one for each record.
		membudget.MustTake(int64(2*len(s.of[row])) * int64(unsafe.Sizeof(step{})))
		return nil
	})
	for row, steps := range s.of {
		s.steps += len(steps)
		s.longest, s.greatest = max(s.longest, len(steps)), max(s.greatest, s.start[row+1])
		s.start[row+1] += s.start[row]
		for _, t := range steps {
			s.widest = max(s.widest, t.n)
		}
	}
	return s, err
}

func (s *sequences) total() int { return s.start[len(s.start)-1] }

// step returns the values of step t of a feature list.
func (b *batch) step(f *feature, row, t int, m message) (list message, n int, err error) {
	if m == "" && (!b.sole || !f.shape.RankKnown()) {
		return "", 0, nil
	}
	dtype, list, ok, _ := open(m)
	if ok && dtype == f.dtype {
		if n, ok = f.set().count(list); ok {
			return list, n, nil
		}
	}
	return "", 0, status.InvalidArgumentf("Name: %s, Feature list: %s, Index: %d.  Data types don't match. Expected type: %v",
		b.names.of(row), f.key, t, f.dtype)
}

// values copies the values of all records to out, those of each record from its start on.
func (b *batch) values(out *tensor.Tensor, f *feature, s *sequences, start func(row int) int) error {
	return b.each(func(row int) error {
		at := start(row)
		for _, t := range s.of[row] {
			if err := b.read(f, row, t.list, out, at); err != nil {
				return err
			}
			at += t.n
		}
		return nil
	})
}

// flatSteps sets output i to a vector of all values.
func (b *batch) flatSteps(i int, f *feature, s *sequences) error {
	out, err := b.ctx.Allocate(i, tensor.Shape{int64(s.total())})
	if err != nil {
		return err
	}
	return b.values(out, f, s, func(row int) int { return s.start[row] })
}

// sparseList sets outputs to the indices, values and shape of a sparse feature list.
func (b *batch) sparseList(indices, values, shape int, f *feature, spans []span) error {
	s, err := b.steps(f, spans)
	if err != nil {
		return err
	}
	dims := b.shape(int64(s.longest), int64(s.widest))
	if err := putInts(b.ctx, shape, dims); err != nil {
		return err
	}
	ix, err := b.ctx.Allocate(indices, tensor.Shape{int64(s.total()), int64(len(dims))})
	if err != nil {
		return err
	}
	at := tensor.Values[int64](ix)
	for row, steps := range s.of {
		for t, values := range steps {
			for k := range values.n {
				if !b.single {
					at[0], at = int64(row), at[1:]
				}
				at[0], at[1], at = int64(t), int64(k), at[2:]
			}
		}
	}
	return b.flatSteps(values, f, s)
}

// denseList sets output i to the values of a dense feature list, zero-padded to the longest. If
// lengths is not negative, it sets that output to the number of steps in each record.
func (b *batch) denseList(i, lengths int, f *feature, spans []span) error {
	s, err := b.steps(f, spans)
	if err != nil {
		return err
	}
	if err := b.checkDenseList(f, s, spans); err != nil {
		return err
	}
	//sizedmake:ok dimensions
	out, err := b.ctx.AllocateZeros(i, b.shape(slices.Concat([]int64{int64(s.longest)}, f.row)...))
	if err != nil {
		return err
	}
	if lengths >= 0 {
		n, err := b.ctx.Allocate(lengths, b.shape())
		if err != nil {
			return err
		}
		for row, steps := range s.of {
			tensor.Values[int64](n)[row] = int64(len(steps))
		}
	}
	return b.values(out, f, s, func(row int) int { return row * s.longest * f.stride })
}

func (b *batch) checkDenseList(f *feature, s *sequences, spans []span) error {
	if f.stride > 0 && s.greatest%f.stride != 0 && !b.sole {
		return status.InvalidArgumentf("Feature list '%s' has an unexpected number of values.  Total values size: %d is not consistent with output shape: %v",
			//sizedmake:ok dimensions
			f.key, s.greatest, tensor.MakePartial(slices.Concat([]int64{tensor.UnknownDim}, f.row)...))
	}
	for row, steps := range s.of {
		if !spans[row].present && !f.optional {
			return status.InvalidArgumentf("Name: %s, Feature list '%s' is required but could not be found.  Did you mean to include it in "+
				"feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?", b.names.of(row), f.key)
		}
		for t, values := range steps {
			if values.n != f.stride {
				return b.wrongStep(f, row, t, values.n)
			}
		}
	}
	return nil
}

// wrongStep returns the error for step t of a dense list with n values.
func (b *batch) wrongStep(f *feature, row, t, n int) error {
	if b.sole {
		return wrongCount(f, b.names.of(row), t, n)
	}
	return status.InvalidArgumentf("Name: %s, Key: %s, Index: %d.  Number of values != expected.  values size: %d but output shape: %v",
		b.names.of(row), f.key, t, n, f.shape)
}

// raggedList sets outputs to the values of a ragged feature list, the splits of records into steps,
// and the splits of steps into values.
func (b *batch) raggedList(values, outer, inner int, f *feature, spans []span) error {
	s, err := b.steps(f, spans)
	if err != nil {
		return err
	}
	records, steps := []int64{0}, []int64{0}
	n := 0
	for _, of := range s.of {
		for _, t := range of {
			n += t.n
			steps = membudget.Append(steps, int64(n))
		}
		records = membudget.Append(records, int64(len(steps)-1))
	}
	if b.single {
		records = nil
	}
	if err := putInts(b.ctx, outer, records); err != nil {
		return err
	}
	if err := putInts(b.ctx, inner, steps); err != nil {
		return err
	}
	return b.flatSteps(values, f, s)
}

// featureLists sets the outputs, from index out on, to the feature lists of all records, in the
// order of features. If there are outputs for them, the lengths of all dense lists follow their
// values.
func (b *batch) featureLists(out int, w *wanted, f *found, lengths bool) error {
	n := len(w.sparse)
	for i := range w.sparse {
		if err := b.sparseList(out+i, out+n+i, out+2*n+i, &w.sparse[i], f.of(w.sparse[i].key)); err != nil {
			return err
		}
	}
	out += 3 * n
	n = len(w.dense)
	for i := range w.dense {
		length := -1
		if lengths {
			length = out + n + i
		}
		if err := b.denseList(out+i, length, &w.dense[i], f.of(w.dense[i].key)); err != nil {
			return err
		}
	}
	out += 2 * n
	n = len(w.ragged)
	for i := range w.ragged {
		if err := b.raggedList(out+i, out+n+i, out+2*n+i, &w.ragged[i], f.of(w.ragged[i].key)); err != nil {
			return err
		}
	}
	return nil
}
