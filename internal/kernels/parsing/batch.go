package parsing

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// batch is a batch of records being parsed to tensors.
type batch struct {
	ctx     *kernel.Context
	records []string
	names   names
	single  bool // whether there is a single record; results then have no batch dimension
	// whether the operation is ParseSingleSequenceExample, which is stricter and has its own error
	// texts
	sole  bool
	words wording
}

// grain is the minimum number of record bytes per parallel block.
const grain = 1 << 15

// each calls f for every record, in parallel if there is enough work, and returns the error of the
// first record that fails, or that of the step if it ends.
func (b *batch) each(f func(row int) error) error {
	size, n := 0, len(b.records)
	for _, r := range b.records {
		size += len(r)
	}
	step := max(1, grain*n/max(size, 1))
	errs := membudget.Make[error](parallel.Blocks(n, step))
	parallel.For(n, step, func(lo, hi int) {
		at := progress(b.ctx.Context())
		for row := lo; row < hi; row++ {
			err := at.Pass(len(b.records[row]))
			if err == nil {
				err = f(row)
			}
			if err != nil {
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

// span is the position of a feature in a record.
type span struct {
	text    message
	present bool
}

// found holds the positions of indexed features in the records of a batch.
type found struct {
	*index
	rows  int
	spans []span // by key number, then by record
	// whether a feature without a value counts as missing
	skipEmpty bool
}

func newFound(x *index, rows int) *found {
	return &found{index: x, rows: rows, spans: membudget.Make[span](len(x.slots) * rows)}
}

// of returns the position of a feature in each record.
func (f *found) of(key string) []span {
	slot := f.slots[key]
	return f.spans[slot*f.rows : (slot+1)*f.rows]
}

// scan finds features in one map of a record. If a key is repeated, the last feature counts.
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

// scan finds features in all records. Field i+1 of a record is searched for the keys of maps[i].
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

// read sets the elements of out from index at on to n values.
func (b *batch) read(f *feature, row int, list message, out *tensor.Tensor, at int) error {
	if f.set().read(out, at, list) {
		return nil
	}
	return b.words.unreadable(f, row)
}

// shape returns dims preceded by the batch dimension, if there is one.
func (b *batch) shape(dims ...int64) tensor.Shape {
	if b.single {
		//sizedmake:ok dimensions
		return slices.Clone(dims)
	}
	//sizedmake:ok dimensions
	return slices.Concat(tensor.Shape{int64(len(b.records))}, dims)
}

// dense sets output i to the values of a dense feature.
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

// copyElements copies src to the elements of dst from index at on.
func copyElements(dst *tensor.Tensor, at int, src *tensor.Tensor) error {
	if src.DType() == tensor.String {
		copy(tensor.Values[string](dst)[at:], tensor.Values[string](src))
		return nil
	}
	bulk.Copy(dst.Bytes()[at*dst.DType().Size():], src.Bytes())
	return nil
}

// lists holds the values of a feature in all records: the list of each record and its start in the
// concatenation of all lists.
type lists struct {
	of    []message
	start []int // start of each record's values, and the total
	most  int   // maximum number of values in one record
}

// lists finds the values of a feature in all records.
func (b *batch) lists(f *feature, spans []span) (*lists, error) {
	l := &lists{of: membudget.Make[message](len(spans)), start: membudget.Make[int](len(spans) + 1)}
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

// flat sets output i to a vector of the values in all records.
func (b *batch) flat(i int, f *feature, l *lists) error {
	out, err := b.ctx.Allocate(i, tensor.Shape{int64(l.total())})
	if err != nil {
		return err
	}
	return b.each(func(row int) error { return b.read(f, row, l.of[row], out, l.start[row]) })
}

// varying sets output i to the values of a feature with a variable number of rows, padded to the
// maximum.
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
	//sizedmake:ok dimensions
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

// sparse sets outputs to the indices, values and shape of a sparse feature.
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

// ragged sets outputs to the values and row splits of a ragged feature. A single record has no
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
	out := membudget.Make[int64](len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

// putInts sets output i to a vector of integers.
func putInts(ctx *kernel.Context, i int, vals []int64) error {
	out, err := ctx.Allocate(i, tensor.Shape{int64(len(vals))})
	if err == nil {
		intarg.Set(out, vals)
	}
	return err
}

// features sets the outputs, from index out on, to the features of one map. The order is: all
// indices, all values and all shapes of sparse features; dense features; all values and all splits
// of ragged features. It returns the index after the last output.
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
