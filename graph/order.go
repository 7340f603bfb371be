package graph

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/status"
)

// IsBackEdge reports whether the edge is the back edge of a loop, from NextIteration to Merge.
// Without back edges a graph has no cycles.
func (e Edge) IsBackEdge() bool {
	return !e.IsControl() && e.Src.IsNextIteration() && e.Dst.IsMerge()
}

// InOrder returns all nodes in topological order. It ignores back edges and fails with
// InvalidArgument if there is another cycle.
func (g *Graph) InOrder() ([]*Node, error) { return sortTopologically(slices.Collect(g.Nodes())) }

// sortTopologically returns the nodes, whose IDs must be ascending, in topological order. It
// ignores edges from other nodes.
func sortTopologically(nodes []*Node) ([]*Node, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	base := nodes[0].ID
	s := sorter{base: base, pending: make([]int32, nodes[len(nodes)-1].ID-base+1), member: make([]bool, nodes[len(nodes)-1].ID-base+1)}
	for _, n := range nodes {
		s.member[n.ID-base] = true
	}
	s.countConsumers(nodes)
	order := make([]*Node, 0, len(nodes))
	for _, n := range nodes {
		if s.pending[n.ID-base] == 0 {
			order = append(order, n)
		}
	}
	for at := 0; at < len(order); at++ {
		i := order[at].ID - base
		for _, c := range s.consumers[s.start[i]:s.start[i+1]] {
			if s.pending[c.ID-base]--; s.pending[c.ID-base] == 0 {
				order = append(order, c)
			}
		}
	}
	if len(order) < len(nodes) {
		return nil, s.cycleError(nodes, len(nodes)-len(order))
	}
	return order, nil
}

// sorter holds, by ID minus base, the number of pending inputs of each node. The consumers of all
// nodes are in one slice.
type sorter struct {
	base      int
	member    []bool
	pending   []int32
	start     []int32 // consumers of node i are at positions start[i] to start[i+1]-1
	consumers []*Node
}

func (s *sorter) countConsumers(nodes []*Node) {
	s.start = make([]int32, len(s.member)+1)
	for _, n := range nodes {
		s.eachSource(n, func(src *Node) {
			s.pending[n.ID-s.base]++
			s.start[src.ID-s.base+1]++
		})
	}
	for i := range s.member {
		s.start[i+1] += s.start[i]
	}
	s.consumers = make([]*Node, s.start[len(s.member)])
	next := slices.Clone(s.start)
	for _, n := range nodes {
		s.eachSource(n, func(src *Node) {
			s.consumers[next[src.ID-s.base]] = n
			next[src.ID-s.base]++
		})
	}
}

// eachSource calls f for the source of each edge that orders n after another of the nodes. Back
// edges count if a Merge has no other data inputs. Such a Merge never runs, and TensorFlow reports
// the cycle.
func (s *sorter) eachSource(n *Node, f func(src *Node)) {
	entered := !n.IsMerge() || slices.ContainsFunc(n.in, func(o Output) bool { return o.Node != nil && !o.Node.IsNextIteration() })
	for i, in := range n.in {
		if in.Node == nil || !s.has(in.Node) || entered && (Edge{in.Node, in.Index, n, i}).IsBackEdge() {
			continue
		}
		f(in.Node)
	}
	for _, src := range n.controlIn {
		if s.has(src) {
			f(src)
		}
	}
}

func (s *sorter) has(n *Node) bool {
	return n.ID >= s.base && n.ID-s.base < len(s.member) && s.member[n.ID-s.base]
}

// cycleError returns an error with the names of one cycle among the nodes with pending inputs.
func (s *sorter) cycleError(nodes []*Node, waiting int) error {
	at := nodes[slices.IndexFunc(nodes, s.waits)]
	var path []*Node
	position := map[*Node]int{}
	for {
		if _, again := position[at]; again {
			break
		}
		position[at] = len(path)
		path = append(path, at)
		next := at
		s.eachSource(at, func(src *Node) {
			if s.waits(src) {
				next = src
			}
		})
		at = next
	}
	cycle := path[position[at]:]
	slices.Reverse(cycle)
	const most = 10
	names := make([]string, 0, most+1)
	for _, n := range cycle[:min(len(cycle), most)] {
		names = append(names, "{{node "+n.Name+"}}")
	}
	if len(cycle) > most {
		names = append(names, "...")
	}
	return status.InvalidArgumentf("%d nodes in a cycle\n\t [[%s]]", waiting, strings.Join(names, " -> "))
}

func (s *sorter) waits(n *Node) bool { return s.pending[n.ID-s.base] > 0 }
