package kernel

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/tensor"
)

// Variable is the storage of a variable, behind a reference edge or a resource handle. Readers
// share its elements. A writer works in place if it is the only holder, and on a copy otherwise, so
// a value that was read never changes.
type Variable struct {
	id uint64 // order for locking several variables
	// declared shape; constant after NewVariableOf
	declared tensor.PartialShape

	mu sync.RWMutex
	t  tensor.Tensor // guarded by mu; not initialized until the first assignment
}

var lastVariable atomic.Uint64

// NewVariable returns a variable without a value.
func NewVariable() *Variable { return &Variable{id: lastVariable.Add(1)} }

// NewVariableOf returns a variable without a value and with a declared shape, as reference
// variables have.
func NewVariableOf(declared tensor.PartialShape) *Variable {
	v := NewVariable()
	v.declared = declared
	return v
}

// Declared returns the declared shape; of unknown rank for most variables.
func (v *Variable) Declared() tensor.PartialShape { return v.declared }

// TypeName returns the type name in handles and errors, which is TensorFlow's.
func (*Variable) TypeName() string { return "N10tensorflow3VarE" }

// Load returns the value with a new reference, which the caller owns. The result is not initialized
// if the variable has no value.
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

// Store sets the value to t and takes over its reference.
func (v *Variable) Store(t tensor.Tensor) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.t.Release()
	v.t = t
}

// Update calls f with the value under the variable's lock. f may replace the value or, after
// [Context.Writable], write to it.
func (v *Variable) Update(f func(t *tensor.Tensor) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return f(&v.t)
}

// LockAll locks variables in an order that cannot deadlock. A variable that is given several times
// is locked once. It returns pointers to their values, in the order of the arguments, and the
// function that unlocks them.
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
