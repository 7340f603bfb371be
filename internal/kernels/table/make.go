package table

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/numeric/murmur"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// kind is a kind of table.
type kind struct {
	name, doc string // name and documentation of the operation that creates the table, first form
	// inputs of the newer forms; the first form has only inputs[0]
	in     []string
	attrs  []string                        // besides types and names
	types  map[tensor.DType][]tensor.DType // value dtypes by key dtype
	shape  opdef.ShapeFn                   // shape function of the handle
	create func(*kernel.Context, *kernel.Construction) (contents, layout, error)
}

// numbers are the value dtypes supported for every key dtype.
var numbers = []tensor.DType{tensor.Float64, tensor.Float32, tensor.Int32}

// mutableTypes lists the value dtypes of mutable tables by key dtype.
var mutableTypes = map[tensor.DType][]tensor.DType{
	tensor.Int32:  numbers,
	tensor.Int64:  append(slices.Clone(numbers), tensor.Int64, tensor.String),
	tensor.String: append(slices.Clone(numbers), tensor.Int64, tensor.Bool),
}

// with returns a copy of types with further value dtypes for a key dtype.
func with(types map[tensor.DType][]tensor.DType, key tensor.DType, more ...tensor.DType) map[tensor.DType][]tensor.DType {
	out := map[tensor.DType][]tensor.DType{}
	for k, v := range types {
		out[k] = slices.Clone(v)
	}
	out[key] = append(out[key], more...)
	return out
}

var kinds = []*kind{
	{
		name: "HashTable", doc: "Returns a handle to an immutable hash table, which another operation initializes.",
		types: with(with(mutableTypes, tensor.Int32, tensor.String), tensor.String, tensor.String), shape: opdef.ScalarShape, create: createFixed,
	},
	{
		name: "MutableHashTable", doc: "Returns a handle to a mutable hash table.",
		types: with(mutableTypes, tensor.Int64, tensor.Variant), shape: scalarsShape, create: createMutable,
	},
	{
		name: "MutableHashTableOfTensors", doc: "Returns a handle to a mutable hash table whose values are vectors.",
		attrs: []string{"value_shape: shape = []"}, types: mutableTypes, shape: vectorsShape, create: createOfTensors,
	},
	{
		name: "MutableDenseHashTable",
		doc: "Returns a handle to a mutable hash table with open addressing. Keys and values " +
			"may be vectors. Two reserved keys mark empty and deleted buckets.",
		in:    []string{"empty_key: key_dtype", "deleted_key: key_dtype"},
		attrs: []string{"value_shape: shape = []", "initial_num_buckets: int = 131072", "max_load_factor: float = 0.8"},
		types: map[tensor.DType][]tensor.DType{
			tensor.Int32:  numbers,
			tensor.Int64:  append(slices.Clone(numbers), tensor.Int64, tensor.Bool, tensor.Variant),
			tensor.String: append(slices.Clone(numbers), tensor.Int64, tensor.Bool, tensor.Resource),
		},
		shape: denseShape, create: createDense,
	},
}

func init() {
	for _, k := range kinds {
		k.register()
	}
}

// register registers the three operations that create such a table: one returns a string reference,
// one a named handle, and one an anonymous handle.
func (k *kind) register() {
	types := []string{"key_dtype: type", "value_dtype: type"}
	names := []string{"container: string = ''", "shared_name: string = ''", "use_node_name_sharing: bool = false"}
	def := opdef.Def{Doc: k.doc, Stateful: true, Attrs: slices.Concat(names, types, k.attrs)}

	old := def
	old.Name, old.In, old.Out, old.Shape = k.name, k.in[:min(1, len(k.in))], []string{"table_handle: Ref(string)"}, resource.NamesShape
	kernel.Register(kernel.Op{Def: old, Kernels: k.kernels(k.named)})

	named := def
	named.Name, named.In, named.Out, named.Shape = k.name+"V2", k.in, []string{"table_handle: resource"}, k.shape
	kernel.Register(kernel.Op{Def: named, Kernels: k.kernels(k.named)})

	anonymous := named
	//sizedmake:ok attributes of an operation
	anonymous.Name, anonymous.Attrs = "Anonymous"+k.name, slices.Concat(types, k.attrs)
	kernel.Register(kernel.Op{Def: anonymous, Kernels: k.kernels(k.anonymous)})
}

func (k *kind) kernels(n kernel.New) []kernel.Impl {
	var impls []kernel.Impl
	for _, key := range []tensor.DType{tensor.Int32, tensor.Int64, tensor.String} {
		types := []kernel.Constraint{kernel.OfType("key_dtype", key), kernel.OfType("value_dtype", k.types[key]...)}
		impls = append(impls, kernel.Impl{Types: types, New: n})
	}
	return impls
}

func (k *kind) named(c *kernel.Construction) (kernel.Kernel, error) {
	key, value := c.Attrs.Type("key_dtype"), c.Attrs.Type("value_dtype")
	container := c.Attrs.String("container")
	if container == "" {
		container = c.Device.Resources.DefaultContainer()
	}
	return resource.Maker[*Table]{
		Create: func(ctx *kernel.Context, name string) (*Table, error) { return k.table(ctx, c, container, name) },
		Verify: func(t *Table) error {
			if t.keyType != key || t.valueType != value {
				return status.InvalidArgumentf("Conflicting key/value dtypes %v->%v with %v-%v for table %s",
					key, value, t.keyType, t.valueType, t.name)
			}
			return nil
		},
		ByNode: c.Attrs.Bool("use_node_name_sharing"),
	}.Kernel(c)
}

func (k *kind) table(ctx *kernel.Context, c *kernel.Construction, container, name string) (*Table, error) {
	contents, layout, err := k.create(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Table{container: container, name: name, layout: layout, contents: contents}, nil
}

var lastAnonymous atomic.Int64

func (k *kind) anonymous(c *kernel.Construction) (kernel.Kernel, error) {
	return kernel.Func(func(ctx *kernel.Context) error {
		const container = "Anonymous"
		t, err := k.table(ctx, c, container, fmt.Sprintf("Resource-%d", lastAnonymous.Add(1)-1))
		if err != nil {
			return err
		}
		ctx.SetOutput(0, tensor.Scalar(&tensor.Handle{
			Device: ctx.Device.Name, Container: container, Name: t.name,
			HashCode: murmur.Sum64(t.TypeName()), TypeName: t.TypeName(), Resource: t,
		}))
		return nil
	}), nil
}

func scalarsShape(c *opdef.ShapeContext) error { return handleShape(c, shapefn.Of(), shapefn.Of()) }

func vectorsShape(c *opdef.ShapeContext) error {
	return handleShape(c, shapefn.Of(), c.Attrs.Shape("value_shape"))
}

func denseShape(c *opdef.ShapeContext) error {
	key, err := opdef.WithRankAtMost(c.In[0], 1)
	if err != nil {
		return err
	}
	return handleShape(c, key, c.Attrs.Shape("value_shape"))
}

// handleShape is the shape function of handles to tables with known key and value shapes.
func handleShape(c *opdef.ShapeContext, key, value shapefn.Shape) error {
	c.Out[0] = shapefn.Of()
	c.OutHandles[0] = []tensor.HandleElem{{DType: c.Attrs.Type("key_dtype"), Shape: key}, {DType: c.Attrs.Type("value_dtype"), Shape: value}}
	return nil
}
