package function

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Cluster runs parts of functions on other tasks. It is safe for concurrent use.
type Cluster interface {
	// Devices returns the devices of other tasks that nodes of functions can be placed on: their
	// incarnations by full name. The caller must not modify the map.
	Devices() map[string]uint64
	// Register registers a graph with a task and returns a handle. All nodes of the graph are
	// assigned to devices of the task. The _Arg and _Retval nodes are numbered within the graph if
	// Config.WholeParts is set; otherwise _Recv and _Send nodes replace them.
	Register(ctx context.Context, task string, g *graph.Graph) (string, error)
	// Deregister drops a graph. It does not wait long: a task that is unreachable keeps the graph.
	Deregister(task, handle string)
	// Begin creates a separate step for a call that is part of the given step.
	Begin(step *kernel.Step) (Step, error)
}

// Step is the step of one call. The parts of the call exchange tensors in it.
type Step interface {
	kernel.Rendezvous
	// Run runs a registered graph on another task. It borrows args, which the graph receives under
	// keys, and returns the results under the keys of rets, with their references. The keys are ""
	// if Config.WholeParts is set.
	Run(ctx context.Context, task, handle string, keys []string, args []tensor.Tensor, rets []string) ([]tensor.Tensor, error)
	// Fail ends all waits for tensors of the step with an error.
	Fail(err error)
	// End drops the state of the step on the tasks.
	End(tasks []string)
}

// remotePart is the part of a function on another task.
type remotePart struct {
	task       string
	args, rets terminals

	lock   chan struct{} // holds a token while no goroutine accesses graph and handle
	graph  *graph.Graph
	handle string // "" if the graph is not registered
}

// terminals are the arguments or results of a part: their indexes and rendezvous keys.
type terminals struct {
	indices []int
	keys    []string
}

// newRemotePart takes over a graph. Unless the part is to stay whole, it replaces the nodes of
// arguments and results by nodes that receive and send them.
func newRemotePart(task string, g *graph.Graph, whole bool) (*remotePart, error) {
	p := &remotePart{task: task, graph: g, lock: make(chan struct{}, 1)}
	p.lock <- struct{}{}
	g.Versions = graph.Versions{Producer: graph.ProducerVersion, MinConsumer: graph.MinConsumerVersion}
	if whole {
		p.args.indices, p.rets.indices = terminalsOf(g)
		p.args.keys, p.rets.keys = make([]string, len(p.args.indices)), make([]string, len(p.rets.indices))
		renumber(g, p.args.indices, p.rets.indices)
		return p, nil
	}
	for _, n := range slices.Collect(g.Nodes()) {
		var err error
		switch n.Op.Name {
		case "_Arg":
			err = p.args.receive(g, n)
		case "_Retval":
			err = p.rets.send(g, n)
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// incarnation is the incarnation in the keys of arguments and results. These keys are not used
// outside of the part, so it need not be that of the device.
const incarnation = 1

// add records an argument or result and returns the attributes of the node that replaces it.
func (t *terminals) add(n *graph.Node, kind string) opdef.Attrs {
	index := n.Attrs.Int("index")
	name := fmt.Sprintf("%s_%d", kind, index)
	t.indices = append(t.indices, index)
	t.keys = append(t.keys, kernel.NewKey(n.Assigned, incarnation, n.Assigned, name).At(kernel.FrameIter{}))
	return opdef.Attrs{
		"tensor_name": name, "send_device": n.Assigned, "recv_device": n.Assigned, "send_device_incarnation": int64(incarnation),
		"client_terminated": true,
	}
}

func (t *terminals) receive(g *graph.Graph, n *graph.Node) error {
	attrs := t.add(n, "arg")
	attrs["tensor_type"] = n.OutTypes[0].Base()
	recv, err := g.Add(namer(g)("_recv_"+n.Name), "_Recv", attrs)
	if err != nil {
		return err
	}
	recv.Assigned = n.Assigned
	for _, e := range slices.Clone(n.OutEdges()) {
		if e.IsControl() {
			g.ConnectControl(recv, e.Dst)
		} else if err := g.Connect(recv.Out(0), e.Dst, e.DstIn); err != nil {
			return err
		}
	}
	g.Remove(n)
	return nil
}

func (t *terminals) send(g *graph.Graph, n *graph.Node) error {
	attrs := t.add(n, "ret")
	attrs["T"] = n.InTypes[0].Base()
	send, err := g.Add(namer(g)("_send_"+n.Name), "_Send", attrs)
	if err != nil {
		return err
	}
	send.Assigned = n.Assigned
	for _, src := range n.ControlInputs() {
		g.ConnectControl(src, send)
	}
	in := n.Input(0)
	g.Remove(n)
	return g.Connect(in, send, 0)
}

// register returns the handle of the part. It registers the graph with the task if necessary.
func (p *remotePart) register(ctx context.Context, c Cluster) (string, error) {
	select {
	case <-p.lock:
	case <-ctx.Done():
		return "", status.FromContext(ctx, "registering a part of a function on "+p.task)
	}
	defer func() { p.lock <- struct{}{} }()
	if p.handle == "" {
		var err error
		if p.handle, err = c.Register(ctx, p.task, p.graph); err != nil {
			return "", err
		}
	}
	return p.handle, nil
}

// drop deregisters the part. No call may be in progress.
func (p *remotePart) drop(c Cluster) {
	if p.handle != "" {
		c.Deregister(p.task, p.handle)
	}
}
