package table

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	pairs := []string{"keys: Tin", "values: Tout"}
	types := []string{"Tin: type", "Tout: type"}
	registerForms(opdef.Def{
		Name: "LookupTableInsert", Doc: "Inserts or updates keys of a table with values.",
		In: pairs, Attrs: types, Shape: namesOnly,
	}, "LookupTableInsertV2", handleOnly, onTable(insert, takesKey, takesValue))
	registerForms(opdef.Def{
		Name: "LookupTableImport", Doc: "Replaces the contents of a table with keys and values, as returned by LookupTableExport.",
		In: pairs, Attrs: types, Shape: namesOnly,
	}, "LookupTableImportV2", importShape, onTable(replace, takesKey, takesValue))
	kernel.RegisterNew(opdef.Def{
		Name: "LookupTableRemoveV2", Doc: "Removes keys from a table. Keys that are not in the table are ignored.",
		In: []string{"table_handle: resource", "keys: Tin"}, Attrs: []string{"Tin: type"}, Stateful: true, Shape: removeShape,
	}, onTable(remove, takesKey))
}

func insert(ctx *kernel.Context, t *Table) error {
	keys, values := ctx.Input(1), ctx.Input(2)
	if err := t.checkPairs(keys, values); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.contents.insert(ctx.Context(), resource.Account(ctx), keys, values)
}

func replace(ctx *kernel.Context, t *Table) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.contents.replace(ctx.Context(), resource.Account(ctx), ctx.Input(1), ctx.Input(2))
}

func remove(ctx *kernel.Context, t *Table) error {
	keys := ctx.Input(1)
	if err := t.checkKeys(keys); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.contents.remove(ctx.Context(), resource.Account(ctx), keys)
}

func namesOnly(c *opdef.ShapeContext) error { return resource.CheckNames(c, 0) }

func handleOnly(c *opdef.ShapeContext) error {
	_, err := opdef.WithRank(c.In[0], 0)
	return err
}

func importShape(c *opdef.ShapeContext) error {
	if err := handleOnly(c); err != nil {
		return err
	}
	keys, err := opdef.WithRank(c.In[1], 1)
	if err != nil {
		return err
	}
	values, err := opdef.WithRankAtLeast(c.In[2], 1)
	if err == nil {
		_, err = opdef.MergeDims(keys.Dim(0), values.Dim(0))
	}
	return err
}

func removeShape(c *opdef.ShapeContext) error {
	if err := handleOnly(c); err != nil {
		return err
	}
	_, err := opdef.WithRankAtLeast(c.In[1], 1)
	return err
}
