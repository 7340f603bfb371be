package op

import (
	"maps"
	"slices"
)

// CollectionMessage is a value of a collection that a MetaGraph holds as a serialized message, a
// variable for instance. Values of other kinds are nodes, outputs, integers, floating-point numbers
// and texts.
type CollectionMessage interface {
	// MarshalCollection returns the serialized message, such as a tensorflow.VariableDef.
	MarshalCollection() ([]byte, error)
}

// AddToCollection adds values to the named collection of the graph, as TensorFlow's graphs have
// them: variables under "variables", training operations under "train_op".
func (s *Scope) AddToCollection(name string, values ...any) {
	s.b.collections[name] = append(s.b.collections[name], values...)
}

// Collection returns the values of the named collection of the graph, which must not be modified.
func (s *Scope) Collection(name string) []any { return s.b.collections[name] }

// Collections returns the names of all collections of the graph that have a value, in order.
func (s *Scope) Collections() []string { return slices.Sorted(maps.Keys(s.b.collections)) }
