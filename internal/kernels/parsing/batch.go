package parsing

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// batch is a number of records on their way into tensors.
type batch struct {
	ctx     *kernel.Context
	records []string
	names   names
	single  bool // there is one record, and the results have no dimension of records
	// for ParseSingleSequenceExample, which is stricter and words errors in its own way
	sole  bool
	words wording
}

// grain is how many bytes of records are worth handing to another core.
const grain = 1 << 15

// each calls f for every record, on several cores if there is enough to do, and returns the error
// of the first record that has one.
func (b *batch) each(f func(row int) error) error {
	size, n := 0, len(b.records)
	for _, r := range b.records {
		size += len(r)
	}
	step := max(1, grain*n/max(size, 1))
	errs := make([]error, parallel.Blocks(n, step))
	parallel.For(n, step, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			if err := f(row); err != nil {
				errs[lo/step] = err
				return
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// span is where a feature lies in a record.
type span struct {
	text    message
	present bool
}

// found is where the features of an index lie in the records of a batch.
type found struct {
	*index
	rows  int
	spans []span // by number of the key and then by record
	// skipEmpty takes a feature without a value for one that is not there.
	skipEmpty bool
}

func newFound(x *index, rows int) *found {
	return &found{index: x, rows: rows, spans: make([]span, len(x.slots)*rows)}
}

// of returns where a feature lies in each record.
func (f *found) of(key string) []span {
	slot := f.slots[key]
	return f.spans[slot*f.rows : (slot+1)*f.rows]
}

// scan finds features in one map of a record. Of several with one key the last counts.
func (f *found) scan(features message, row int) bool {
	for features != "" {
		entry, ok := features.partItem()
		if !ok {
			return false
		}
		key, value, ok := entry.entry()
		if !ok {
			return false
		}
		if slot, ok := f.slots[key]; ok && (value != "" || !f.skipEmpty) {
			f.spans[slot*f.rows+row] = span{value, true}
		}
	}
	return true
}

// scan finds features in all records: those of maps[i] in field i+1 of a record.
func (b *batch) scan(maps ...*found) error {
	return b.each(func(row int) error {
		m := message(b.records[row])
		for m != "" {
			t, ok := m.varint()
			if ok && t&7 == wireBytes {
				var features message
				features, ok = m.part()
				if field := int(min(t>>3, 1<<29)); ok && 1 <= field && field <= len(maps) {
					ok = maps[field-1].scan(features, row)
				}
			} else if ok {
				ok = m.skip(t)
			}
			if !ok {
				return b.words.record(row, b.records[row])
			}
		}
		return nil
	})
}

// list returns the values of a feature in a record and their number.
func (b *batch) list(f *feature, row int, s span) (list message, n int, err error) {
	if s.text == "" {
		return "", 0, nil
	}
	dtype, list, ok, err := open(s.text)
	switch {
	case err != nil:
		return "", 0, err
	case ok && dtype != f.dtype:
		return "", 0, b.words.mismatch(f, row, dtype)
	case ok:
		n, ok = f.set().count(list)
	}
	if !ok {
		err = b.words.unreadable(f, row)
	}
	return list, n, err
}

// read sets the elements of out from at on to n values.
func (b *batch) read(f *feature, row int, list message, out *tensor.Tensor, at int) error {
	if f.set().read(out, at, list) {
		return nil
	}
	return b.words.unreadable(f, row)
}

// shape puts the dimension of records before dims, if there is one.
func (b *batch) shape(dims ...int64) tensor.Shape {
	if b.single {
		return slices.Clone(dims)
	}
	return slices.Concat(tensor.Shape{int64(len(b.records))}, dims)
}

// dense makes output i the values of a dense feature.
func (b *batch) dense(i int, f *feature, spans []span) error {
	if f.varying {
		return b.varying(i, f, spans)
	}
	out, err := b.ctx.Allocate(i, b.shape(f.row...))
	if err != nil {
		return err
	}
	return b.each(func(row int) error {
		at := row * f.stride
		if !spans[row].present {
			if f.fill.NumElements() == 0 {
				return b.words.missing(f, row)
			}
			return copyElements(out, at, f.fill)
		}
		list, n, err := b.list(f, row, spans[row])
		switch {
		case err != nil:
			return err
		case n != f.stride:
			return b.words.count(f, row, n)
		}
		return b.read(f, row, list, out, at)
	})
}

// copyElements sets the elements of dst from at on to those of src.
func copyElements(dst *tensor.Tensor, at int, src *tensor.Tensor) error {
	if src.DType() == tensor.String {
		copy(tensor.Values[string](dst)[at:], tensor.Values[string](src))
		return nil
	}
	copy(dst.Bytes()[at*dst.DType().Size():], src.Bytes())
	return nil
}

// lists are the values of a feature in all records: in each the list of them and where they begin
// in the order of all.
type lists struct {
	of    []message
	start []int // one more than records
	most  int   // in one record
}

// lists finds the values of a feature in all records.
func (b *batch) lists(f *feature, spans []span) (*lists, error) {
	l := &lists{of: make([]message, len(spans)), start: make([]int, len(spans)+1)}
	err := b.each(func(row int) (err error) {
		l.of[row], l.start[row+1], err = b.list(f, row, spans[row])
		return err
	})
	for row := range spans {
		l.most = max(l.most, l.start[row+1])
		l.start[row+1] += l.start[row]
	}
	return l, err
}

func (l *lists) total() int { return l.start[len(l.start)-1] }

// flat makes output i a vector of the values in all records.
func (b *batch) flat(i int, f *feature, l *lists) error {
	out, err := b.ctx.Allocate(i, tensor.Shape{int64(l.total())})
	if err != nil {
		return err
	}
	return b.each(func(row int) error { return b.read(f, row, l.of[row], out, l.start[row]) })
}

// varying makes output i the values of a feature of any number of rows, filled up to the most of
// them.
func (b *batch) varying(i int, f *feature, spans []span) error {
	l, err := b.lists(f, spans)
	if err != nil {
		return err
	}
	stride := max(f.stride, 1)
	for row := range spans {
		if n := l.start[row+1] - l.start[row]; n%stride != 0 {
			return b.words.count(f, row, n)
		}
	}
	out, err := b.ctx.Allocate(i, b.shape(slices.Concat([]int64{int64(l.most / stride)}, f.row)...))
	if err != nil {
		return err
	}
	return b.each(func(row int) error {
		at, n := row*l.most, l.start[row+1]-l.start[row]
		if err := b.read(f, row, l.of[row], out, at); err != nil {
			return err
		}
		if n < l.most {
			f.set().fill(out, at+n, at+l.most, f.fill)
		}
		return nil
	})
}

// sparse makes outputs the indices, values and shape of a sparse feature.
func (b *batch) sparse(indices, values, shape int, f *feature, spans []span) error {
	l, err := b.lists(f, spans)
	if err != nil {
		return err
	}
	dims := b.shape(int64(l.most))
	if err := putInts(b.ctx, shape, dims); err != nil {
		return err
	}
	ix, err := b.ctx.Allocate(indices, tensor.Shape{int64(l.total()), int64(len(dims))})
	if err != nil {
		return err
	}
	at := tensor.Values[int64](ix)
	for row := range spans {
		for k := range l.start[row+1] - l.start[row] {
			if !b.single {
				at[0], at = int64(row), at[1:]
			}
			at[0], at = int64(k), at[1:]
		}
	}
	return b.flat(values, f, l)
}

// ragged makes outputs the values and the row splits of a ragged feature. One record alone has no
// splits.
func (b *batch) ragged(values, splits int, f *feature, spans []span) error {
	l, err := b.lists(f, spans)
	if err != nil {
		return err
	}
	start := l.start
	if b.single {
		start = nil
	}
	if err := putInts(b.ctx, splits, widened(start)); err != nil {
		return err
	}
	return b.flat(values, f, l)
}

func widened(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

// putInts makes output i a vector of integers.
func putInts(ctx *kernel.Context, i int, vals []int64) error {
	out, err := ctx.Allocate(i, tensor.Shape{int64(len(vals))})
	if err == nil {
		intarg.Set(out, vals)
	}
	return err
}

// features makes the outputs from the given one on the features of one map: of the sparse ones all
// indices, then all values, then all shapes; the dense ones; of the ragged ones all values, then
// all splits. It returns the number after the last.
func (b *batch) features(out int, w *wanted, f *found) (int, error) {
	n := len(w.sparse)
	for i := range w.sparse {
		if err := b.sparse(out+i, out+n+i, out+2*n+i, &w.sparse[i], f.of(w.sparse[i].key)); err != nil {
			return 0, err
		}
	}
	out += 3 * n
	for i := range w.dense {
		if err := b.dense(out, &w.dense[i], f.of(w.dense[i].key)); err != nil {
			return 0, err
		}
		out++
	}
	n = len(w.ragged)
	for i := range w.ragged {
		if err := b.ragged(out+i, out+n+i, &w.ragged[i], f.of(w.ragged[i].key)); err != nil {
			return 0, err
		}
	}
	return out + 2*n, nil
}
