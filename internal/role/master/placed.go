package master

import (
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// maxShownNodes is the largest graph that PlacedGraph returns. Its description takes about 20 MB.
const maxShownNodes = 200_000

// PlacedGraph describes the nodes of the session whose handle begins with the given characters, and
// the devices on which they are placed. Names of nodes are all that it tells of their attributes.
func (m *Master) PlacedGraph(handle string) (*pb.PlacedGraph, error) {
	if len(handle) < shownHandle {
		return nil, status.InvalidArgumentf("The handle %q is too short: at least %d characters are needed", handle, shownHandle)
	}
	for _, s := range m.all() {
		if !strings.HasPrefix(s.handle, handle) {
			continue
		}
		s.mu.Lock()
		g := s.graph
		s.mu.Unlock()
		if g == nil {
			break // the session is being created
		}
		if n := g.graph.NumNodes(); n > maxShownNodes {
			return nil, status.ResourceExhaustedf("The graph has %d nodes; at most %d are shown", n, maxShownNodes)
		}
		return placed(g), nil
	}
	return nil, status.NotFoundf("Session %s is not found at %v", handle, m.Task)
}

func placed(state *graphState) *pb.PlacedGraph {
	out := &pb.PlacedGraph{Version: state.version}
	ops, devices := index{}, index{}
	at := make([]int32, state.graph.NumIDs())
	for n := range state.graph.Nodes() {
		at[n.ID] = int32(len(out.Nodes))
		out.Nodes = append(out.Nodes, &pb.PlacedNode{
			Name: strings.ToValidUTF8(n.Name, "\uFFFD"), Op: ops.of(n.Op.Name, &out.Ops), Device: devices.of(n.Assigned, &out.Devices),
		})
	}
	for n := range state.graph.Nodes() {
		node := out.Nodes[at[n.ID]]
		for _, in := range n.Inputs() {
			if in.Node != nil {
				node.Inputs = append(node.Inputs, at[in.Node.ID])
			}
		}
		node.Controls = positions(n.ControlInputs(), at)
	}
	return out
}

func positions(nodes []*graph.Node, at []int32) []int32 {
	var out []int32
	for _, n := range nodes {
		out = append(out, at[n.ID])
	}
	return out
}

// index numbers texts.
type index map[string]int32

// of returns the number of a text, which is its position in list.
func (x index) of(text string, list *[]string) int32 {
	i, ok := x[text]
	if !ok {
		i = int32(len(*list))
		x[text], *list = i, append(*list, text)
	}
	return i
}
