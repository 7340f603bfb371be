package data

import (
	"slices"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	registerStage("ScanDataset", "Creates a dataset that applies a function to a state and the elements of its input. Each call returns the state for the next.",
		[]string{"initial_state: Tstate", "other_arguments: Targuments"},
		append(withSpec("f: func", "Tstate: list(type) >= 1", "Targuments: list(type) >= 0"), "preserve_cardinality: bool = false",
			"use_default_device: bool = true", metadata), newScan)
}

type scanDataset struct {
	stage
	f       mapDataset // the function; its element types are not used
	initial element
}

func newScan(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	f, err := n.function(ctx, "f", "other_arguments")
	if err != nil {
		return nil, err
	}
	initial, err := n.inputs(ctx, "initial_state")
	return &scanDataset{s, mapDataset{s, f, n.Attrs.Bool("preserve_cardinality")}, initial}, err
}

func (d *scanDataset) cardinality() int64 { return d.f.cardinality() }

func (d *scanDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &scanIterator{source: src, d: d, value: d.initial.retain()}, err
}

type scanIterator struct {
	source
	d     *scanDataset
	value element // state argument of the next call
}

func (it *scanIterator) next(r *run) (element, error) {
	e, err := it.input.next(r)
	if err != nil {
		return nil, err
	}
	got, err := it.d.f.apply(r, slices.Concat(it.value.retain(), e))
	if err != nil {
		return nil, err
	}
	n := len(it.value)
	if len(got) != n+len(it.d.types) {
		got.release()
		return nil, status.InvalidArgumentf("scan_func returns %d values, not %d", len(got), n+len(it.d.types))
	}
	for i := range n {
		if have, want := got[i].DType(), it.d.initial[i].DType(); have != want {
			return nil, status.InvalidArgumentf("Got wrong type for scan_func return value %d (expected %v, got %v).", i, want, have)
		}
	}
	it.value.release()
	it.value = got[:n:n]
	return got[n:], nil
}

func (it *scanIterator) state(a *archive) {
	a.element(&it.value)
	it.source.state(a)
}
