package partition

import (
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

// HasMemory reports whether a device has memory of its own.
func HasMemory(device string) bool { return strings.Contains(device, "/device:"+kernel.GPU+":") }

// NodeMemory returns the memory of the inputs and outputs of a node on a GPU.
func NodeMemory(kernels *kernel.Registry, n *graph.Node) kernel.Memory {
	return kernels.Memory(kernel.GPU, n.Op, n.Attrs, n.InTypes, n.OutTypes)
}

// HostMemory returns the OnHost of [Options] for the kernels of a registry.
func HostMemory(kernels *kernel.Registry) func(n *graph.Node, output bool, index int) bool {
	return func(n *graph.Node, output bool, index int) bool {
		return HasMemory(n.Assigned) && onHost(kernels, n, output, index)
	}
}

func onHost(kernels *kernel.Registry, n *graph.Node, output bool, index int) bool {
	m := NodeMemory(kernels, n)
	if output {
		return m.Out[index]
	}
	return m.In[index]
}

// EnsureMemory adds copies to a graph on one GPU, so that no data edge leads from one kind of
// memory to the other. A copy is an Identity with the attribute kernel.CopyAttr.
func EnsureMemory(g *graph.Graph, kernels *kernel.Registry, newName func(prefix string) string) error {
	nodes := make([]*graph.Node, 0, g.NumNodes())
	for n := range g.Nodes() {
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		followClient(n, kernels)
	}
	copies := map[graph.Output]*graph.Node{}
	for _, n := range nodes {
		for i, in := range n.Inputs() {
			if in.Node == nil {
				continue // the check of the graph reports it
			}
			from, to := onHost(kernels, in.Node, true, in.Index), onHost(kernels, n, false, i)
			if from == to || in.DType().IsRef() && n.InTypes[i].IsRef() {
				continue
			}
			c, err := copyOf(g, copies, in, n, to, newName)
			if err != nil {
				return err
			}
			g.Disconnect(n, i)
			if err := g.Connect(c.Out(0), n, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// followClient leaves the tensors that a client feeds and fetches in the memory where they are: the
// consumers of a feed copy it if they need to, and a fetch ends in the memory of the host anyway.
func followClient(n *graph.Node, kernels *kernel.Registry) {
	if !n.Attrs.Bool("client_terminated") {
		return
	}
	switch n.Op.Name {
	case "_Recv":
		n.SetAttr("_output_hostmem", []int64{0})
	case "_Send":
		if in := n.Input(0); in.Node != nil && onHost(kernels, in.Node, true, in.Index) {
			n.SetAttr("_input_hostmem", []int64{0})
		}
	}
}

// copyOf returns the node that copies an output to the other kind of memory.
func copyOf(
	g *graph.Graph, copies map[graph.Output]*graph.Node, src graph.Output, dst *graph.Node, toHost bool, newName func(string) string,
) (*graph.Node, error) {
	if c := copies[src]; c != nil && !src.DType().IsRef() {
		return c, nil
	}
	to := kernel.CopyToDevice
	if toHost {
		to = kernel.CopyToHost
	}
	c, err := g.Add(newName(src.Node.Name+"/memory"), "Identity", opdef.Attrs{"T": src.DType().Base(), kernel.CopyAttr: to})
	if err != nil {
		return nil, err
	}
	c.Assigned, c.Device = dst.Assigned, dst.Device
	copies[src] = c
	return c, g.Connect(src, c, 0)
}
