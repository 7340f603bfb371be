package data

import (
	"context"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "InitializeTableFromDataset", Doc: "Initializes a lookup table with the pairs of key and value in a dataset, unless it is initialized.",
		In: []string{"table_handle: resource", "dataset: variant"}, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error { return shapefn.CheckRanks(c, 0, 0, 0) },
	}, iterating(fillTable))
}

// table is a lookup table that can be initialized once.
type table interface {
	// Types returns the types of keys and values.
	Types() (key, value tensor.DType)
	// Initialize fills the table with vectors of keys and values, unless it is initialized. The
	// account, which may be nil, pays for it.
	Initialize(ctx context.Context, a *membudget.Account, keys, values *tensor.Tensor) error
}

func fillTable(_ *node, ctx *kernel.Context, r *run) error {
	t, err := resource.FindAs[table](ctx, 0, "N10tensorflow6lookup15LookupInterfaceE")
	if err != nil {
		return err
	}
	d, err := datasetOf(ctx.Input(1))
	if err != nil {
		return err
	}
	s := d.elementSpec()
	if err := checkPairs(t, s); err != nil {
		return err
	}
	var pairs [2][]tensor.Tensor
	err = each(r, d, func(e element) error {
		if err := checkPairs(t, specOf(e)); err != nil {
			return err
		}
		pairs[0], pairs[1] = membudget.Append(pairs[0], e[0]), membudget.Append(pairs[1], e[1])
		return nil
	})
	if err != nil {
		return err
	}
	if len(pairs[0]) == 0 {
		return status.OutOfRangef("end of iterator")
	}
	var vectors [2]tensor.Tensor
	for i := range vectors {
		if vectors[i], err = stacking.Stack(s.types[i], tensor.Shape{}, pairs[i]); err != nil {
			return err
		}
	}
	return t.Initialize(ctx.Context(), resource.Account(ctx), &vectors[0], &vectors[1])
}

// checkPairs checks that the elements of a dataset, or one element, are pairs of the table's key
// and value types.
func checkPairs(t table, s *spec) error {
	key, value := t.Types()
	switch types := s.types; {
	case len(types) != 2:
		return status.InvalidArgumentf("Dataset should have two output types only")
	case types[0] != key:
		return status.InvalidArgumentf("Key dtype expected: %v but obtained: %v from the dataset", key, types[0])
	case types[1] != value:
		return status.InvalidArgumentf("Value dtype expected: %v but obtained: %v from the dataset", value, types[1])
	}
	for _, shape := range s.shapes {
		if !shape.CompatibleWith(tensor.Shape{}) {
			return status.InvalidArgumentf("Expected scalar for key. Obtained: %v", shape)
		}
	}
	return nil
}
