package data

import (
	"fmt"

	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("IndexFlatMapDataset",
		"Creates a dataset that applies map_func to the elements of its input and flattens the results. index_map_func maps an index of the output to the index of the input element and the offset in its result.",
		[]string{"map_func_other_args: Tmap_func_args", "index_map_func_other_args: Tindex_map_func_args", "output_cardinality: int64"},
		withSpecAndMetadata("map_func: func", "index_map_func: func", "Tmap_func_args: list(type) >= 0", "Tindex_map_func_args: list(type) >= 0"), newIndexFlatMap)
}

// indexFlatMapDataset is a flat map with random access.
type indexFlatMapDataset struct {
	stage
	f     *captured // map_func: returns the rows of an element
	index *captured // index_map_func: maps an index of the output to an element and an offset
	n     int64
}

func newIndexFlatMap(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	f, err := n.function(ctx, "map_func", "map_func_other_args")
	if err != nil {
		return nil, err
	}
	index, err := n.function(ctx, "index_map_func", "index_map_func_other_args")
	if err != nil {
		return nil, err
	}
	size, err := scalar[int64](n, ctx, "output_cardinality")
	return &indexFlatMapDataset{s, f, index, size}, err
}

func (d *indexFlatMapDataset) cardinality() int64 { return d.n }

// place returns the index of the input element and the row in its result for element i.
func (d *indexFlatMapDataset) place(r *run, i int64) (from, row int64, err error) {
	got, err := d.index.call(r, element{tensor.Scalar(i)})
	if err != nil {
		return 0, 0, err
	}
	defer got.release()
	if len(got) != 2 {
		return 0, 0, status.InvalidArgumentf("The `index_map_fn` for `index_flat_map` is expected to return two int values representing the "+
			"element index and an offset within the element. Got: %s", debugString(got))
	}
	var at [2]int64
	for k := range got {
		switch t := &got[k]; t.DType() {
		case tensor.Int32:
			at[k] = int64(tensor.Value[int32](t))
		case tensor.Int64:
			at[k] = tensor.Value[int64](t)
		case tensor.Uint32:
			at[k] = int64(tensor.Value[uint32](t))
		case tensor.Uint64:
			at[k] = int64(tensor.Value[uint64](t))
		default:
			return 0, 0, status.InvalidArgumentf("The `index_map_func` for `index_flat_map` is expected to return two int32/int64 values representing "+
				"the element index and an offset within the element. Got: %v", *t)
		}
	}
	return at[0], at[1], nil
}

// row returns row i of a result of map_func: component i if there are several components, and row i
// of the only component otherwise.
func (d *indexFlatMapDataset) row(result element, i int64) (element, error) {
	size, got := int64(len(result)), debugString(result)
	if len(result) == 1 {
		t := &result[0]
		if t.Rank() == 0 {
			return result.retain(), nil
		}
		size, got = t.Shape()[0], t.String()
	}
	if i < 0 || i >= size {
		return nil, status.InvalidArgumentf("`index_flat_map` got invalid `index_map_func` which returns offset %d, but the input element has %d "+
			"elements: %s", i, size, got)
	}
	if len(result) > 1 {
		return element{result[i].Retain()}, nil
	}
	t, err := stacking.Row(&result[0], int(i))
	return element{t}, err
}

func debugString(e element) string {
	parts := membudget.Make[string](len(e))
	var meter membudget.Meter
	for i := range e {
		parts[i] = e[i].String()
	}
	return fmt.Sprintf("{%s}", meter.Join(parts, ", "))
}

func (d *indexFlatMapDataset) at(r *run, i int64) (element, error) {
	from, row, err := d.place(r, i)
	if err != nil {
		return nil, err
	}
	e, err := atIndex(r, d.input, from)
	if err != nil {
		return nil, err
	}
	result, err := d.f.call(r, e)
	if err != nil {
		return nil, err
	}
	defer result.release()
	return d.row(result, row)
}

func (d *indexFlatMapDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &indexFlatMapIterator{source: src, d: d}, err
}

type indexFlatMapIterator struct {
	source
	d      *indexFlatMapDataset
	i      int64   // number of elements returned
	from   int64   // index of the input element that result belongs to
	result element // result of map_func; nil before the first call
}

func (it *indexFlatMapIterator) next(r *run) (element, error) {
	from, row, err := it.d.place(r, it.i)
	if err != nil {
		return nil, err
	}
	if from > it.from || it.result == nil {
		it.result.release()
		it.result = nil
		e, err := it.input.next(r)
		if err != nil {
			return nil, err
		}
		if it.result, err = it.d.f.call(r, e); err != nil {
			return nil, err
		}
		it.from = from
	}
	e, err := it.d.row(it.result, row)
	if err == nil {
		it.i++
	}
	return e, err
}

func (it *indexFlatMapIterator) state(a *archive) {
	it.source.state(a)
	a.int(&it.i)
	a.int(&it.from)
	a.element(&it.result)
	if len(it.result) == 0 {
		it.result = nil
	}
}
