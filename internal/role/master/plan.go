package master

import (
	"maps"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/optimize"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// plan is one kind of step of a session, registered with the workers of all tasks that have a part
// in it. It does not change once it is ready, whatever becomes of the session's graph.
type plan struct {
	ready chan struct{} // closed when the rest is set
	err   error         // why there is no plan

	registering taskSet // tasks whose RegisterGraph has not answered

	parts []part
	// position of the part of the master's task, through which tensors are fed and fetched; -1 if
	// none
	home      int
	feedKeys  map[string]string // rendezvous keys by feed; none for those that nothing consumes
	fetchKeys map[string]string // rendezvous keys by fetch
	runs      atomic.Int64      // number of steps
	// collective is the key under which masters agree on the numbers of the steps, 0 without
	// collective operations.
	collective int64

	key   string // in session.plans; "" for the plan of a callable
	users int    // guarded by session.mu; steps, waiting requests, and one for being kept
	used  int64  // guarded by session.mu; when the plan was last used, in session.uses
}

// part is what one task does in a plan.
type part struct {
	task   cluster.Task
	worker Worker
	handle string // of the registered graph
	nodes  string // number and names of its nodes, for errors
}

// planRequest is what a plan is made for.
type planRequest struct {
	signature
	connections []*pb.TensorConnection
	debug       *pb.DebugOptions
}

// makePlan makes a plan ready, or says in it why that failed.
func (s *session) makePlan(p *plan, state *graphState, req planRequest) {
	defer close(p.ready)
	defer s.master.catch(&p.err, "preparing a step")
	parts, err := s.cut(p, state, req)
	if err == nil {
		err = s.register(p, parts, req.debug)
	}
	if err != nil && s.ctx.Err() != nil {
		err = status.FromContext(s.ctx, "preparing the step")
	}
	p.err = err
}

// catch makes an error of a panic: a fault that one client's graph has brought up must not end the
// task.
func (m *Master) catch(err *error, doing string) {
	if fault := recover(); fault != nil {
		m.Log.Error("panic", "while", doing, "fault", fault, "stack", string(debug.Stack()))
		*err = status.Internalf("panic while %s: %v", doing, fault)
	}
}

// cut returns the parts of the session's graph that a step needs, by task.
func (s *session) cut(p *plan, state *graphState, req planRequest) (map[string]*graph.Graph, error) {
	g, err := connect(state.graph, req.connections, req.feeds)
	if err != nil {
		return nil, err
	}
	boundary := optimize.Session{Device: s.client.attrs.Name, Incarnation: s.client.attrs.Incarnation}
	pruned, err := optimize.Prune(g, optimize.Endpoints{Feeds: req.feeds, Fetches: req.fetches, Targets: req.targets}, boundary)
	if err != nil {
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
	return partition.Split(pruned.Graph, partition.Options{
		Location:    func(n *graph.Node) string { return taskPrefix(n.Assigned) },
		NewName:     s.newName,
		Incarnation: func(name string) uint64 { return s.incarnations[name] },
		ControlFlow: true,
		BFloat16:    s.config.GetGraphOptions().GetEnableBfloat16Sendrecv(),
	})
}

// newName returns a name for a node that is made when a graph is split.
func (s *session) newName(prefix string) string {
	return prefix + "_S" + strconv.FormatInt(s.names.Add(1)-1, 10)
}

// terminalKeys returns the rendezvous keys of the nodes through which tensors enter or leave, by
// the client's name.
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

// register sends every task its part and waits for all handles.
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
	p.parts = make([]part, len(tasks))
	for i, t := range tasks {
		p.parts[i].task = t
		if t == s.task {
			p.home = i
		}
	}
	return together(len(tasks), func(i int) (err error) {
		defer s.master.catch(&err, "registering a graph")
		p.registering.add(tasks[i])
		defer p.registering.remove(tasks[i])
		err = s.registerPart(&p.parts[i], graphs[tasks[i].String()], p.collective, options)
		if err != nil && tasks[i] != s.task {
			err = fromTask(tasks[i], err)
		}
		return err
	})
}

func (s *session) registerPart(pt *part, g *graph.Graph, collective int64, options *pb.DebugOptions) error {
	var err error
	if pt.worker, err = s.workers.Worker(pt.task); err != nil {
		return err
	}
	pt.nodes = summarize(g)
	written := g.Def()
	stripDefaults(g, written)
	def, err := pbconv.GraphToProto(written)
	if err != nil {
		return err
	}
	resp, err := pt.worker.RegisterGraph(s.ctx, &pb.RegisterGraphRequest{
		SessionHandle: s.handle, GraphDef: def, GraphOptions: s.config.GetGraphOptions(), DebugOptions: options,
		CreateWorkerSessionCalled: true, CollectiveGraphKey: collective, ConfigProto: s.config,
	})
	pt.handle = resp.GetGraphHandle()
	return err
}

// stripDefaults takes attributes that have their default out of what is written of a graph, as
// TensorFlow's masters do: a worker of an earlier release may not know them, and all add them
// again.
func stripDefaults(g *graph.Graph, def *graph.Def) {
	for i := range def.Nodes {
		n := &def.Nodes[i]
		op := g.Node(n.Name).Op
		n.Attrs = maps.Clone(n.Attrs)
		maps.DeleteFunc(n.Attrs, func(name string, v any) bool { return isDefault(op.Attr(name), v) })
	}
}

func isDefault(a *opdef.Attr, v any) bool {
	return a != nil && a.Default != nil && !strings.Contains(a.Kind, "tensor") && opdef.FormatAttr(v) == opdef.FormatAttr(a.Default)
}
