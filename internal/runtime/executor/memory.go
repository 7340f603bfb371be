package executor

import (
	"github.com/weft-ml/weft/graph"
	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A device with memory of its own has two kinds of memory. Kernels of a GPU only queue their work,
// so the executor runs them like cheap kernels of a CPU, and a run may end before its work is done.
// What leaves the device is copied, and the copy waits for the work.

// useMemory prepares the nodes that the executor implements for a GPU: constants are copied to the
// device, and an Identity between two kinds of memory copies.
func (p *program) useMemory(g *graph.Graph, memory func(*graph.Node) kernel.Memory) error {
	byName := make(map[string]*node, len(p.nodes))
	for i := range p.nodes {
		p.nodes[i].gpu = true
		byName[p.nodes[i].name] = &p.nodes[i]
	}
	d := p.e.device.GPU
	for gn := range g.Nodes() {
		n, m := byName[gn.Name], memory(gn)
		switch n.kind {
		case constant:
			if m.Out[0] || n.value.DType().Size() == 0 {
				continue
			}
			on, err := d.ToDevice(&n.value)
			if err != nil {
				return status.AtNode(err, n.name)
			}
			n.value.Release()
			n.value = on
		case forward:
			if m.In[0] != m.Out[0] {
				n.kind, n.fusible = compute, false
				n.kern = newCopy(d, m.Out[0])
				n.async, n.waits = n.kern.(kernel.Async)
			}
		case arg:
			n.onHost = m.Out[0]
		default:
		}
	}
	return nil
}

// newCopy returns the kernel of a copy to the host or to the device.
func newCopy(d *gpu.Device, toHost bool) kernel.Kernel {
	if toHost {
		return copyToHost
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		t, err := gpu.PlaceNow(takeValue(ctx), d)
		ctx.SetOutput(0, t)
		return err
	})
}

var copyToHost = kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
	gpu.Place(takeValue(ctx), nil, func(t tensor.Tensor, err error) {
		ctx.SetOutput(0, t)
		done(err)
	})
})

// takeValue returns input 0 or the value of the variable behind it, with a reference.
func takeValue(ctx *kernel.Context) tensor.Tensor {
	if v := ctx.InputRef(0); v != nil {
		return v.Load()
	}
	return ctx.Input(0).Retain()
}

// placeArg moves an argument to the memory in which its consumers expect it. It waits for copies
// from a device to the host, which callers on the same device do not need.
func placeArg(n *node, out *kernel.Value, d *gpu.Device) error {
	if n.onHost {
		d = nil
	}
	if gpu.IsPlaced(&out.Tensor, d) {
		return nil
	}
	t, err := gpu.PlaceNow(out.Tensor, d)
	out.Tensor = t
	return err
}
