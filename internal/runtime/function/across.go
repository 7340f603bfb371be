package function

import (
	"strings"
	"sync"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/lower"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/pass/place"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// across is a function whose nodes run on the devices that they ask for, and those that use
// resources where these are. It implements kernel.Function.
type across struct {
	runtime *Runtime
	fn      opdef.Func
	op      *opdef.Op

	mu sync.Mutex
	// guarded by mu; by the devices of the resources among the arguments
	bound map[string]kernel.Function
}

// Op implements kernel.Function.
func (a *across) Op() *opdef.Op { return a.op }

// Call implements kernel.Function.
func (a *across) Call(ctx *kernel.Context, args []tensor.Tensor, done func(rets []tensor.Tensor, err error)) {
	f, err := a.bind(args)
	if err != nil {
		releaseAll(args)
		done(nil, err)
		return
	}
	f.Call(ctx, args, done)
}

// bind returns the function for arguments on the devices where they are.
func (a *across) bind(args []tensor.Tensor) (kernel.Function, error) {
	var at map[int]string // device of an argument, unless it is that of the caller
	var key strings.Builder
	for i := range args {
		if name := a.foreign(&args[i]); name != "" {
			if at == nil {
				at = map[int]string{}
			}
			at[i] = name
			key.WriteString(name)
		}
		if at != nil {
			key.WriteByte(';')
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if f, ok := a.bound[key.String()]; ok {
		return f, nil
	}
	f, err := a.instantiate(at)
	if err == nil {
		a.bound[key.String()] = f
	}
	return f, err
}

// foreign returns the device of a resource that is not on the caller's; "" for other tensors.
func (a *across) foreign(t *tensor.Tensor) string {
	if t.DType() != tensor.Resource || t.NumElements() == 0 {
		return ""
	}
	h := tensor.Values[*tensor.Handle](t)[0]
	if h == nil || h.Device == a.runtime.device.Name {
		return ""
	}
	return h.Device
}

// instantiate prepares the function for arguments on the given devices.
func (a *across) instantiate(at map[int]string) (kernel.Function, error) {
	r := a.runtime
	body, err := r.lowered(a.fn)
	if err != nil {
		return nil, err
	}
	if len(at) == 0 && r.confines(body.Graph) {
		return &function{runtime: r, fn: a.fn, op: a.op, body: func() (*graph.Body, error) { return body, nil }}, nil
	}
	l, err := r.spread(a.fn, body, at)
	if err != nil {
		return nil, err
	}
	return &distributed{runtime: r, fn: a.fn, op: a.op, split: func() (*layout, error) { return l, nil }}, nil
}

// lowered returns the body of a function with functional control flow lowered.
func (r *Runtime) lowered(fn opdef.Func) (*graph.Body, error) {
	body, err := r.instantiate(fn)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(body.Controls))
	for i, n := range body.Controls {
		names[i] = n.Name
	}
	if err := lower.Lower(body.Graph, lower.Options{}); err != nil {
		return nil, status.Errorf(status.CodeOf(err), "In function %s: %w", fn.Name, err)
	}
	for i, name := range names {
		body.Controls[i] = body.Graph.Node(name)
	}
	return body, nil
}

// confines reports whether all nodes may run on the runtime's device.
func (r *Runtime) confines(g *graph.Graph) bool {
	own, err := device.Parse(r.device.Name)
	if err != nil {
		return false
	}
	for n := range g.Nodes() {
		if n.Device == "" {
			continue
		}
		if spec, err := device.Parse(n.Device); err != nil || !spec.Matches(own) {
			return false
		}
	}
	return true
}

// spread places the nodes of a body and returns its parts. Nodes that ask for no device stay on the
// caller's.
func (r *Runtime) spread(fn opdef.Func, body *graph.Body, at map[int]string) (*layout, error) {
	prune(body)
	for n := range body.Graph.Nodes() {
		if n.Device == "" && n.Op.Name != "_Retval" {
			n.Device = r.device.Name
		}
	}
	for i, n := range body.Args {
		n.Assigned = r.device.Name
		if name, ok := at[i]; ok {
			n.Assigned = name
		}
	}
	err := place.Place(body.Graph, place.Options{Devices: r.family.devices(), Client: r.device.Name, Kernels: r.kernels, Soft: true})
	if err != nil {
		return nil, err
	}
	parts, err := partition.Split(body.Graph, partition.Options{
		Location: r.location, NewName: namer(body.Graph), Incarnation: r.family.incarnation, ControlFlow: true,
	})
	if err != nil {
		return nil, err
	}
	return r.lay(fn, parts, len(body.Args), len(body.Rets))
}
