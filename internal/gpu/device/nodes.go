package device

import (
	"sync"
	"sync/atomic"
)

// tracing is what a device knows about its traces, and about the nodes that queue work meanwhile.
type tracing struct {
	list atomic.Pointer[[]*Trace] // the running traces; replaced with mu held

	mu    sync.Mutex
	nodes []string // nodes whose kernels are being called; guarded by mu
}

// traces returns the traces that run. The caller does not change the list.
func (t *tracing) traces() []*Trace {
	if p := t.list.Load(); p != nil {
		return *p
	}
	return nil
}

func (t *tracing) storeLocked(list []*Trace) {
	if len(list) == 0 {
		t.list.Store(nil)
		return
	}
	t.list.Store(&list)
}

// Traced reports whether a trace runs.
func (d *Device) Traced() bool { return d.tracing.list.Load() != nil }

// EnterNode says that the kernel of a node is called, which may queue work. The caller calls leave
// when it returns. Traces then know the node of the work, unless kernels of other nodes are called
// at the same time.
func (d *Device) EnterNode(node string) (leave func()) {
	t := &d.tracing
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes = append(t.nodes, node)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for i, n := range t.nodes {
			if n == node {
				last := len(t.nodes) - 1
				t.nodes[i] = t.nodes[last]
				t.nodes = t.nodes[:last]
				return
			}
		}
	}
}

// node returns the only node whose kernel is being called; empty if there are none or several.
func (t *tracing) node() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.nodes) == 1 {
		return t.nodes[0]
	}
	return ""
}
