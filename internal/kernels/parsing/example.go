package parsing

import (
	"sync/atomic"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const elements = "list({float32, int64, string}) >= 0"

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "ParseExample", Doc: "Parses features from a vector of serialized Example messages.",
		In:  []string{"serialized: string", "names: string", "sparse_keys: Nsparse * string", "dense_keys: Ndense * string", "dense_defaults: Tdense"},
		Out: []string{"sparse_indices: Nsparse * int64", "sparse_values: sparse_types", "sparse_shapes: Nsparse * int64", "dense_values: Tdense"},
		Attrs: []string{"Nsparse: int >= 0", "Ndense: int >= 0", "sparse_types: " + elements, "Tdense: " + elements,
			"dense_shapes: list(shape) >= 0"},
		Shape: exampleShape(1),
	}, newExample(1))
	kernel.RegisterNew(opdef.Def{
		Name: "ParseExampleV2", Doc: "Parses features from one serialized Example message or a vector of them.",
		In: []string{"serialized: string", "names: string", "sparse_keys: string", "dense_keys: string", "ragged_keys: string", "dense_defaults: Tdense"},
		Out: []string{"sparse_indices: num_sparse * int64", "sparse_values: sparse_types", "sparse_shapes: num_sparse * int64", "dense_values: Tdense",
			"ragged_values: ragged_value_types", "ragged_row_splits: ragged_split_types"},
		Attrs: []string{"Tdense: " + elements, "num_sparse: int >= 0", "sparse_types: " + elements, "ragged_value_types: " + elements,
			"ragged_split_types: list({int32, int64}) >= 0", "dense_shapes: list(shape) >= 0"},
		Shape: exampleShape(2),
	}, newExample(2))
	kernel.RegisterNew(opdef.Def{
		Name: "ParseSingleExample", Doc: "Parses features from one serialized Example message.",
		In:  []string{"serialized: string", "dense_defaults: Tdense"},
		Out: []string{"sparse_indices: num_sparse * int64", "sparse_values: sparse_types", "sparse_shapes: num_sparse * int64", "dense_values: Tdense"},
		Attrs: []string{"num_sparse: int >= 0", "sparse_keys: list(string) >= 0", "dense_keys: list(string) >= 0",
			"sparse_types: " + elements, "Tdense: " + elements, "dense_shapes: list(shape) >= 0"},
		Shape: singleExampleShape,
	}, newSingleExample)
}

// exampleWanted reads the attributes of version 1 or 2 of ParseExample.
func exampleWanted(attrs opdef.Attrs, version int) (*wanted, error) {
	dense := attrLength{"dense_keys", attrs.Int("Ndense")}
	sparse := attrLength{"sparse_keys", attrs.Int("Nsparse")}
	if version == 2 {
		dense.n, sparse.n = len(attrs.Types("Tdense")), attrs.Int("num_sparse")
	}
	ragged := attrLength{"ragged_keys", len(attrs.Types("ragged_value_types"))}
	return checkedWanted(attrs, sparse, dense, ragged)
}

func checkedWanted(attrs opdef.Attrs, sparse, dense, ragged attrLength) (*wanted, error) {
	if err := checkLengths(sparse, listLength(attrs, "sparse_types")); err != nil {
		return nil, err
	}
	if err := checkLengths(dense, attrLength{"dense_types", len(attrs.Types("Tdense"))}, listLength(attrs, "dense_shapes")); err != nil {
		return nil, err
	}
	if err := checkLengths(ragged, listLength(attrs, "ragged_value_types"), listLength(attrs, "ragged_split_types")); err != nil {
		return nil, err
	}
	return newWanted(attrs.Types("sparse_types"), attrs.Types("Tdense"), attrs.Types("ragged_value_types"), attrs.Types("ragged_split_types"),
		attrs.Shapes("dense_shapes"))
}

// example is the kernel of the operations that parse Example messages.
type example struct {
	wanted  *wanted
	version int // 0 for ParseSingleExample, whose keys are attributes
	keys    keys
	index   atomic.Pointer[index] // index of the keys of the last run
}

func newExample(version int) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		w, err := exampleWanted(c.Attrs, version)
		return &example{wanted: w, version: version}, err
	}
}

func newSingleExample(c *kernel.Construction) (kernel.Kernel, error) {
	w, k, err := singleWanted(c.Attrs)
	return &example{wanted: w, keys: k}, err
}

func singleWanted(attrs opdef.Attrs) (*wanted, keys, error) {
	k := keys{sparse: attrs.Strings("sparse_keys"), dense: attrs.Strings("dense_keys")}
	if n, types := attrs.Int("num_sparse"), len(attrs.Types("sparse_types")); n != len(k.sparse) || n != types {
		return nil, k, status.InvalidArgumentf("num_sparse (%d) must match the size of sparse_keys (%d) and sparse_types (%d)", n, len(k.sparse), types)
	}
	w, err := checkedWanted(attrs, listLength(attrs, "sparse_keys"), listLength(attrs, "dense_keys"), attrLength{"ragged_keys", 0})
	return w, k, err
}

