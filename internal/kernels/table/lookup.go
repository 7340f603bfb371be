package table

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	types := []string{"Tin: type", "Tout: type"}
	registerForms(opdef.Def{
		Name: "LookupTableFind", Doc: "Returns the values of keys in a table, or default values for keys that are not in it.",
		In: []string{"keys: Tin", "default_value: Tout"}, Out: []string{"values: Tout"}, Attrs: types, Shape: findShape,
	}, "LookupTableFindV2", findShapeV2, onTable(find, takesKey, takesValue))
	registerForms(opdef.Def{
		Name: "LookupTableSize", Doc: "Returns the number of entries in a table.",
		Out: []string{"size: int64"}, Shape: resource.ByNamesShape,
	}, "LookupTableSizeV2", sizeShape, onTable(size))
	registerForms(opdef.Def{
		Name: "LookupTableExport", Doc: "Returns all keys and values of a table, in no particular order.",
		Out: []string{"keys: Tkeys", "values: Tvalues"}, Attrs: []string{"Tkeys: type", "Tvalues: type"}, Shape: exportShape,
	}, "LookupTableExportV2", exportShapeV2, onTable(export))
}

// registerForms registers both forms of an operation on a table.
func registerForms(def opdef.Def, newName string, newShape opdef.ShapeFn, impl kernel.New) {
	resource.RegisterForms("table_handle", def, newName, newShape, impl)
}

// takes identifies which dtype of a table an input after the handle has.
type takes int

const (
	takesKey takes = iota
	takesValue
)

// onTable returns the constructor of kernels that call f with the table behind input 0. The other
// inputs are keys and values of the table, as listed. An operation with listed inputs or several
// outputs returns keys and values as well.
func onTable(f func(*kernel.Context, *Table) error, inputs ...takes) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		in, out := c.Inputs, c.Outputs
		return kernel.Func(func(ctx *kernel.Context) error {
			t, err := resource.Find[*Table](ctx, 0)
			if err != nil {
				return err
			}
			if err := t.checkTypes(in, out, inputs); err != nil {
				return err
			}
			return f(ctx, t)
		}), nil
	}
}

// checkTypes compares the dtypes of a node with those of the table. The outputs are a size, values,
// or keys and values.
func (t *Table) checkTypes(in, out []tensor.DType, inputs []takes) error {
	types := []tensor.DType{takesKey: t.keyType, takesValue: t.valueType}
	wantIn, wantOut := in[:1:1], out
	for _, what := range inputs {
		wantIn = append(wantIn, types[what])
	}
	switch {
	case len(out) == 2:
		wantOut = types
	case len(out) == 1 && len(inputs) > 0:
		wantOut = types[takesValue:]
	}
	return resource.CheckSignature(in, out, wantIn, wantOut)
}

func find(ctx *kernel.Context, t *Table) error {
	keys, defaults := ctx.Input(1), ctx.Input(2)
	if err := t.checkDefault(keys, defaults); err != nil {
		return err
	}
	out, err := ctx.Allocate(0, t.valuesOf(keys))
	if err != nil {
		return err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.contents.find(ctx.Context(), out, keys, defaults)
}

func size(ctx *kernel.Context, t *Table) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	ctx.SetOutput(0, tensor.Scalar(int64(t.contents.size())))
	return nil
}

func export(ctx *kernel.Context, t *Table) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	keys, values, err := t.contents.export()
	if err != nil {
		return err
	}
	ctx.SetOutput(0, keys)
	ctx.SetOutput(1, values)
	return nil
}

func findShape(c *opdef.ShapeContext) error {
	if err := resource.CheckNames(c, 0); err != nil {
		return err
	}
	_, err := opdef.WithRankAtMost(c.In[2], 1)
	return err
}

// elems returns the inferred key and value types of the table behind input 0, after checking them
// against the node's types.
func elems(c *opdef.ShapeContext, types ...tensor.DType) (key, value tensor.HandleElem, known bool, err error) {
	if _, err := opdef.WithRank(c.In[0], 0); err != nil {
		return key, value, false, err
	}
	all := c.InHandles[0]
	if len(all) != 2 {
		return key, value, false, nil
	}
	for i, want := range types {
		if all[i].DType != want {
			return key, value, false, status.InvalidArgumentf("Trying to read value with wrong dtype. Expected %v got %v", all[i].DType, want)
		}
	}
	return all[0], all[1], true, nil
}

func findShapeV2(c *opdef.ShapeContext) error {
	key, value, known, err := elems(c, c.Attrs.Type("Tin"), c.Attrs.Type("Tout"))
	if err != nil || !known || !key.Shape.RankKnown() || !c.In[1].RankKnown() {
		return err
	}
	batch := c.In[1].Rank() - key.Shape.Rank()
	if batch < 0 {
		return status.InvalidArgumentf("Expected keys to have suffix %v but saw shape: %v", key.Shape, c.In[1])
	}
	c.Out[0] = shapefn.Concat(shapefn.Sub(c.In[1], 0, batch), value.Shape)
	return nil
}

func sizeShape(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRank(c.In[0], 0); err != nil {
		return err
	}
	return opdef.ScalarShape(c)
}

func exportShape(c *opdef.ShapeContext) error {
	c.Out[0] = tensor.UnknownDims(1)
	return resource.CheckNames(c, 0)
}

func exportShapeV2(c *opdef.ShapeContext) error {
	_, _, _, err := elems(c, c.Attrs.Type("Tkeys"), c.Attrs.Type("Tvalues"))
	return err
}
