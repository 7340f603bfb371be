// Package table holds lookup tables: hash tables that are filled once, from tensors or a file of
// lines, and hash tables that steps change. A table is a resource, so that steps and sessions share
// it.
//
// Contents are kept apart from types: keys, of one of three types, are numbered (index), and the
// values of key i are row i of a tensor (column). The dense table alone keeps its keys in buckets,
// because it exports them, into checkpoints, the way they lie; they lie as in TensorFlow's.
package table

import (
	"slices"
	"sync"

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

// layout is what the keys and values of a table look like. The shape of a key is that of a scalar,
// except in dense tables.
type layout struct {
	keyType, valueType   tensor.DType
	keyShape, valueShape tensor.Shape
}

// contents is what kinds of tables differ in. Types of arguments have been checked, and shapes
// except those of replace.
type contents interface {
	size() int
	// find sets out to the values of keys, or to default values, of which there is one for all or
	// one for each key.
	find(out, keys, defaults *tensor.Tensor) error
	insert(keys, values *tensor.Tensor) error
	remove(keys *tensor.Tensor) error
	// replace makes keys and values, as export gives them, the whole contents.
	replace(keys, values *tensor.Tensor) error
	// export returns keys and values, which may be shared with the table until it changes.
	export() (keys, values tensor.Tensor, err error)
}

// checkKeys checks the shape of a tensor of keys.
func (l *layout) checkKeys(keys *tensor.Tensor) error {
	if !endsWith(keys.Shape(), l.keyShape) {
		return status.InvalidArgumentf("Input key shape %v must end with the table's key shape %v", keys.Shape(), l.keyShape)
	}
	return nil
}

// valuesOf returns the shape of the values of keys, which have been checked.
func (l *layout) valuesOf(keys *tensor.Tensor) tensor.Shape {
	return slices.Concat(keys.Shape()[:keys.Rank()-len(l.keyShape)], l.valueShape)
}

// checkDefault checks keys to be found and the values of those that are absent.
func (l *layout) checkDefault(keys, value *tensor.Tensor) error {
	if err := l.checkKeys(keys); err != nil {
		return err
	}
	if full := l.valuesOf(keys); !value.Shape().Equal(l.valueShape) && !value.Shape().Equal(full) {
		return status.InvalidArgumentf("Expected shape %v or %v for default value, got %v", l.valueShape, full, value.Shape())
	}
	return nil
}

// checkPairs checks keys and values to be inserted.
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