// Compute implements kernel.Kernel.
func (e *example) Compute(ctx *kernel.Context) error {
	serialized := ctx.Input(0)
	k, fills, err := e.arguments(ctx)
	if err == nil {
		err = e.check(serialized, ctx, k, len(fills))
	}
	if err != nil {
		return err
	}
	w := e.wanted.named(k, fills)
	for i := range w.dense {
		if err := w.dense[i].checkFill(i); err != nil {
			return err
		}
	}
	b := &batch{ctx: ctx, records: tensor.Values[string](serialized), single: serialized.Rank() == 0}
	b.words = exampleWords{e.names(ctx)}
	if b.single {
		b.words = soleWords{}
	}
	f := newFound(cachedIndex(&e.index, k), len(b.records))
	f.skipEmpty = true
	if err := b.scan(f); err != nil {
		return err
	}
	_, err = b.features(0, w, f)
	return err
}

// cachedIndex returns the index of k, which usually equals that of the previous run.
func cachedIndex(cache *atomic.Pointer[index], k keys) *index {
	if x := cache.Load(); x != nil && x.keys.equal(k) {
		return x
	}
	x := newIndex(k)
	cache.Store(x)
	return x
}

// arguments returns the keys and the defaults.
func (e *example) arguments(ctx *kernel.Context) (k keys, fills []*tensor.Tensor, err error) {
	first := 1
	switch k = e.keys; e.version {
	case 1:
		if k.sparse, err = singles(ctx, "sparse_keys", 2, len(e.wanted.sparse)); err != nil {
			return k, nil, err
		}
		if k.dense, err = singles(ctx, "dense_keys", 2+len(k.sparse), len(e.wanted.dense)); err != nil {
			return k, nil, err
		}
		first = 2 + len(k.sparse) + len(k.dense)
	case 2:
		k = keys{tensor.Values[string](ctx.Input(2)), tensor.Values[string](ctx.Input(3)), tensor.Values[string](ctx.Input(4))}
		first = 5
	}
	return k, inputs(ctx, first, ctx.NumInputs()-first), nil
}

// inputs returns n inputs from index first on.
func inputs(ctx *kernel.Context, first, n int) []*tensor.Tensor {
	out := membudget.Make[*tensor.Tensor](n)
	for i := range out {
		out[i] = ctx.Input(first + i)
	}
	return out
}

// singles is like scalars, but accepts inputs of any shape with one element.
func singles(ctx *kernel.Context, name string, first, n int) ([]string, error) {
	out := membudget.Make[string](n)
	for i, t := range inputs(ctx, first, n) {
		if t.NumElements() != 1 {
			return nil, notScalar(name, i, t)
		}
		out[i] = tensor.Values[string](t)[0]
	}
	return out, nil
}

func notScalar(name string, i int, t *tensor.Tensor) error {
	return status.InvalidArgumentf("Expected %s[%d] to be a scalar, got shape: %v", name, i, t.Shape())
}

// scalars returns the strings of n scalar inputs from index first on. name is the argument's name
// in errors.
func scalars(ctx *kernel.Context, name string, first, n int) ([]string, error) {
	out := membudget.Make[string](n)
	for i, t := range inputs(ctx, first, n) {
		if t.Rank() != 0 {
			return nil, notScalar(name, i, t)
		}
		out[i] = tensor.Value[string](t)
	}
	return out, nil
}

func (e *example) names(ctx *kernel.Context) names {
	if e.version == 0 {
		return nil
	}
	return tensor.Values[string](ctx.Input(1))
}

func (e *example) check(serialized *tensor.Tensor, ctx *kernel.Context, k keys, fills int) error {
	rank, w := serialized.Rank(), e.wanted
	switch {
	case e.version == 0 && rank != 0:
		return status.InvalidArgumentf("Expected serialized to be a scalar, got shape: %v", serialized.Shape())
	case e.version == 1 && rank != 1:
		return status.InvalidArgumentf("Expected serialized to be a vector, got shape: %v", serialized.Shape())
	case e.version == 2 && rank > 1:
		return status.InvalidArgumentf("Expected serialized to be a scalar or vector, got shape: %v", serialized.Shape())
	case e.version != 0 && ctx.Input(1).NumElements() > 0 && !ctx.Input(1).Shape().Equal(serialized.Shape()):
		return status.InvalidArgumentf("Expected names have the same shape as serialized: name.shape=%v, serialized.shape=%v",
			ctx.Input(1).Shape(), serialized.Shape())
	case len(k.dense) != len(w.dense):
		return status.InvalidArgumentf("Expected len(dense_keys) == len(dense_types) but got: %d vs. %d", len(k.dense), len(w.dense))
	case len(k.sparse) != len(w.sparse):
		return status.InvalidArgumentf("Expected len(sparse_keys) == num_sparse but got: %d vs. %d", len(k.sparse), len(w.sparse))
	case len(k.ragged) != len(w.ragged):
		return status.InvalidArgumentf("Expected len(ragged_keys) == len(ragged_value_types) but got: %d vs. %d", len(k.ragged), len(w.ragged))
	case fills != len(w.dense):
		return status.InvalidArgumentf("Expected len(dense_defaults) == len(dense_keys) but got: %d vs. %d", fills, len(w.dense))
	}
	return nil
}
