package op

// AddToCollection adds values to the named collection of the graph, as TensorFlow's graphs have them: variables under
// "variables", training operations under "train_op".
func (s *Scope) AddToCollection(name string, values ...any) {
	s.b.collections[name] = append(s.b.collections[name], values...)
}

// Collection returns the values of the named collection of the graph, which must not be modified.
func (s *Scope) Collection(name string) []any { return s.b.collections[name] }
