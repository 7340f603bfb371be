package master

import (
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/optimize"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// plan is one kind of step of a session, registered with the workers of all its tasks. It does not
// change once ready is closed, even if the session's graph is extended.
type plan struct {
	ready chan struct{} // closed when the other fields are set
	err   error         // reason why there is no plan

	registering taskSet // tasks whose RegisterGraph has not answered

	partitions []planPartition
	// index of the partition of the master's own task, which feeds and fetches; -1 if there is none
	local     int
	feedKeys  map[string]string // rendezvous key by feed; none for feeds without a consumer
	fetchKeys map[string]string // rendezvous key by fetch
	runs      atomic.Int64      // number of steps
	// collective is the key under which masters agree on step numbers; 0 without collective
	// operations.
	collective int64

	key   string // key in session.plans; "" for the plan of a callable
	users int    // steps, waiting requests, and one for session.plans; guarded by session.mu
	used  int64  // time of last use, by session.planUses; guarded by session.mu
}

// planPartition is the part of a plan that runs on one task.
type planPartition struct {
	task   cluster.Task
	worker Worker
	handle string // of the registered graph
	// the task has a worker session for the session
	inSession bool
	nodes     string // number and names of its nodes, for errors
}

// planRequest describes the plan to make.
type planRequest struct {
	signature
	connections []*pb.TensorConnection
	debug       *pb.DebugOptions
}

// makePlan fills a plan and closes ready. On failure it sets the error of the plan.
func (s *session) makePlan(p *plan, state *graphState, req planRequest) {
	defer close(p.ready)
	defer s.master.catch(&p.err, "preparing a step")
	parts, err := s.split(p, state, req)
	if err == nil {
		err = s.register(p, parts, req.debug)
	}
	if err != nil && s.ctx.Err() != nil {
		err = status.FromContext(s.ctx, "preparing the step")
	}
	p.err = err
}

// catch turns a panic into an error: a fault triggered by one client's graph must not end the task.
func (m *Master) catch(err *error, doing string) {
	if fault := recover(); fault != nil {
		m.Log.Error("panic", "while", doing, "fault", fault, "stack", string(debug.Stack()))
		*err = status.Internalf("panic while %s: %v", doing, fault)
	}
}

// split returns the pruned, optimized graph of a step, partitioned by task.
func (s *session) split(p *plan, state *graphState, req planRequest) (map[string]*graph.Graph, error) {
	if err := failpoint.Hit("master/make-plan"); err != nil {
		return nil, err
	}
	g, err := connect(state.graph, req.connections, req.feeds)
	if err != nil {
		return nil, err
	}
	// The parts, their messages and what this task compiles are copies of the graph and library.
	release := membudget.AwaitHold(s.ctx, partition.Footprint(g))
	if release == nil {
		return nil, status.ResourceExhaustedf("There is not enough memory to prepare the step (--memory-limit).")
	}
	defer release()
	boundary := optimize.Session{Device: s.client.attrs.Name, Incarnation: s.client.attrs.Incarnation}
	pruned, err := optimize.Prune(g, optimize.Endpoints{Feeds: req.feeds, Fetches: req.fetches, Targets: req.targets}, boundary)
	if err != nil {
		return nil, err
	}
	if err := s.master.checkOps(pruned.Graph); err != nil {
		return nil, err
	}
	p.feedKeys = terminalKeys(req.feeds, pruned.Feeds)
	p.fetchKeys = terminalKeys(req.fetches, pruned.Fetches)
	if p.collective = req.collective; p.collective == 0 {
		p.collective = collectiveKey(pruned.Graph)
	}
	if err := optimize.Optimize(pruned.Graph, s.optimizeOptions(pruned.Graph)); err != nil {
		return nil, err
	}
	var onHost func(n *graph.Node, output bool, index int) bool
	if slices.ContainsFunc(s.devices.names(), partition.HasMemory) {
		onHost = partition.HostMemory(s.master.Kernels)
	}
	return partition.Split(pruned.Graph, partition.Options{
		OnHost:      onHost,
		Location:    func(n *graph.Node) string { return taskPrefix(n.Assigned) },
		NewName:     s.newName,
		Incarnation: func(name string) uint64 { return s.incarnations[name] },
		ControlFlow: true,
		BFloat16:    s.config.GetGraphOptions().GetEnableBfloat16Sendrecv(),
	})
}

// newName returns an unused name for a generated node.
func (s *session) newName(prefix string) string {
	return prefix + "_S" + strconv.FormatInt(s.names.Add(1)-1, 10)
}

// terminalKeys returns the rendezvous keys of the nodes that feed or fetch, by the client's name
// for them.
func terminalKeys(names []string, nodes []*graph.Node) map[string]string {
	out := make(map[string]string, len(names))
	for i, n := range nodes {
		if n == nil {
			continue
		}
		incarnation, _ := n.Attrs["send_device_incarnation"].(int64)
		out[names[i]] = kernel.NewKey(n.Attrs.String("send_device"), uint64(incarnation), n.Attrs.String("recv_device"),
			n.Attrs.String("tensor_name")).At(kernel.FrameIter{})
	}
	return out
}

// register sends every task its partition and waits for all handles.
func (s *session) register(p *plan, graphs map[string]*graph.Graph, options *pb.DebugOptions) error {
	var tasks []cluster.Task
	for _, t := range s.tasks {
		if graphs[t.String()] != nil {
			tasks = append(tasks, t)
		}
	}
	if len(tasks) != len(graphs) {
		return status.Internalf("the step has nodes on tasks that the session may not use")
	}
	p.partitions = make([]planPartition, len(tasks))
	for i, t := range tasks {
		p.partitions[i].task = t
		if t == s.task {
			p.local = i
		}
	}
	return forEachConcurrently(len(tasks), func(i int) (err error) {
		defer s.master.catch(&err, "registering a graph")
		p.registering.add(tasks[i])
		defer p.registering.remove(tasks[i])
		err = s.registerPartition(&p.partitions[i], graphs[tasks[i].String()], p.collective, options)
		if err != nil && tasks[i] != s.task {
			err = fromTask(tasks[i], err)
		}
		return err
	})
}

func (s *session) registerPartition(pt *planPartition, g *graph.Graph, collective int64, options *pb.DebugOptions) error {
	var err error
	if pt.worker, err = s.workers.Worker(pt.task); err != nil {
		return err
	}
	pt.nodes = summarize(g)
	if err := failpoint.Hit("master/register-graph"); err != nil {
		return err
	}
	release := s.releases[pt.task]
	pt.inSession = !release.Has(peer.NoWorkerSessions)
	written, err := s.releases.defFor(g, pt.task)
	if err != nil {
		return err
	}
	def, err := pbconv.GraphToProto(written)
	if err != nil {
		return err
	}
	req := &pb.RegisterGraphRequest{
		SessionHandle: s.handle, GraphDef: def, GraphOptions: s.config.GetGraphOptions(), DebugOptions: options,
		CreateWorkerSessionCalled: pt.inSession, CollectiveGraphKey: collective, ConfigProto: s.config,
	}
	if s.namedFrames && release == peer.Weft {
		peer.UseNamedFrames(req)
	}
	resp, err := pt.worker.RegisterGraph(s.ctx, req)
	pt.handle = resp.GetGraphHandle()
	if err != nil && release.IsOld() {
		err = status.From(err).Annotate(" (%v runs %v)", pt.task, release)
	}
	return err
}

func isDefault(a *opdef.Attr, v any) bool {
	return a != nil && a.Default != nil && !strings.Contains(a.Kind, "tensor") && opdef.FormatAttr(v) == opdef.FormatAttr(a.Default)
}
