package opdef

import (
	"sync"
	"sync/atomic"
)

// Table is a fixed list of definitions: what a client needs to build graphs. It has no shape rules
// of its own, but uses those of registered operations (see [RegisterShapes]). It implements
// [Lookup] and is safe for concurrent use.
type Table struct {
	defs []Def

	once  sync.Once
	index map[string]int // position in defs by name

	mu     sync.Mutex
	parsed map[string]*Op // guarded by mu
}

// NewTable returns a table of the given definitions. Each is parsed when it is first looked up.
func NewTable(defs []Def) *Table { return &Table{defs: defs, parsed: map[string]*Op{}} }

// registered holds the operations with shape rules that this program links; nil if it links none.
var registered atomic.Pointer[Lookup]

// RegisterShapes makes all tables return the operations of ops, which have shape rules, instead of
// their own. The package kernels calls it once, when it is initialized; a program that links no
// kernels has no shape rules.
func RegisterShapes(ops Lookup) { registered.Store(&ops) }

// LookupOp returns the operation of the given name: a registered one, with its shape rule, or else
// the table's own. It panics if a definition cannot be parsed, because tables are source code.
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
