package listops

import (
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	handle, key := "input_handle: variant", "key: key_dtype"
	output, types := []string{"output_handle: variant"}, []string{"key_dtype: type", "value_dtype: type"}
	kernel.RegisterFunc(opdef.Def{
		Name: "EmptyTensorMap", Doc: "Creates an empty tensor map.", Out: []string{"handle: variant"}, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error { (&Map{}).setOutput(ctx); return nil })
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorMapSize", Doc: "Returns the number of keys of a tensor map.",
		In: []string{handle}, Out: []string{"size: int32"}, Shape: opdef.ScalarShape,
	}, mapSize)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorMapLookup", Doc: "Returns the value of a key of a tensor map.",
		In: []string{handle, key}, Out: []string{"value: value_dtype"}, Attrs: types, Shape: opdef.UnknownShape,
	}, mapLookup)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorMapInsert", Doc: "Returns a tensor map with the value of a key set.",
		In: []string{handle, key, "value: value_dtype"}, Out: output, Attrs: types, Shape: opdef.ScalarShape,
	}, mapInsert)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorMapErase", Doc: "Returns a tensor map without a key.",
		In: []string{handle, key}, Out: output, Attrs: types, Shape: opdef.ScalarShape,
	}, mapErase)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorMapHasKey", Doc: "Returns whether a tensor map has a key.",
		In: []string{handle, key}, Out: []string{"has_key: bool"}, Attrs: types[:1], Shape: opdef.ScalarShape,
	}, mapHasKey)
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorMapStackKeys",
		Doc:  "Returns the keys of a tensor map, which have one shape, in insertion order.",
		In:   []string{handle}, Out: []string{"keys: key_dtype"}, Attrs: types[:1], Shape: opdef.UnknownShape,
	}, mapStackKeys)
}

func mapSize(ctx *kernel.Context) error {
	m, err := inputMap(ctx)
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(int32(m.items.n)))
	}
	return err
}

// lookup returns the map in input 0 and its pair for the key in input 1, or nil.
func lookup(ctx *kernel.Context) (*Map, *pair, error) {
	m, err := inputMap(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := m.get(ctx.Input(1))
	return m, p, err
}

func mapLookup(ctx *kernel.Context) error {
	_, p, err := lookup(ctx)
	switch {
	case err != nil:
		return err
	case p == nil:
		return status.InvalidArgumentf("Trying to lookup non-existent key. Could not find key \"%s\".", ctx.Input(1).Summary(100))
	case p.value.DType() != ctx.OutputType(0):
		return status.InvalidArgumentf("the value of the key is %v, not %v", p.value.DType(), ctx.OutputType(0))
	}
	ctx.SetOutput(0, p.value.Retain())
	return nil
}

func mapInsert(ctx *kernel.Context) error {
	m, err := inputMap(ctx)
	if err == nil {
		m, err = m.with(ctx.Input(1), ctx.Input(2))
	}
	if err == nil {
		m.setOutput(ctx)
	}
	return err
}

func mapErase(ctx *kernel.Context) error {
	m, p, err := lookup(ctx)
	if err == nil && p == nil {
		err = status.InvalidArgumentf("Trying to erase non-existent item. Could not find key \"%s\".", ctx.Input(1).Summary(100))
	}
	if err == nil {
		m, err = m.without(ctx.Input(1))
	}
	if err == nil {
		m.setOutput(ctx)
	}
	return err
}

func mapHasKey(ctx *kernel.Context) error {
	_, p, err := lookup(ctx)
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(p != nil))
	}
	return err
}

func mapStackKeys(ctx *kernel.Context) error {
	m, err := inputMap(ctx)
	if err != nil {
		return err
	}
	pairs := m.pairs()
	if len(pairs) == 0 {
		return status.InvalidArgumentf("TensorMapStackKeys cannot be called on empty map.")
	}
	keys := membudget.Make[tensor.Tensor](len(pairs))
	for i, p := range pairs {
		switch {
		case p.key.DType() != ctx.OutputType(0):
			return status.InvalidArgumentf("Key does not match requested dtype.")
		case !p.key.Shape().Equal(pairs[0].key.Shape()):
			return status.InvalidArgumentf("Keys must all have the same shape.")
		}
		keys[i] = p.key
	}
	out, err := stacking.Stack(ctx.OutputType(0), keys[0].Shape(), keys)
	if err == nil {
		ctx.SetOutput(0, out)
	}
	return err
}
