package op

import (
	"maps"
	"slices"
)

// CollectionMessage is a value of a collection that a MetaGraph stores as a serialized message, for
// example a variable. Other values are nodes, outputs, integers, floating-point numbers and
// strings.
type CollectionMessage interface {
	// MarshalCollection returns the serialized message, such as a tensorflow.VariableDef.
	MarshalCollection() ([]byte, error)
}

// AddToCollection adds values to the named collection of the graph. TensorFlow's programs expect
// variables in "variables" and training operations in "train_op".
func (s *Scope) AddToCollection(name string, values ...any) {
	s.b.collections[name] = append(s.b.collections[name], values...)
}

// Collection returns the values of the named collection of the graph. The caller must not modify
// the slice.
func (s *Scope) Collection(name string) []any { return s.b.collections[name] }

// Collections returns the names of all collections that have a value, sorted.
func (s *Scope) Collections() []string { return slices.Sorted(maps.Keys(s.b.collections)) }
