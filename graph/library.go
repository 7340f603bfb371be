package graph

import (
	"maps"
	"slices"
	"sync"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// Library holds the functions of a graph. Copies of a graph share it. Its methods may be called
// concurrently, except that only one goroutine at a time may add or remove functions.
type Library struct {
	mu        sync.RWMutex
	functions map[string]*Function // guarded by mu
	// name of the gradient function by name of the function; guarded by mu
	gradient map[string]string
}

// Function is a function of a library.
type Function struct {
	Def FunctionDef
}

func newLibrary() *Library {
	return &Library{functions: map[string]*Function{}, gradient: map[string]string{}}
}

// Lookup returns the function of the given name, and whether there is one.
func (l *Library) Lookup(name string) (*Function, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	f, ok := l.functions[name]
	return f, ok
}

// Gradient returns the name of the gradient function of the given function, or "".
func (l *Library) Gradient(name string) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.gradient[name]
}

// Len returns the number of functions.
func (l *Library) Len() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.functions)
}

// Names returns the names of all functions, sorted.
func (l *Library) Names() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.functions))
}

// Add adds functions and gradients, or nothing if there is an error. It ignores functions that the
// library contains already. It fails with InvalidArgument if a different function of the same name,
// a different gradient of the same function, or an operation of ops with the name of a function
// exists.
func (l *Library) Add(functions []FunctionDef, gradient map[string]string, ops opdef.Lookup) error {
	add, err := l.stage(functions, gradient, ops)
	if err == nil {
		l.commit(add)
	}
	return err
}

// addition holds the checked additions to a library.
type addition struct {
	functions map[string]*Function
	gradient  map[string]string
}

// stage checks additions and returns them for commit. No other additions may be made between the
// two.
func (l *Library) stage(functions []FunctionDef, gradient map[string]string, ops opdef.Lookup) (addition, error) {
	add := addition{functions: make(map[string]*Function, len(functions)), gradient: gradient}
	functions, err := l.renewed(functions, ops)
	if err != nil {
		return add, err
	}
	for i := range functions {
		def := &functions[i]
		name := def.Signature.Name
		if name == "" {
			return add, status.InvalidArgumentf("function %d of the library has no name", i)
		}
		old, ok := l.Lookup(name)
		if !ok {
			old, ok = add.functions[name]
		}
		if ok {
			if !sameFunction(&old.Def, def) {
				return add, status.InvalidArgumentf("Cannot add function '%s' because a different function with the same name "+
					"already exists.", name)
			}
			continue
		}
		if _, isOp := ops.LookupOp(name); isOp {
			return add, status.InvalidArgumentf("Cannot add function '%s' because an op with the same name already exists.", name)
		}
		add.functions[name] = &Function{Def: *def}
	}
	for name, grad := range gradient {
		if old := l.Gradient(name); old != "" && old != grad {
			return add, status.InvalidArgumentf("Cannot assign gradient function '%s' to '%s' because it already has gradient "+
				"function '%s'", grad, name, old)
		}
	}
	return add, nil
}

func (l *Library) commit(add addition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.functions, add.functions)
	maps.Copy(l.gradient, add.gradient)
}

// Remove removes a function and reports whether there was one. Bodies that have been instantiated
// stay valid.
func (l *Library) Remove(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.functions[name]
	delete(l.functions, name)
	delete(l.gradient, name)
	return ok
}
