package function

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// runtimeSet holds the runtimes of one library on the devices of a task. A runtime is created when
// it is first needed.
type runtimeSet struct {
	lib *graph.Library
	cfg Config

	mu      sync.Mutex
	members map[*kernel.Device]*Runtime // guarded by mu
	remotes []*remotePart               // parts that other tasks may have; guarded by mu
	closed  bool                        // guarded by mu

	// sets with additional functions, by the hash of these; guarded by mu
	extended map[[sha256.Size]byte]*runtimeSet
}

// onDevice returns the runtime on a device of the task.
func (f *runtimeSet) onDevice(d *kernel.Device) *Runtime {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.members[d]
	if r == nil {
		r = &Runtime{
			lib: f.lib, kernels: f.cfg.Kernels, device: d, log: f.cfg.Log, set: f, functions: map[string]kernel.Function{},
			closed: f.closed,
		}
		f.members[d] = r
	}
	return r
}

// local returns the device of the task with the given full name, or nil.
func (f *runtimeSet) local(name string) *kernel.Device {
	i := slices.IndexFunc(f.cfg.Devices, func(d *kernel.Device) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return f.cfg.Devices[i]
}

// devices returns the names of all devices that nodes can be placed on, starting with those of this
// task.
func (f *runtimeSet) devices() []string {
	var names []string
	for _, d := range f.cfg.Devices {
		names = append(names, d.Name)
	}
	if f.cfg.Cluster != nil {
		names = append(names, slices.Sorted(maps.Keys(f.cfg.Cluster.Devices()))...)
	}
	return names
}

// incarnation returns the incarnation of a device, or 0 if it is unknown.
func (f *runtimeSet) incarnation(name string) uint64 {
	if d := f.local(name); d != nil {
		return d.Incarnation
	}
	if f.cfg.Cluster == nil {
		return 0
	}
	return f.cfg.Cluster.Devices()[name]
}

// hostMemory returns which ends of edges are in the memory of the host, nil if there is no GPU.
func (f *runtimeSet) hostMemory() func(n *graph.Node, output bool, index int) bool {
	if slices.ContainsFunc(f.devices(), partition.HasMemory) {
		return partition.HostMemory(f.cfg.Kernels)
	}
	return nil
}

// addRemote records a part that must be deregistered from another task by close.
func (f *runtimeSet) addRemote(p *remotePart) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remotes = append(f.remotes, p)
}

func (f *runtimeSet) close() {
	f.mu.Lock()
	members := slices.Collect(maps.Values(f.members))
	extended := slices.Collect(maps.Values(f.extended))
	remotes := f.remotes
	f.remotes, f.closed = nil, true
	f.mu.Unlock()
	for _, more := range extended {
		more.close()
	}
	for _, r := range members {
		r.closeKernels()
	}
	for _, p := range remotes {
		p.drop(f.cfg.Cluster)
	}
}

// InstantiateOn implements kernel.Functions.
func (r *Runtime) InstantiateOn(target string, fn opdef.Func) (kernel.Function, error) {
	name, err := r.completeName(target)
	if err != nil {
		return nil, err
	}
	if d := r.set.local(name.String()); d != nil {
		f, err := r.set.onDevice(d).Instantiate(fn)
		if err != nil || d == r.device || d.GPU == nil && r.device.GPU == nil {
			return f, err
		}
		return &elsewhere{Function: f, caller: r.device.GPU, callee: d.GPU}, nil
	}
	if r.set.cfg.Cluster == nil || strings.HasPrefix(r.device.Name, name.TaskName()+"/") {
		return nil, status.InvalidArgumentf("%v unknown device.", name)
	}
	return r.cached(fn, name.String(), func(op *opdef.Op) kernel.Function {
		return &distributed{runtime: r, fn: fn, op: op, split: func() (*layout, error) { return r.remoteLayout(fn, name) }}
	})
}

// completeName returns the full name of a device. Components missing in target are those of the
// device of the caller, with CPU:0 as the default type and number.
func (r *Runtime) completeName(target string) (device.Spec, error) {
	spec, err := device.Parse(target)
	if err != nil || target == "" {
		return spec, status.InvalidArgumentf("Could not parse %s into a device specification.", target)
	}
	own, err := device.Parse(r.device.Name)
	if err != nil {
		return spec, err
	}
	own.Type, own.ID = kernel.CPU, 0
	return own.With(spec), nil
}
