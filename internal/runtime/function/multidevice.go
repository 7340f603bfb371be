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

// multiDevice is a function whose nodes run on the devices that they request. Nodes that use
// resources run on the devices of these. It implements kernel.Function.
type multiDevice struct {
	runtime *Runtime
	fn      opdef.Func
	op      *opdef.Op

	mu sync.Mutex
	// by the devices of the resources among the arguments; guarded by mu
	bound map[string]kernel.Function
}

// Op implements kernel.Function.
func (m *multiDevice) Op() *opdef.Op { return m.op }

// Call implements kernel.Function.
func (m *multiDevice) Call(ctx *kernel.Context, args []tensor.Tensor, done func(rets []tensor.Tensor, err error)) {
	f, err := m.bind(args)
	if err != nil {
		releaseAll(args)
		done(nil, err)
		return
	}
	f.Call(ctx, args, done)
}

// bind returns the function for arguments on their current devices. It is prepared once per
// combination of devices.
func (m *multiDevice) bind(args []tensor.Tensor) (kernel.Function, error) {
	var at map[int]string // devices of the arguments that are not on the caller's device
	var key strings.Builder
	for i := range args {
		if name := m.remoteDevice(&args[i]); name != "" {
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
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.bound[key.String()]; ok {
		return f, nil
	}
	f, err := m.instantiate(at)
	if err == nil {
		m.bound[key.String()] = f
	}
	return f, err
}

// remoteDevice returns the device of a resource that is not on the caller's device. It returns ""
// for all other tensors.
func (m *multiDevice) remoteDevice(t *tensor.Tensor) string {
	if t.DType() != tensor.Resource || t.NumElements() == 0 {
		return ""
	}
	h := tensor.Values[*tensor.Handle](t)[0]
	if h == nil || h.Device == m.runtime.device.Name {
		return ""
	}
	return h.Device
}

// instantiate prepares the function for arguments on the given devices.
func (m *multiDevice) instantiate(at map[int]string) (kernel.Function, error) {
	r := m.runtime
	body, err := r.loweredBody(m.fn)
	if err != nil {
		return nil, err
	}
	if len(at) == 0 && r.fitsDevice(body.Graph) {
		return &function{runtime: r, fn: m.fn, op: m.op, body: func() (*graph.Body, error) { return body, nil }}, nil
	}
	l, err := r.placeAndSplit(m.fn, body, at)
	if err != nil {
		return nil, err
	}
	return &distributed{runtime: r, fn: m.fn, op: m.op, split: func() (*layout, error) { return l, nil }}, nil
}

// loweredBody returns the body of a function with its functional control flow lowered.
func (r *Runtime) loweredBody(fn opdef.Func) (*graph.Body, error) {
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
	return body, checkTerminals(fn, body) // with the functions that were inlined
}

// fitsDevice reports whether all nodes may run on the runtime's device.
func (r *Runtime) fitsDevice(g *graph.Graph) bool {
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

// placeAndSplit places the nodes of a body and splits it into parts. Nodes that request no device
// stay on the caller's device.
func (r *Runtime) placeAndSplit(fn opdef.Func, body *graph.Body, at map[int]string) (*layout, error) {
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
	err := place.Place(body.Graph, place.Options{Devices: r.set.devices(), Client: r.device.Name, Kernels: r.kernels, Soft: true})
	if err != nil {
		return nil, err
	}
	parts, err := partition.Split(body.Graph, partition.Options{
		Location: r.location, NewName: namer(body.Graph), Incarnation: r.set.incarnation, ControlFlow: true,
		OnHost: r.set.hostMemory(),
	})
	if err != nil {
		return nil, err
	}
	return r.compileLayout(fn, parts, len(body.Args), len(body.Rets))
}
