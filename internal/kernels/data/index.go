package data

import (
	"errors"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "GetElementAtIndex", Doc: "Returns the element of a dataset at an index.",
		In: []string{"dataset: variant", "index: int64"}, Out: []string{"components: output_types"}, Attrs: withSpec(), Shape: elementShape,
	}, iterating(getElement))
}

// indexed is a dataset with random access.
type indexed interface {
	dataset
	// at returns element i, which must be below the cardinality.
	at(r *run, i int64) (element, error)
}

// atIndex returns element i of a dataset.
func atIndex(r *run, d dataset, i int64) (element, error) {
	if n := d.cardinality(); i < 0 || n >= 0 && i >= n {
		return nil, status.OutOfRangef("Index out of range [0, %d):%d", n, i)
	}
	if d, ok := d.(indexed); ok {
		e, err := d.at(r, i)
		if err != nil {
			return nil, err
		}
		return r.charge(e)
	}
	return elementByIterating(r, d, i)
}

// elementByIterating returns element i of a dataset by iterating over the preceding ones.
func elementByIterating(r *run, d dataset, i int64) (element, error) {
	it, err := open(r, d)
	if err != nil {
		return nil, err
	}
	var polls polls
	for ; i > 0; i-- {
		if err := polls.check(r); err != nil {
			return nil, err
		}
		e, err := it.next(r)
		if err != nil {
			return nil, endOfSequence(err)
		}
		e.release()
	}
	e, err := it.next(r)
	return e, endOfSequence(err)
}

func getElement(n *node, ctx *kernel.Context, r *run) error {
	d, err := datasetOf(ctx.Input(0))
	if err != nil {
		return err
	}
	i, err := scalar[int64](n, ctx, "index")
	if err != nil {
		return err
	}
	e, err := atIndex(r, d, i)
	if err != nil {
		return err
	}
	s := n.spec()
	return s.setOutputs(ctx, e)
}

// setOutputs sets the outputs of a node to the components of an element.
func (s *spec) setOutputs(ctx *kernel.Context, e element) error {
	if err := s.check(specOf(e)); err != nil {
		e.release()
		return err
	}
	for i := range e {
		ctx.SetOutput(i, e[i])
	}
	return nil
}

// iterating returns the constructor of asynchronous kernels that iterate over datasets within one
// step.
func iterating(f func(n *node, ctx *kernel.Context, r *run) error) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		n, err := newNode(c)
		if err != nil {
			return nil, err
		}
		return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
			cleanups := &cleanups{}
			go func() {
				err := guarded(func() error { return f(n, ctx, newRun(ctx, ctx.Context(), cleanups)) })
				cleanups.run()
				done(err)
			}()
		}), nil
	}
}

// each calls f with each element of a dataset until the end or an error. f takes over the elements.
func each(r *run, d dataset, f func(element) error) error {
	it, err := open(r, d)
	if err != nil {
		return err
	}
	var polls polls
	for {
		if err := polls.check(r); err != nil {
			return err
		}
		e, err := it.next(r)
		if errors.Is(err, errEnd) {
			return nil
		}
		if err == nil {
			err = f(e)
		}
		if err != nil {
			return err
		}
	}
}

func (d *rangeDataset) at(_ *run, i int64) (element, error) {
	t, err := integer(d.types[0], d.start+i*d.step)
	if err == nil && len(d.types) != 1 {
		err = status.Internalf("Expected %d components but got 1.", len(d.types))
	}
	return element{t}, err
}

func (d *tensorsDataset) at(_ *run, i int64) (element, error) {
	if !d.rows {
		return d.tensors.retain(), nil
	}
	return rowOf(d.tensors, int(i))
}

func (d *mapDataset) at(r *run, i int64) (element, error) {
	e, err := atIndex(r, d.input, i)
	if err != nil {
		return nil, err
	}
	e, err = d.apply(r, e)
	return e, endOfSequence(err)
}

func (d *takeDataset) at(r *run, i int64) (element, error) { return atIndex(r, d.input, i) }

func (d *skipDataset) at(r *run, i int64) (element, error) { return atIndex(r, d.input, i+d.n) }

func (d *passDataset) at(r *run, i int64) (element, error) { return atIndex(r, d.input, i) }

func (d *prefetchDataset) at(r *run, i int64) (element, error) { return atIndex(r, d.input, i) }

func (d *repeatDataset) at(r *run, i int64) (element, error) {
	switch n := d.input.cardinality(); {
	case n == unknown:
		return elementByIterating(r, d, i)
	case n > 0:
		i %= n
	}
	return atIndex(r, d.input, i)
}

func (d *concatenateDataset) at(r *run, i int64) (element, error) {
	if n := d.parts[0].cardinality(); n >= 0 && i >= n {
		return atIndex(r, d.parts[1], i-n)
	}
	return atIndex(r, d.parts[0], i)
}

func (d *zipDataset) at(r *run, i int64) (out element, err error) {
	for _, input := range d.inputs {
		e, err := atIndex(r, input, i)
		if err != nil {
			return nil, err
		}
		out = membudget.AppendAll(out, e...)
	}
	return out, nil
}

func (d *batchDataset) at(r *run, i int64) (element, error) {
	var rows []element
	n := d.input.cardinality()
	for j := i * d.size; j < (i+1)*d.size && (n < 0 || j < n); j++ {
		e, err := atIndex(r, d.input, j)
		if err != nil {
			return nil, err
		}
		rows = membudget.Append(rows, e)
	}
	return d.join(rows, d.size)
}
