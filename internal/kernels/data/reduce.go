package data

import (
	"errors"
	"slices"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	one := func(name, doc string, in, attrs []string, f func(n *node, ctx *kernel.Context, r *run) error) {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, In: in, Out: []string{"components: output_types"}, Attrs: attrs, Stateful: true, Shape: elementShape,
		}, iterating(f))
	}
	one("DatasetToSingleElement", "Returns the only element of a dataset.", []string{"dataset: variant"}, withSpecAndMetadata(), single)
	one("ReduceDataset", "Reduces a dataset to a single value: applies a function to a state and each element, and returns the last state.",
		[]string{"input_dataset: variant", "initial_state: Tstate", "other_arguments: Targuments"},
		append(withSpec("f: func", "Tstate: list(type) >= 1", "Targuments: list(type) >= 0"), "use_inter_op_parallelism: bool = true", metadata), reduce)
}

func single(n *node, ctx *kernel.Context, r *run) error {
	d, err := datasetOf(ctx.Input(0))
	if err != nil {
		return err
	}
	it, err := open(r, d)
	if err != nil {
		return err
	}
	e, err := it.next(r)
	if errors.Is(err, errEnd) {
		return status.InvalidArgumentf("Dataset was empty.")
	}
	if err != nil {
		return err
	}
	s := n.spec()
	if err := s.check(specOf(e)); err != nil {
		return err
	}
	switch _, err := it.next(r); {
	case errors.Is(err, errEnd):
		return s.setOutputs(ctx, e)
	case err == nil:
		return status.InvalidArgumentf("Dataset had more than one element.")
	default:
		return err
	}
}

func reduce(n *node, ctx *kernel.Context, r *run) error {
	d, err := datasetOf(ctx.Input(0))
	if err != nil {
		return err
	}
	state, err := n.inputs(ctx, "initial_state")
	if err != nil {
		return err
	}
	f, err := n.function(ctx, "f", "other_arguments")
	if err != nil {
		return err
	}
	r.unordered = allowsAnyOrder(options(d))
	err = each(r, d, func(e element) error {
		count := len(state)
		var err error
		if state, err = f.call(r, slices.Concat(state, e)); err == nil && len(state) != count {
			err = status.InvalidArgumentf("The number of components of the initial state and the reduce function output does not match. "+
				"(initial_state=%d, output=%d).", count, len(state))
		}
		return err
	})
	if status.CodeOf(err) == status.OutOfRange {
		err = status.InvalidArgumentf("Function invocation produced OutOfRangeError: %s", status.From(err).Message)
	}
	if err != nil {
		return err
	}
	s := n.spec()
	return s.setOutputs(ctx, state)
}
