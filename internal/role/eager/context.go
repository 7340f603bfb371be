package eager

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/internal/runtime/function"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// Context is one client's state on this task: the values behind its handles, its functions, and
// what was compiled for them.
type Context struct {
	service   *Service
	owner     *trust.Principal // has created the context; nil if it has no certificate
	id        uint64
	task      string // name of this task in the cluster of the context
	prefix    string // of the names of the task's devices
	leader    string // task that leads the collective groups
	keepAlive time.Duration
	timeout   time.Duration // of a part of a function on another task; 0 for none
	scope     *worker.Scope
	ops       opCache
	lastUse   atomic.Int64 // Unix time in ns

	view atomic.Uint64 // changed with mu held

	mu      sync.Mutex
	library *graph.Library // added to with mu held
	// number of registrations of each function of the library; guarded by mu
	registered map[string]int
	handles    map[handleID]*handle // guarded by mu
	components map[string]component // parts that other tasks have registered; guarded by mu
	runtime    *function.Runtime    // runs the functions of library; guarded by mu
	// runtimes of library for earlier views, and of components; guarded by mu
	others []*function.Runtime
	plans  map[string]*plan // guarded by mu
	closed bool             // guarded by mu
}

// component is a part of a function that another task runs, with its private library.
type component struct {
	runtime *function.Runtime
	text    []byte // its definition
}

func newContext(ctx context.Context, s *Service, req *pb.CreateContextRequest) (*Context, error) {
	config := req.GetServerDef().GetDefaultSessionConfig()
	owner := trust.FromContext(ctx)
	scope, err := s.Worker.OpenScope(&worker.ScopeConfig{
		Tenant: trust.TenantOf(ctx),
		Handle: handleOf(req.GetContextId()), Lasting: int64(req.GetContextId()), Server: req.GetServerDef(),
		Devices: req.GetClusterDeviceAttributes(), Isolate: config.GetIsolateSessionState(),
	})
	if err != nil {
		return nil, err
	}
	c := &Context{
		service: s, owner: owner, id: req.GetContextId(), task: scope.Task().String(), prefix: scope.Task().String() + "/",
		leader: worker.LeaderOf(config), keepAlive: time.Duration(req.GetKeepAliveSecs()) * time.Second, scope: scope,
		timeout: time.Duration(max(config.GetOperationTimeoutInMs(), 0)) * time.Millisecond,
		library: graph.New(s.Kernels).Library, registered: map[string]int{},
		handles: map[handleID]*handle{}, components: map[string]component{}, plans: map[string]*plan{},
	}
	c.view.Store(req.GetContextViewId())
	c.runtime = c.newRuntime(c.library)
	c.touch()
	return c, nil
}

// newRuntime returns a runtime for the functions of a library and the current devices.
func (c *Context) newRuntime(lib *graph.Library) *function.Runtime {
	devices := c.scope.Devices()
	return function.NewRuntime(lib, function.Config{
		Device: devices[0], Devices: devices, Cluster: &nested{c, c.scope.Remote()}, WholeParts: true, Kernels: c.service.Kernels,
		GraphVersion: graph.ProducerVersion, Log: c.service.Log,
	})
}

func (c *Context) touch() { c.lastUse.Store(c.service.Now().UnixNano()) }

// isStale reports whether the client has not used the context for its keep-alive.
func (c *Context) isStale(now time.Time) bool {
	return c.keepAlive > 0 && now.UnixNano()-c.lastUse.Load() > int64(c.keepAlive)
}

// viewMemory is about the memory of the runtime of a view in bytes.
const viewMemory = 4 << 10

// update moves to the next view. Functions are placed anew, because the incarnations of devices and
// the tasks that have parts of them may have changed. Handles stay.
func (c *Context) update(req *pb.UpdateContextRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	view := c.view.Load()
	if next := req.GetContextViewId(); next != view+1 {
		return status.InvalidArgumentf("EagerService:UpdateContext failed. Context id: <%d> currently at view #%d but received update "+
			"request at view #%d. View id should only be continuously incremented.", c.id, view, next)
	}
	if len(req.GetClusterDeviceAttributes()) > 0 {
		if !membudget.TakeRecord(viewMemory) { // the runtime of the earlier view stays
			return status.ResourceExhaustedf("There is not enough memory for another view of the context %d (--memory-limit).", c.id)
		}
		if err := c.scope.Update(req.GetServerDef(), req.GetClusterDeviceAttributes()); err != nil {
			return err
		}
		c.others = append(c.others, c.runtime)
		c.runtime = c.newRuntime(c.library)
		clear(c.plans)
	}
	c.view.Store(view + 1)
	return nil
}

// close ends everything that runs in the context and releases its values.
func (c *Context) close() {
	c.scope.Close()
	c.mu.Lock()
	c.closed = true
	handles := c.handles
	c.handles = map[handleID]*handle{}
	runtimes := append(c.others, c.runtime)
	c.others = nil
	clear(c.plans)
	clear(c.components)
	c.mu.Unlock()
	c.ops.clear()
	for _, h := range handles {
		h.release()
	}
	for _, r := range runtimes {
		r.Close()
	}
}

// device returns the device of this task with the given name, the first one for "".
func (c *Context) device(name string) (*kernel.Device, error) {
	devices := c.scope.Devices()
	if name == "" {
		return devices[0], nil
	}
	for _, d := range devices {
		if d.Name == name {
			return d, nil
		}
	}
	if full := canonical(name); full != name {
		return c.device(full)
	}
	return nil, status.InvalidArgumentf("%s unknown device.", name)
}

// deviceNames returns the devices of all tasks by name, for tests of membership.
func (c *Context) deviceNames() map[string]uint64 {
	out := maps.Clone(c.scope.Remote())
	if out == nil {
		out = map[string]uint64{}
	}
	for _, d := range c.scope.Devices() {
		out[d.Name] = d.Incarnation
	}
	return out
}
