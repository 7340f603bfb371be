package worker

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// kernelCache holds the stateful kernels of one session, which its graphs share by node name: a
// random generator continues where another graph's step left it. The graphs that use the cache own
// it; the last one closes it.
type kernelCache struct {
	mu      sync.Mutex
	users   int                       // guarded by mu
	kernels map[kernelID]sharedKernel // guarded by mu
}

type kernelID struct{ device, node string }

type sharedKernel struct {
	kernel.Kernel
	node *graph.Node
}

// cache returns the kernels of a session with one more user, who must call leave.
func (s *session) cache(handle string) *kernelCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.kernels[handle]
	if c == nil {
		c = &kernelCache{kernels: map[kernelID]sharedKernel{}}
		s.kernels[handle] = c
	}
	c.mu.Lock()
	c.users++
	c.mu.Unlock()
	return c
}

// leave ends the use of the kernels of a session.
func (s *session) leave(handle string, c *kernelCache) {
	s.mu.Lock()
	c.mu.Lock()
	c.users--
	last := c.users == 0
	if last {
		delete(s.kernels, handle)
	}
	c.mu.Unlock()
	s.mu.Unlock()
	if last {
		for _, k := range c.kernels {
			closeKernel(k.Kernel)
		}
	}
}

func closeKernel(k kernel.Kernel) {
	if c, ok := k.(kernel.Closer); ok {
		c.Close()
	}
}

// shared returns the session's kernel of a node. It calls create if there is none. If a node of the
// same name has another operation or other attributes, as when two fetches are spelled differently,
// the node gets a kernel of its own, and owned is true.
func (c *kernelCache) shared(device string, n *graph.Node, create func(*graph.Node) (kernel.Kernel, error)) (
	k kernel.Kernel, owned bool, err error,
) {
	id := kernelID{device, n.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	old, found := c.kernels[id]
	if found && old.node.Op.Name == n.Op.Name && ownAttrs(old.node) == ownAttrs(n) {
		return old.Kernel, false, nil
	}
	if k, err = create(n); err != nil {
		return nil, false, err
	}
	if !found {
		c.kernels[id] = sharedKernel{k, n}
	}
	return k, found, nil
}

// ownAttrs returns the attributes of the operation. Attributes that begin with an underscore are
// notes of the runtime, which may differ between the graphs of a session: a master of TensorFlow
// 1.8 to 1.15 changes _class.
func ownAttrs(n *graph.Node) string {
	attrs := n.Attrs.Clone()
	maps.DeleteFunc(attrs, func(name string, _ any) bool { return strings.HasPrefix(name, "_") })
	return attrs.Format()
}

// isStateless reports whether a run of a graph leaves nothing but the tensors that it sends: no
// node has state or calls a function, and all outputs are numbers or strings.
func isStateless(g *graph.Graph) bool {
	for n := range g.Nodes() {
		_, call := g.Library.Lookup(n.Op.Name)
		transfer := n.Op.Name == "_Send" || n.Op.Name == "_Recv"
		if call || n.Op.Stateful && !transfer || slices.ContainsFunc(n.Op.Attrs, takesFunctions) || slices.ContainsFunc(n.OutTypes, isOpaque) {
			return false
		}
	}
	return true
}

func takesFunctions(a opdef.Attr) bool { return strings.Contains(a.Kind, "func") }

func isOpaque(t tensor.DType) bool { return t == tensor.Resource || t == tensor.Variant || t.IsRef() }

// isShared reports whether the kernel of a node belongs to the session: it has state, and does not
// depend on the functions of its graph. OneShotIterator depends on one only at its start; its
// position is shared by all graphs.
func isShared(n *graph.Node, lib *graph.Library) bool {
	if _, call := lib.Lookup(n.Op.Name); call || !n.Op.Stateful {
		return false
	}
	return n.Op.Name == "OneShotIterator" || !slices.ContainsFunc(n.Op.Attrs, takesFunctions)
}
