package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/runtime/function"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// registered is a graph that a master has registered, compiled to run. It is closed when it has
// been dropped and no run uses it.
type registered struct {
	session *session
	units   []unit
	keys    map[string]bool // rendezvous keys of the master's feeds and fetches
	users   atomic.Int64    // runs, and one while it is registered

	// tensors that every run receives from other tasks, by task
	initial     map[string][]*kernel.Key
	initialKeys map[string]bool // the same keys as texts

	stateless bool // no kernel can keep a reference to a step

	collective bool   // the graph has collective operations
	leader     string // task that leads the collective groups; "" for this one

	kernels   *kernelCache    // shared by the graphs of the session
	cacheName string          // key of kernels in session.kernels
	owned     []kernel.Kernel // kernels of this graph alone
	runtimes  []*function.Runtime
}

// unit is the part of a graph on one device.
type unit struct {
	device *kernel.Device
	graph  *graph.Graph
	exec   *executor.Executor
}

// RegisterGraph compiles a partition for this task. Every node must name its device.
func (w *Worker) RegisterGraph(ctx context.Context, req *pb.RegisterGraphRequest) (*pb.RegisterGraphResponse, error) {
	s, err := w.session(ctx, req.GetSessionHandle(), req.GetCreateWorkerSessionCalled())
	if err != nil {
		return nil, err
	}
	if err := checkName("session_handle", req.GetSessionHandle()); err != nil { // a key of kernels
		return nil, err
	}
	release, err := chargeGraph(ctx, req.GetGraphDef())
	if err != nil {
		return nil, err
	}
	defer release()
	def, err := pbconv.GraphFromProto(req.GetGraphDef())
	if err != nil {
		return nil, err
	}
	if peer.FromContext(ctx).IsOld() {
		peer.Upgrade(def)
	}
	g, err := w.importGraph(s, def)
	if err != nil {
		return nil, err
	}
	reg, err := w.compile(s, g, req.GetSessionHandle(), s.frameIDs(ctx, req))
	if err != nil {
		return nil, err
	}
	reg.collective, reg.leader = req.GetCollectiveGraphKey() != 0, w.leaderOf(req.GetConfigProto())
	handle, err := s.add(reg)
	if err != nil {
		reg.release()
		return nil, err
	}
	w.Log.Debug("registered a partition of a graph", "session", req.GetSessionHandle(), "graph", handle, "nodes", g.NumNodes())
	return &pb.RegisterGraphResponse{GraphHandle: handle}, nil
}

// frameIDs returns how the tasks of a graph compute the IDs of frames: as the release of the master
// does or, if the master is Weft, as it says.
func (s *session) frameIDs(ctx context.Context, req *pb.RegisterGraphRequest) executor.FrameIDs {
	release := peer.FromContext(ctx)
	if release.Ambiguous() {
		release = s.askMaster(ctx, peer.OfProducer(release, req.GetGraphDef().GetVersions().GetProducer()))
	}
	if release.Has(peer.NamedFrameIDs) || peer.UsesNamedFrames(req) {
		return executor.NamedFrameIDs
	}
	return executor.CombinedFrameIDs
}

