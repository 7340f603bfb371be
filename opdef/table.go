package opdef

import (
	"sync"
	"sync/atomic"
)

// Table is a fixed list of definitions, from which clients build graphs. It has no shape functions
// of its own, but uses those of registered operations (see [RegisterShapes]). It implements
// [Lookup] and may be used concurrently.
type Table struct {
	defs []Def

	once  sync.Once
	index map[string]int // position in defs, by name

	mu     sync.Mutex
	parsed map[string]*Op // parsed definitions, by name; guarded by mu
}

// NewTable returns a table of the given definitions. Each is parsed at its first lookup.
func NewTable(defs []Def) *Table { return &Table{defs: defs, parsed: map[string]*Op{}} }

// registered holds the operations with shape functions that the program links; nil for none.
var registered atomic.Pointer[Lookup]

// RegisterShapes makes all tables return the operations of ops, which have shape functions, instead
// of their own. Package kernels calls it once, during initialization. Programs that do not link the
// kernels have no shape functions.
func RegisterShapes(ops Lookup) { registered.Store(&ops) }

// LookupOp returns the operation of the given name, and whether there is one. It prefers the
// registered operation, which has a shape function, to the table's own. It panics if a definition
// of the table is malformed, because tables are source code.
func (t *Table) LookupOp(name string) (*Op, bool) {
	if ops := registered.Load(); ops != nil {
		if op, ok := (*ops).LookupOp(name); ok {
			return op, true
		}
	}
	t.once.Do(func() {
		t.index = make(map[string]int, len(t.defs))
		for i := range t.defs {
			t.index[t.defs[i].Name] = i
		}
	})
	i, ok := t.index[name]
	if !ok {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	op := t.parsed[name]
	if op == nil {
		var err error
		if op, err = t.defs[i].Parse(); err != nil {
			panic("opdef: " + err.Error())
		}
		t.parsed[name] = op
	}
	return op, true
}
