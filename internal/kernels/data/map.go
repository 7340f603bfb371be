package data

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	registerStage("MapDataset", "Creates a dataset that applies a function to the elements of its input.",
		[]string{"other_arguments: Targuments"},
		append(withSpec("f: func", "Targuments: list(type) >= 0"), "use_inter_op_parallelism: bool = true",
			"preserve_cardinality: bool = false", "force_synchronous: bool = false", metadata), newMap)
}

// mapDataset applies a function to each element of its input.
type mapDataset struct {
	stage
	f *captured
	// an OutOfRange error of the function is returned as an error, instead of ending the dataset
	keepOutOfRange bool
}

func newMap(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	f, err := n.function(ctx, "f", "other_arguments")
	return &mapDataset{s, f, n.Attrs.Bool("preserve_cardinality")}, err
}

func (d *mapDataset) cardinality() int64 {
	if d.keepOutOfRange {
		return d.input.cardinality()
	}
	return unknown
}

func (d *mapDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &mapIterator{src, d}, err
}

// apply calls the function. Its OutOfRange error ends the dataset, unless keep is set.
func (d *mapDataset) apply(r *run, e element) (element, error) {
	out, err := d.f.call(r, e)
	if status.CodeOf(err) == status.OutOfRange {
		if d.keepOutOfRange {
			return nil, status.InvalidArgumentf("Function invocation produced OutOfRangeError: %s", status.From(err).Message)
		}
		return nil, errEnd
	}
	return out, err
}

type mapIterator struct {
	source
	d *mapDataset
}

func (it *mapIterator) next(r *run) (element, error) {
	e, err := it.input.next(r)
	if err != nil {
		return nil, err
	}
	return it.d.apply(r, e)
}
