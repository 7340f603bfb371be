package data

import (
	"errors"
	"fmt"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for name, attrs := range map[string][]string{
		"DatasetCardinality":             {"cardinality_options: string = ''"},
		"ExperimentalDatasetCardinality": nil,
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: name, Doc: "Gives the number of elements of a dataset: -1 if there is no end of them, -2 if it is not known.",
				In: []string{"input_dataset: variant"}, Out: []string{"cardinality: int64"}, Attrs: attrs, Shape: opdef.ScalarShape,
			},
			Kernels: kernel.Any(kernel.Stateless(func(ctx *kernel.Context) error {
				d, err := datasetOf(ctx.Input(0))
				if err == nil {
					ctx.SetOutput(0, tensor.Scalar(d.cardinality()))
				}
				return err
			})),
		})
	}
	registerStage("AssertCardinalityDataset", "Gives a dataset whose number of elements is known; another number is an error.",
		[]string{"cardinality: int64"}, typed(), func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
			count, err := scalar[int64](n, ctx, "cardinality")
			return &assertedDataset{s, count}, err
		})
}

type assertedDataset struct {
	stage
	n int64
}

func (d *assertedDataset) cardinality() int64 { return d.n }

func (d *assertedDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &assertedIterator{source: src, d: d}, err
}

type assertedIterator struct {
	source
	d *assertedDataset
	i int64
}

func (it *assertedIterator) next(r *run) (element, error) {
	e, err := it.input.next(r)
	switch {
	case err == nil:
		it.i++
		if it.d.n != infinite && it.d.n != unknown && it.i > it.d.n {
			e.release()
			return nil, status.FailedPreconditionf("Input dataset was expected to contain %s but contained more than %s.",
				elementString(it.d.n), elementString(it.d.n))
		}
	case errors.Is(err, errEnd) && it.d.n != unknown && it.i != it.d.n:
		want := "an infinite number of elements"
		if it.d.n != infinite {
			want = elementString(it.d.n)
		}
		return nil, status.FailedPreconditionf("Input dataset was expected to contain %s but contained only %s.", want, elementString(it.i))
	}
	return e, err
}

func elementString(n int64) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

func (it *assertedIterator) state(a *archive) {
	a.int(&it.i)
	it.source.state(a)
}
