package opdef

import "sync"

// Table is a fixed list of definitions, without shape rules: what a client needs to build graphs.
// It implements Lookup and is safe for concurrent use.
type Table struct {
	defs []Def

	once  sync.Once
	index map[string]int

	mu     sync.Mutex
	parsed map[string]*Op // guarded by mu
}

// NewTable returns a table of the given definitions, which are parsed when they are first looked
// up.
func NewTable(defs []Def) *Table { return &Table{defs: defs, parsed: map[string]*Op{}} }

// LookupOp returns the operation of the given name. It panics if its definition cannot be parsed:
// tables are source code.
func (t *Table) LookupOp(name string) (*Op, bool) {
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
