// Package table implements lookup tables: immutable hash tables, initialized from tensors or a text
// file, and mutable hash tables. A table is a resource shared by steps and sessions.
//
// Contents are stored independently of dtypes. Keys, of one of three types, are numbered (index),
// and the values of key i are row i of a tensor (column). Only the dense table keeps its keys in
// buckets, because it exports the buckets themselves into checkpoints. Their layout equals
// TensorFlow's.
package table

import (
	"context"
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Table is a lookup table of any kind.
type Table struct {
	container, name string
	layout

	mu       sync.RWMutex
	contents contents // guarded by mu
}

// TypeName names the resource as TensorFlow does.
func (*Table) TypeName() string { return "N10tensorflow6lookup15LookupInterfaceE" }

// layout describes the dtypes and shapes of a table's keys and values. Keys are scalars except in
// dense tables.
type layout struct {
	keyType, valueType   tensor.DType
	keyShape, valueShape tensor.Shape
}

// contents is the storage of one kind of table. The caller has checked the dtypes of arguments, and
// their shapes except those of replace.
type contents interface {
	size() int
	// find sets out to the values of keys. An absent key has a default value; defaults holds one
	// for all keys or one for each.
	find(ctx context.Context, out, keys, defaults *tensor.Tensor) error
	// The account, which may be nil, pays for what the table takes. If a table cannot grow, its
	// contents are unchanged.
	insert(ctx context.Context, a *membudget.Account, keys, values *tensor.Tensor) error
	remove(ctx context.Context, a *membudget.Account, keys *tensor.Tensor) error
	// replace sets the contents to keys and values in the form returned by export.
	replace(ctx context.Context, a *membudget.Account, keys, values *tensor.Tensor) error
	// export returns keys and values, which the table may share until it changes.
	export() (keys, values tensor.Tensor, err error)
	// close ends charges of memory that is in no tensor. The table may be used until it is garbage.
	close()
}

// Close implements kernel.Closer. It is called when the table is not found by name any longer.
func (t *Table) Close() { t.contents.close() }

// checkKeys checks the shape of a tensor of keys.
func (l *layout) checkKeys(keys *tensor.Tensor) error {
	if !endsWith(keys.Shape(), l.keyShape) {
		return status.InvalidArgumentf("Input key shape %v must end with the table's key shape %v", keys.Shape(), l.keyShape)
	}
	return nil
}

// valuesOf returns the shape of the values of keys, which must have been checked.
func (l *layout) valuesOf(keys *tensor.Tensor) tensor.Shape {
	return slices.Concat(keys.Shape()[:keys.Rank()-len(l.keyShape)], l.valueShape)
}

// checkDefault checks keys to look up and default values.
func (l *layout) checkDefault(keys, value *tensor.Tensor) error {
	if err := l.checkKeys(keys); err != nil {
		return err
	}
	if full := l.valuesOf(keys); !value.Shape().Equal(l.valueShape) && !value.Shape().Equal(full) {
		return status.InvalidArgumentf("Expected shape %v or %v for default value, got %v", l.valueShape, full, value.Shape())
	}
	return nil
}

// checkPairs checks keys and values to insert.
func (l *layout) checkPairs(keys, values *tensor.Tensor) error {
	if err := l.checkKeys(keys); err != nil {
		return err
	}
	if want := l.valuesOf(keys); !values.Shape().Equal(want) {
		return wrongValues(want, values)
	}
	return nil
}

func wrongValues(want tensor.Shape, values *tensor.Tensor) error {
	return status.InvalidArgumentf("Expected shape %v for value, got %v", want, values.Shape())
}

func endsWith(s, end tensor.Shape) bool {
	return len(s) >= len(end) && s[len(s)-len(end):].Equal(end)
}
