package data

import (
	"errors"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("WindowDataset", "Creates a dataset of windows of its input. Each window is a dataset.",
		[]string{"size: int64", "shift: int64", "stride: int64", "drop_remainder: bool"}, withSpecAndMetadata(), newWindow)
	sliding := "Creates a dataset that slides a window over its input and batches the elements of each window."
	sizes := []string{"window_size: int64", "window_shift: int64", "window_stride: int64"}
	registerStage("SlideDataset", sliding+" From TensorFlow 1.12.", sizes, withSpec(), newSliding)
	registerStage("SlidingWindowDataset", sliding, sizes, append([]string{"drop_remainder: bool = true"}, withSpec()...), newSliding)
}

type windowDataset struct {
	stage
	size, shift, stride int64
	dropRemainder       bool // drop smaller windows
}

func newWindow(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	d, err := windows(n, ctx, s, "")
	if err != nil {
		return nil, err
	}
	d.dropRemainder, err = scalar[bool](n, ctx, "drop_remainder")
	return d, err
}

// windows reads the size, shift and stride of windows from arguments whose names start with prefix.
func windows(n *node, ctx *kernel.Context, s stage, prefix string) (*windowDataset, error) {
	names := []string{"size", "shift", "stride"}
	v, err := n.scalars(ctx, prefix+names[0], prefix+names[1], prefix+names[2])
	if err != nil {
		return nil, err
	}
	for i, what := range names {
		if v[i] <= 0 {
			return nil, status.InvalidArgumentf("Window %s must be greater than zero.", what)
		}
	}
	return &windowDataset{stage: s, size: v[0], shift: v[1], stride: v[2]}, nil
}

// span is the number of input elements from the first to the last element of a window.
func (d *windowDataset) span() int64 { return (d.size-1)*d.stride + 1 }

func (d *windowDataset) cardinality() int64 {
	n := d.input.cardinality()
	switch {
	case n < 0:
		return n
	case !d.dropRemainder:
		return (n + d.shift - 1) / d.shift
	case n < d.span():
		return 0
	}
	return (n-d.span())/d.shift + 1
}

func (d *windowDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &windowIterator{source: src, d: d}, err
}

type windowIterator struct {
	source
	d         *windowDataset
	buffer    []slot
	exhausted bool
}

// slot is an element of a window, or its error. Only windows that contain the element return the
// error.
type slot struct {
	element element
	err     error
}

func (it *windowIterator) next(r *run) (element, error) {
	rows, err := it.rows(r)
	if err != nil {
		return nil, err
	}
	return it.windows(rows), nil
}

// rows returns the elements of the next window.
func (it *windowIterator) rows(r *run) ([]element, error) {
	span := it.d.span()
	for !it.exhausted && int64(len(it.buffer)) < span {
		if err := it.read(r, true); err != nil {
			return nil, err
		}
	}
	n := int64(len(it.buffer))
	if n == 0 || it.d.dropRemainder && n < span {
		return nil, errEnd
	}
	var rows []element
	var err error
	for i := int64(0); i < n; i += it.d.stride {
		if err == nil {
			err = it.buffer[i].err
		}
		rows = membudget.Append(rows, it.buffer[i].element)
	}
	for i := n; !it.exhausted && i < it.d.shift; i++ {
		if err := it.read(r, false); err != nil {
			return nil, err
		}
	}
	it.buffer = it.buffer[min(n, it.d.shift):]
	return rows, err
}

// read reads one element of the input and keeps it if requested.
func (it *windowIterator) read(r *run, keep bool) error {
	e, err := it.input.next(r)
	switch {
	case errors.Is(err, errEnd):
		it.exhausted = true
	case r.cancelled() != nil:
		return r.cancelled()
	case status.CodeOf(err) == status.ResourceExhausted:
		return err // there would be none for the other elements, either
	case keep:
		it.buffer = membudget.Append(it.buffer, slot{e, err})
	default:
		e.release()
	}
	return nil
}

// windows returns a dataset for each component.
func (it *windowIterator) windows(rows []element) element {
	in := it.d.input.elementSpec()
	out := element(membudget.Make[tensor.Tensor](len(in.types)))
	for i := range out {
		w := &listDataset{spec: spec{in.types[i : i+1], in.shapes[i : i+1]}}
		for _, row := range rows {
			w.all = membudget.Append(w.all, element{row[i]})
		}
		out[i] = wrap(w)
	}
	return out
}

func (it *windowIterator) state(a *archive) {
	a.bool(&it.exhausted)
	n := a.count(len(it.buffer))
	if a.loading {
		it.buffer = membudget.Make[slot](n)
	}
	for i := range it.buffer {
		it.buffer[i].state(a)
	}
	it.source.state(a)
}

func (s *slot) state(a *archive) {
	code := int64(status.CodeOf(s.err))
	a.int(&code)
	if code == int64(status.OK) {
		a.element(&s.element)
		return
	}
	text := element{tensor.Scalar(status.From(s.err).Message)}
	a.element(&text)
	if a.loading && a.err == nil {
		if len(text) != 1 || text[0].DType() != tensor.String || text[0].NumElements() != 1 {
			a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
			return
		}
		s.err = status.Errorf(status.Code(code), "%s", tensor.Values[string](&text[0])[0])
	}
}

// slidingDataset contains batches of windows.
type slidingDataset struct{ *windowDataset }

func newSliding(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	d, err := windows(n, ctx, s, "window_")
	if err != nil {
		return nil, err
	}
	dropRemainder, given := n.Attrs["drop_remainder"].(bool)
	d.dropRemainder = dropRemainder || !given
	return slidingDataset{d}, nil
}

func (d slidingDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &slidingIterator{windowIterator{source: src, d: d.windowDataset}}, err
}

type slidingIterator struct{ windowIterator }

func (it *slidingIterator) next(r *run) (element, error) {
	rows, err := it.rows(r)
	if err != nil {
		return nil, err
	}
	return stack(rows, int64(len(rows)))
}
