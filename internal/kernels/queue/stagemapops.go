package queue

import (
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStagingMap("Map", func(r room) *UnorderedMap {
		m := &UnorderedMap{}
		m.init(r)
		return m
	})
	registerStagingMap("OrderedMap", func(r room) *OrderedMap {
		m := &OrderedMap{}
		m.init(r)
		return m
	})
}

// keyed is a staging map of either kind.
type keyed interface {
	kernel.Resource
	staging() *StagingMap
}

// registerStagingMap registers the operations on one kind of map. Their names start with prefix.
func registerStagingMap[T keyed](prefix string, create func(room) T) {
	indices, values := "indices: int32", []string{"values: dtypes"}
	registerStaging(opdef.Def{
		Name: prefix + "Stage", Doc: "Stages the components with the given indices of the element with a key. Blocks " +
			"while the staging map is full.",
		In: []string{"key: int64", indices, "values: fake_dtypes"}, Attrs: stagingAttrs("dtypes: list(type)", "fake_dtypes: list(type) >= 1"),
	}, staged(create, mapStage[T]))
	registerStaging(opdef.Def{
		Name: prefix + "Unstage", Doc: "Removes and returns the components with the given indices of the element with a " +
			"key. Blocks until it is available.",
		In: []string{"key: int64", indices}, Out: values, Shape: opdef.UnknownShape,
	}, staged(create, byKey[T](false)))
	registerStaging(opdef.Def{
		Name: prefix + "Peek", Doc: "Returns the components with the given indices of the element with a key without " +
			"removing them. Blocks until it is available.",
		In: []string{"key: int64", indices}, Out: values, Shape: opdef.UnknownShape,
	}, staged(create, byKey[T](true)))
	registerStaging(opdef.Def{
		Name: prefix + "UnstageNoKey", Doc: "Removes and returns components of any element, with its key. Blocks while the " +
			"staging map is empty.",
		In: []string{indices}, Out: slices.Insert(values, 0, "key: int64"), Shape: opdef.UnknownShape,
	}, staged(create, withoutKey[T]))
	registerStaging(opdef.Def{
		Name: prefix + "Size", Doc: "Returns the number of complete elements in a staging map.",
		Out: []string{"size: int32"}, Shape: opdef.ScalarShape,
	}, staged(create, synchronous(func(ctx *kernel.Context, m T) error { return outputCount(ctx, m.staging().size()) })))
	registerStaging(opdef.Def{
		Name: prefix + "IncompleteSize", Doc: "Returns the number of incomplete elements in a staging map.",
		Out: []string{"size: int32"}, Shape: opdef.ScalarShape,
	}, staged(create, synchronous(func(ctx *kernel.Context, m T) error { return outputCount(ctx, m.staging().incompleteSize()) })))
	registerStaging(opdef.Def{
		Name: prefix + "Clear", Doc: "Removes all elements from a staging map.",
	}, staged(create, synchronous(func(_ *kernel.Context, m T) error { m.staging().clear(); return nil })))
}

func mapStage[T keyed](c *kernel.Construction, ctx *kernel.Context, m T, done func(error)) {
	key, indices, err := stageArguments(c, ctx)
	if err != nil {
		done(err)
		return
	}
	m.staging().put(ctx.Context(), key, indices, takeInputs(ctx, 2), len(c.Attrs.Types("dtypes")), done)
}

// stageArguments returns the key and the component indices, and checks the dtypes of the
// components, which are the other inputs.
func stageArguments(c *kernel.Construction, ctx *kernel.Context) (int64, []int32, error) {
	key, indices, types := ctx.Input(0), tensor.Values[int32](ctx.Input(1)), c.Attrs.Types("dtypes")
	switch {
	case key.NumElements() == 0:
		return 0, nil, status.InvalidArgumentf("key must not be empty")
	case key.NumElements() != 1:
		return 0, nil, status.InvalidArgumentf("key must be an int64 scalar, got tensor with shape: %v", key.Shape())
	}
	if err := checkIndices(indices); err != nil {
		return 0, nil, err
	}
	if n := ctx.NumInputs() - 2; n != len(indices) {
		return 0, nil, status.InvalidArgumentf("%d indices for %d values", len(indices), n)
	}
	k := tensor.Value[int64](key)
	for i, index := range indices {
		if err := checkIndex(k, index, len(types)); err != nil {
			return 0, nil, err
		}
		if got := c.Inputs[2+i]; got != types[index] {
			return 0, nil, status.InvalidArgumentf("value %d for index %d is %v, not %v", i, index, got, types[index])
		}
	}
	//sizedmake:ok an element for each input
	return k, slices.Clone(indices), nil
}

// byKey returns the function of operations that return components of the element of a key. If keep
// is true, the components remain.
func byKey[T keyed](keep bool) func(*kernel.Construction, *kernel.Context, T, func(error)) {
	return func(_ *kernel.Construction, ctx *kernel.Context, m T, done func(error)) {
		key := ctx.Input(0)
		if key.Rank() != 0 {
			done(status.InvalidArgumentf("key must be an int64 scalar: %v", key.Shape()))
			return
		}
		w := wanted{key: tensor.Value[int64](key), indices: membudget.AppendAll(nil, tensor.Values[int32](ctx.Input(1))...), keep: keep}
		outputSelection(ctx, m, w, func(_ int64, e element) error { return outputComponents(ctx, 0, e) }, done)
	}
}

func withoutKey[T keyed](_ *kernel.Construction, ctx *kernel.Context, m T, done func(error)) {
	w := wanted{anyKey: true, indices: membudget.AppendAll(nil, tensor.Values[int32](ctx.Input(0))...)}
	outputSelection(ctx, m, w, func(key int64, e element) error {
		ctx.SetOutput(0, tensor.Scalar(key))
		return outputComponents(ctx, 1, e)
	}, done)
}

func outputSelection[T keyed](ctx *kernel.Context, m T, w wanted, give func(int64, element) error, done func(error)) {
	if err := checkIndices(w.indices); err != nil {
		done(err)
		return
	}
	m.staging().take(ctx.Context(), w, func(key int64, e element, err error) {
		if err == nil {
			err = give(key, e)
		}
		done(err)
	})
}

func outputComponents(ctx *kernel.Context, first int, e element) error {
	return outputStaged(ctx, first, e, "output/indices size mismatch")
}
