package master

import (
	"context"
	"io"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/opkit/ophistory"
	"github.com/weft-ml/weft/internal/pass/lower"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/pass/place"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// graphState is one version of a session's placed graph. It is immutable: an extension makes a new
// one, while plans are made from the old one.
type graphState struct {
	source *graph.Graph // as the client has sent it
	// with functional control flow lowered, and placed; source itself if there is nothing to lower
	graph   *graph.Graph
	version int64
}

// importGraph converts and checks a graph of a client.
func (m *Master) importGraph(p *pb.GraphDef) (*graph.Graph, error) {
	def, err := pbconv.GraphFromProto(p)
	if err != nil {
		return nil, err
	}
	return graph.Import(def, m.Kernels, graph.ImportOptions{})
}

// prepare lowers and places a graph. Nodes with state keep the device that they have in the
// previous version, if there is one.
func (s *session) prepare(source *graph.Graph, before *graphState) (*graphState, error) {
	g, err := s.lower(source)
	if err != nil {
		return nil, err
	}
	if before != nil {
		place.KeepState(g, before.graph)
	}
	if err := s.place(g); err != nil {
		return nil, err
	}
	return &graphState{source: source, graph: g}, nil
}

// lower replaces functional control flow, so that its parts can be placed on several tasks.
func (s *session) lower(source *graph.Graph) (*graph.Graph, error) {
	experimental := s.config.GetExperimental()
	options := lower.Options{
		Fetchable: true, Direct: s.config.GetGraphOptions().GetOptimizerOptions().GetDoFunctionInlining(),
		CallsOnly: experimental.GetDisableFunctionalOpsLowering() || experimental.GetExecutorType() == "SINGLE_THREADED_EXECUTOR",
	}
	if !lower.Needed(source, options) {
		return source, nil
	}
	g := source.Copy()
	return g, lower.Lower(g, options)
}

// place assigns a device to every node of a graph.
func (s *session) place(g *graph.Graph) error {
	options := place.Options{
		Devices: s.devices.names(), Client: s.client.attrs.Name, Kernels: s.master.Kernels, Soft: s.config.GetAllowSoftPlacement(),
		Warn: func(line string) { s.master.Log.Warn("placement", "session", s.handle, "message", line) },
	}
	if s.config.GetLogDevicePlacement() {
		options.Log = s.logPlacement
	}
	return place.Place(g, options)
}

// logPlacement prints the device of a node, in the format of TensorFlow's servers.
func (s *session) logPlacement(line string) {
	if s.master.Placement == nil {
		return
	}
	if _, err := io.WriteString(s.master.Placement, line+"\n"); err != nil {
		s.master.Log.Warn("the placement of a session cannot be printed", "session", s.handle, "error", err)
	}
}

// ExtendSession adds nodes to a session's graph, all or none. Nodes with state stay on their
// devices.
func (m *Master) ExtendSession(ctx context.Context, req *pb.ExtendSessionRequest) (*pb.ExtendSessionResponse, error) {
	s, err := m.use(ctx, req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	def, err := pbconv.GraphFromProto(req.GetGraphDef())
	if err != nil {
		return nil, err
	}
	version, err := s.extend(ctx, def, req.GetCurrentGraphVersion())
	if err != nil {
		return nil, err
	}
	m.Log.Debug("extended the graph of a session", "session", s.handle, "new_nodes", len(def.Nodes), "version", version)
	return &pb.ExtendSessionResponse{NewGraphVersion: version}, nil
}

// checkSize returns an error if a graph with new nodes is too large.
func (s *session) checkSize(old *graphState, def *graph.Def) error {
	q := s.master.Quota
	if err := q.Check(quota.Nodes, old.source.NumNodes()+len(def.Nodes)); err != nil {
		return err
	}
	return q.Check(quota.Functions, old.source.Library.Len()+len(def.Library))
}

// extend makes the next version of the graph from the given one. Of several concurrent extensions
// one succeeds.
func (s *session) extend(ctx context.Context, def *graph.Def, version int64) (int64, error) {
	s.mu.Lock()
	old, closed := s.graph, s.closed
	s.mu.Unlock()
	switch {
	case closed != nil:
		return 0, errClosed
	case old.version != version:
		return 0, wrongVersion(old.version, version)
	}
	if err := s.checkSize(old, def); err != nil {
		return 0, err
	}
	// a small request copies the whole graph
	release := membudget.AwaitHold(ctx, partition.Footprint(old.source))
	if release == nil {
		return 0, status.ResourceExhaustedf("There is not enough memory to extend a graph of %d nodes (--memory-limit).", old.source.NumNodes())
	}
	defer release()
	source := old.source.Copy()
	if err := checkNew(source, def); err != nil {
		return 0, err
	}
	if err := source.Extend(def); err != nil {
		return 0, err
	}
	next, err := s.prepare(source, old)
	if err != nil {
		return 0, err
	}
	next.version = version + 1
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed != nil:
		return 0, errClosed
	case s.graph != old:
		return 0, wrongVersion(s.graph.version, version)
	}
	s.graph = next
	return next.version, nil
}

func wrongVersion(have, want int64) error {
	return status.Abortedf("Current version is %d but caller expected %d.", have, want)
}

// checkNew returns an error if the graph already has one of the nodes, or if graphs of the version
// must not have its operation.
func checkNew(g *graph.Graph, def *graph.Def) error {
	for i := range def.Nodes {
		if err := ophistory.CheckAvailable(def.Nodes[i].Op, def.Versions.Producer); err != nil {
			return err
		}
		if name := def.Nodes[i].Name; g.Node(name) != nil {
			return status.InvalidArgumentf("GraphDef argument to Extend includes node '%s', which was created by a previous "+
				"call to Create or Extend in this session.", name)
		}
	}
	return nil
}

// taskPrefix returns the name of the task of a device with a full name.
func taskPrefix(deviceName string) string {
	task, _, _ := strings.Cut(deviceName, "/device:")
	return task
}
