package table

import (
	"context"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerForms(opdef.Def{
		Name: "InitializeTable", Doc: "Initializes a table with keys and values. An initialized table is unchanged if " +
			"it has the same number of keys.",
		In: []string{"keys: Tkey", "values: Tval"}, Attrs: []string{"Tkey: type", "Tval: type"}, Shape: pairsShape(namesOnly),
	}, "InitializeTableV2", pairsShape(handleOnly), onTable(initialize, takesKey, takesValue))
	registerForms(opdef.Def{
		Name: "InitializeTableFromTextFile",
		Doc: "Initializes a table from a text file, with one entry for each line. key_index " +
			"and value_index are column indices, -1 for the line number plus offset, or -2 " +
			"for the whole line.",
		In: []string{"filename: string"},
		Attrs: []string{
			"key_index: int >= -2", "value_index: int >= -2", "vocab_size: int >= -1 = -1", `delimiter: string = '\t'`, "offset: int = 0",
		},
		Class: opdef.FilesRead, Shape: fileShape(namesOnly),
	}, "InitializeTableFromTextFileV2", fileShape(handleOnly), newFromFile)
}

// fixed returns the contents of an immutable table.
func (t *Table) fixed() (*fixed, error) {
	f, ok := t.contents.(*fixed)
	if !ok {
		return nil, status.InvalidArgumentf("Table %s %s is not initializable", t.container, t.name)
	}
	return f, nil
}

func initialize(ctx *kernel.Context, t *Table) error {
	if _, err := t.fixed(); err != nil {
		return err
	}
	keys, values := ctx.Input(1), ctx.Input(2)
	switch {
	case keys.Rank() != 1:
		return status.InvalidArgumentf("Keys must be a vector, but received shape%v", keys.Shape())
	case values.Rank() != 1:
		return status.InvalidArgumentf("Values must be a vector, but received shape%v", values.Shape())
	case keys.NumElements() != values.NumElements():
		return status.InvalidArgumentf("Keys and values must have the same size %d vs %d", keys.NumElements(), values.NumElements())
	}
	return replace(ctx, t)
}

// pairsShape is the shape function of operations that take vectors of keys and values.
func pairsShape(handle opdef.ShapeFn) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		if err := handle(c); err != nil {
			return err
		}
		keys, err := opdef.WithRank(c.In[1], 1)
		if err == nil {
			_, err = opdef.MergeShapes(keys, c.In[2])
		}
		return err
	}
}

// fileShape is the shape function of operations that take a file name.
func fileShape(handle opdef.ShapeFn) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		if err := handle(c); err != nil {
			return err
		}
		_, err := opdef.WithRank(c.In[1], 0)
		return err
	}
}

func newFromFile(c *kernel.Construction) (kernel.Kernel, error) {
	delimiter := c.Attrs.String("delimiter")
	if len(delimiter) != 1 {
		return nil, status.InvalidArgumentf("delimiter should be only 1 char")
	}
	v := vocabulary{
		key: c.Attrs.Int("key_index"), value: c.Attrs.Int("value_index"), size: c.Attrs.Int("vocab_size"),
		delimiter: delimiter, offset: int64(c.Attrs.Int("offset")),
	}
	return kernel.WithFiles(func(ctx *kernel.Context, files fileio.Files) error {
		t, err := resource.Find[*Table](ctx, 0)
		if err != nil {
			return err
		}
		name, err := fileName(ctx, 1, "filename", "filename")
		if err != nil {
			return err
		}
		return v.fill(ctx.Context(), resource.Account(ctx), files, t, name)
	})(c)
}

// Types returns the dtypes of keys and values.
func (t *Table) Types() (key, value tensor.DType) { return t.keyType, t.valueType }

// Initialize fills an immutable table with vectors of keys and values, unless it is already
// initialized. The account, which may be nil, pays for it.
func (t *Table) Initialize(ctx context.Context, a *membudget.Account, keys, values *tensor.Tensor) error {
	f, err := t.fixed()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.ready {
		return nil
	}
	return f.replace(ctx, a, keys, values)
}
