package kernel

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/tensor"
)

// Variable is the storage of a variable, behind a reference edge or a resource handle. Readers
// share its elements; a writer works in place when nobody else holds them and on a copy otherwise,
// so that a value once read never changes.
type Variable struct {
	id uint64 // order in which several variables are locked
	// what the graph says of the shape; not changed after NewVariableOf
	declared tensor.PartialShape

	mu sync.RWMutex
	t  tensor.Tensor // guarded by mu; not initialized until the first assignment
}

var lastVariable atomic.Uint64

// NewVariable returns a variable without a value.
func NewVariable() *Variable { return &Variable{id: lastVariable.Add(1)} }

// NewVariableOf returns a variable without a value whose shape is declared, as reference variables
// have it.
func NewVariableOf(declared tensor.PartialShape) *Variable {
	v := NewVariable()
	v.declared = declared
	return v
}

// Declared returns what was known of the shape when the variable was made; nothing for most.
func (v *Variable) Declared() tensor.PartialShape { return v.declared }

// TypeName names the resource in handles and errors as TensorFlow does.
func (*Variable) TypeName() string { return "N10tensorflow3VarE" }

// Load returns the value with a reference of its own; it is not initialized if the variable is not.
func (v *Variable) Load() tensor.Tensor {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.t.Retain()
}

// Initialized reports whether the variable has a value.
func (v *Variable) Initialized() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.t.Initialized()
}

// Store makes t the value and takes its reference.
func (v *Variable) Store(t tensor.Tensor) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.t.Release()
	v.t = t
}

// Update calls f with the value, under the variable's lock. f may replace it or, after [Writable],
// write to it.
func (v *Variable) Update(f func(t *tensor.Tensor) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return f(&v.t)
}

// Writable returns the value *t of a variable inside Update or LockAll with elements that may be
// written: its own if nobody else holds them, otherwise a copy, for which there may be no memory.
func Writable(t *tensor.Tensor) (*tensor.Tensor, error) {
	if t.Initialized() && !t.Exclusive() {
		own, err := t.Clone()
		if err != nil {
			return nil, err
		}
		t.Release()
		*t = own
	}
	return t, nil
}

// LockAll locks variables, in an order that cannot deadlock and each once however often it is
// given, and returns pointers to their values in the order of the arguments and the function that
// unlocks them.
func LockAll(vars ...*Variable) (values []*tensor.Tensor, unlock func()) {
	order := slices.Clone(vars)
	slices.SortFunc(order, func(a, b *Variable) int {
		switch {
		case a.id < b.id:
			return -1
		case a.id > b.id:
			return 1
		}
		return 0
	})
	order = slices.Compact(order)
	for _, v := range order {
		v.mu.Lock()
	}
	values = make([]*tensor.Tensor, len(vars))
	for i, v := range vars {
		values[i] = &v.t
	}
	return values, func() {
		for _, v := range order {
			v.mu.Unlock()
		}
	}
}