// askMaster returns the release of the session's master by the methods that its task has. It
// returns what is known if the master has not named its task, or the task does not answer.
func (s *session) askMaster(ctx context.Context, known peer.Release) peer.Release {
	if s.master == "" || s.peers == nil {
		return known
	}
	task, err := s.peers.Peer(s.master)
	if err != nil {
		return known
	}
	q, ok := task.(peer.Questioner)
	if !ok {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	found, err := peer.Find(ctx, &pb.GetStatusResponse{}, q)
	if err != nil {
		return known
	}
	return found
}

// askTimeout bounds the questions to a master that registers a graph. It answers at once, or has
// ended.
const askTimeout = 10 * time.Second

// importGraph converts and checks a partition. It adds the attributes with default values, which
// masters leave out. All nodes must be on devices that the session has on this task.
func (w *Worker) importGraph(s *session, def *graph.Def) (*graph.Graph, error) {
	names := map[string]string{} // as written → canonical
	for i := range def.Nodes {
		n := &def.Nodes[i]
		if _, ok := names[n.Device]; ok {
			continue
		}
		spec, err := device.Parse(n.Device)
		switch {
		case n.Device == "":
			return nil, status.InvalidArgumentf("Node '%s' is missing a device specification", n.Name)
		case err != nil:
			return nil, status.InvalidArgumentf("Missing device name in: {{node %s}}", n.Name)
		case s.device(spec.String()) == nil:
			return nil, status.InvalidArgumentf("%s unknown device. This task is %v.", n.Device, s.task)
		}
		names[n.Device] = spec.String()
	}
	g, err := graph.Import(def, w.Kernels, graph.ImportOptions{Internal: true})
	if err != nil {
		return nil, err
	}
	for n := range g.Nodes() {
		n.Assigned = names[n.Device]
	}
	return g, nil
}

// compile splits a graph by device and creates the executor of each part.
func (w *Worker) compile(s *session, g *graph.Graph, cacheName string, ids executor.FrameIDs) (*registered, error) {
	initial := s.initialReceives(g)
	reg := &registered{
		session: s, keys: map[string]bool{}, initial: initial, initialKeys: keySet(initial), kernels: s.cache(cacheName), cacheName: cacheName,
	}
	reg.stateless = isStateless(g)
	reg.users.Store(1)
	for n := range g.Nodes() {
		if key := clientKey(n); key != "" {
			reg.keys[key] = true
		}
	}
	parts, err := w.split(s, g)
	if err != nil {
		reg.release()
		return nil, err
	}
	for _, d := range s.devices {
		part := parts[d.Name]
		if part == nil {
			continue
		}
		if d.GPU != nil {
			if err := partition.EnsureMemory(part, w.Kernels, s.newName); err != nil {
				reg.release()
				return nil, err
			}
		}
		exec, err := w.newExecutor(reg, d, part, ids)
		if err != nil {
			reg.release()
			return nil, err
		}
		reg.units = append(reg.units, unit{d, part, exec})
	}
	return reg, nil
}

// split returns the part of a graph on each device.
func (w *Worker) split(s *session, g *graph.Graph) (map[string]*graph.Graph, error) {
	first, several := "", false
	for n := range g.Nodes() {
		if first == "" {
			first = n.Assigned
		}
		several = several || n.Assigned != first
	}
	if !several {
		return map[string]*graph.Graph{first: g}, nil
	}
	return partition.Split(g, partition.Options{
		Location: func(n *graph.Node) string { return n.Assigned },
		NewName:  s.newName,
		OnHost:   s.hostMemory(w.Kernels),
		Incarnation: func(name string) uint64 {
			if d := s.device(name); d != nil {
				return d.Incarnation
			}
			return 0
		},
	})
}

// hostMemory returns which ends of edges are in the memory of the host, nil if the session has no
// GPU.
func (s *session) hostMemory(kernels *kernel.Registry) func(n *graph.Node, output bool, index int) bool {
	for _, d := range s.devices {
		if d.GPU != nil {
			return partition.HostMemory(kernels)
		}
	}
	return nil
}

// memoryOf returns the memory of nodes on a device; nil for a CPU.
func (w *Worker) memoryOf(d *kernel.Device) func(*graph.Node) kernel.Memory {
	if d.GPU == nil {
		return nil
	}
	return func(n *graph.Node) kernel.Memory { return partition.NodeMemory(w.Kernels, n) }
}

// newExecutor creates the executor of the part on one device. Functions that the part calls run on
// that device.
func (w *Worker) newExecutor(
	reg *registered, d *kernel.Device, part *graph.Graph, ids executor.FrameIDs,
) (*executor.Executor, error) {
	runtime := function.NewRuntime(part.Library, function.Config{
		Device: d, Devices: reg.session.devices, Cluster: reg.cluster(w), Kernels: w.Kernels, Log: w.Log,
		GraphVersion: part.Versions.Producer,
	})
	reg.runtimes = append(reg.runtimes, runtime)
	return executor.New(part, executor.Config{
		Device: d, Log: w.Log, FrameIDs: ids, Memory: w.memoryOf(d),
		NewKernel: func(n *graph.Node) (kernel.Kernel, error) {
			if isShared(n, part.Library) {
				k, owned, err := reg.kernels.shared(d.Name, n, runtime.NewKernel)
				if owned {
					reg.owned = append(reg.owned, k)
				}
				return k, err
			}
			k, err := runtime.NewKernel(n)
			if err == nil {
				reg.owned = append(reg.owned, k)
			}
			return k, err
		},
	})
}

// clientKey returns the rendezvous key of a node through which the master feeds or fetches, "" for
// all other nodes.
func clientKey(n *graph.Node) string {
	if (n.Op.Name != "_Recv" && n.Op.Name != "_Send") || !n.Attrs.Bool("client_terminated") {
		return ""
	}
	incarnation, _ := n.Attrs["send_device_incarnation"].(int64)
	return kernel.NewKey(n.Attrs.String("send_device"), uint64(incarnation), n.Attrs.String("recv_device"),
		n.Attrs.String("tensor_name")).At(kernel.FrameIter{})
}

// add registers a graph and returns its handle.
func (s *session) add(reg *registered) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return "", status.Abortedf("Session handle is not found: %s. It was deleted.", s.handle)
	}
	if s.handle == "" && len(s.graphs) >= maxSharedGraphs {
		return "", status.ResourceExhaustedf("%d graphs are registered without a session, the limit of the task.", len(s.graphs))
	}
	s.counter++
	handle := fmt.Sprintf("%016x", s.counter)
	s.graphs[handle] = reg
	return handle, nil
}

// graph returns a registered graph and counts one more user. The caller must call release.
func (s *session) graph(handle string) (*registered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reg, ok := s.graphs[handle]
	if !ok {
		return nil, status.Abortedf("Graph handle is not found: %s", handle)
	}
	reg.users.Add(1)
	return reg, nil
}

// DeregisterGraph drops a graph. A run that uses it continues.
func (w *Worker) DeregisterGraph(ctx context.Context, req *pb.DeregisterGraphRequest) (*pb.DeregisterGraphResponse, error) {
	s, err := w.session(ctx, req.GetSessionHandle(), req.GetCreateWorkerSessionCalled())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	reg, ok := s.graphs[req.GetGraphHandle()]
	delete(s.graphs, req.GetGraphHandle())
	s.mu.Unlock()
	if !ok {
		return nil, status.Abortedf("Graph handle is not found: %s. Possibly, this worker just restarted.", req.GetGraphHandle())
	}
	reg.release()
	return &pb.DeregisterGraphResponse{}, nil
}

// summary returns the summary of a node, "" if there is none of that name.
func (reg *registered) summary(node string) string {
	for i := range reg.units {
		if n := reg.units[i].graph.Node(node); n != nil {
			return n.Summary()
		}
	}
	return ""
}

// release ends one use of a graph. The last one releases its kernels.
func (reg *registered) release() {
	if reg.users.Add(-1) > 0 {
		return
	}
	for _, k := range reg.owned {
		closeKernel(k)
	}
	for _, r := range reg.runtimes {
		r.Close()
	}
	reg.session.leave(reg.cacheName, reg.kernels)
}
