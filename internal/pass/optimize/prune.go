package optimize

import (
	"iter"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/lower"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Endpoints are the feeds, fetches and targets of one kind of step, as the client names them:
// outputs as "node:1" or "node", and nodes.
type Endpoints struct {
	Feeds   []string
	Fetches []string
	Targets []string
}

// Pruned is the part of a graph that a step needs.
type Pruned struct {
	Graph *graph.Graph
	// nodes of the feeds, in their order; nil for a feed without consumers
	Feeds      []*graph.Node
	Fetches    []*graph.Node // nodes of the fetches, in their order
	FeedTypes  []tensor.DType
	FetchTypes []tensor.DType
}

// Prune returns a copy of the part of g that e needs. The consumers of a fed output take their
// input from the node that b creates for it. Control successors of a fed placeholder wait for that
// node as well. References are fed and fetched as values.
func Prune(g *graph.Graph, e Endpoints, b Boundary) (*Pruned, error) {
	p := &pruner{
		g: g, fed: map[graph.Output]int{}, needed: make([]bool, g.NumIDs()), used: make([]bool, len(e.Feeds)),
		edges: map[*graph.Node]map[int][]graph.Edge{},
	}
	if err := p.resolve(e); err != nil {
		return nil, err
	}
	p.markNeeded()
	out := &Pruned{Graph: g.CopyIf(func(n *graph.Node) bool { return p.needed[n.ID] })}
	if err := p.addFeeds(out, e.Feeds, b); err != nil {
		return nil, err
	}
	if err := p.addFetches(out, e.Fetches, b); err != nil {
		return nil, err
	}
	return out, nil
}

type pruner struct {
	g       *graph.Graph
	feeds   []graph.Output
	fetches []graph.Output
	targets []*graph.Node

	fed    map[graph.Output]int // position of the first feed of an output
	needed []bool               // by node ID
	used   []bool               // by position of the feed
	// edges of the nodes of feeds, by the index of the output
	edges map[*graph.Node]map[int][]graph.Edge
}

// resolve finds the endpoints in the graph.
func (p *pruner) resolve(e Endpoints) error {
	if len(e.Fetches) == 0 && len(e.Targets) == 0 {
		return status.InvalidArgumentf("Must specify at least one target to fetch or execute.")
	}
	fed := make(map[string]bool, len(e.Feeds))
	for _, name := range e.Feeds {
		if fed[name] {
			return status.InvalidArgumentf("Endpoint \"%s\" fed more than once.", name)
		}
		fed[name] = true
	}
	for _, name := range e.Fetches {
		if fed[name] {
			return status.InvalidArgumentf("%s is both fed and fetched.", name)
		}
	}
	for i, name := range e.Feeds {
		out, err := p.feed(name)
		if err != nil {
			return err
		}
		p.feeds = append(p.feeds, out)
		for o := range sources(out) {
			if _, again := p.fed[o]; !again {
				p.fed[o] = i
			}
		}
	}
	for _, name := range e.Fetches {
		out, err := p.fetch(name)
		if err != nil {
			return err
		}
		p.fetches = append(p.fetches, out)
	}
	return p.findTargets(e.Targets)
}

func (p *pruner) feed(name string) (graph.Output, error) {
	node, index := graph.ParseInput(name)
	n := p.g.Node(node)
	switch {
	case n == nil || index == graph.Control:
		return graph.Output{}, status.NotFoundf("FeedInputs: unable to find feed output %s", name)
	case index >= len(n.OutTypes):
		return graph.Output{}, status.InvalidArgumentf("FeedInputs: %s should have output index < %d", name, len(n.OutTypes))
	}
	return n.Out(index), nil
}

func (p *pruner) fetch(name string) (graph.Output, error) {
	node, index := graph.ParseInput(name)
	n := p.g.Node(node)
	switch {
	case n == nil || index == graph.Control:
		return graph.Output{}, status.NotFoundf("FetchOutputs node %s: not found", name)
	case len(n.OutTypes) == 0:
		return graph.Output{}, status.InvalidArgumentf("Tried to fetch data for '%[1]s', which produces no output.  To run to a "+
			"node but not fetch any data, pass '%[1]s' as an argument to the 'target_node_names' argument of the "+
			"Session::Run API.", name)
	case index >= len(n.OutTypes):
		return graph.Output{}, status.InvalidArgumentf("FetchOutputs %s: output index too large, must be < %d", name, len(n.OutTypes))
	}
	return n.Out(index), nil
}

// findTargets finds the targets. A target may be written as an output.
func (p *pruner) findTargets(names []string) error {
	var missing strings.Builder
	for _, name := range names {
		node, _ := graph.ParseInput(name)
		if n := p.g.Node(node); n != nil {
			p.targets = append(p.targets, n)
			continue
		}
		missing.WriteString(name + " ")
	}
	if missing.Len() > 0 {
		return status.NotFoundf("PruneForTargets: Some target nodes not found: %s", missing.String())
	}
	return nil
}

// markNeeded marks the nodes that fetches and targets depend on. It stops at fed outputs.
func (p *pruner) markNeeded() {
	var stack []*graph.Node
	visit := func(n *graph.Node) {
		if !p.needed[n.ID] {
			p.needed[n.ID] = true
			stack = append(stack, n)
		}
	}
	for _, out := range p.fetches {
		visit(out.Node) // a fetch under another spelling than the feed is computed
	}
	for _, n := range p.targets {
		visit(n)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, in := range n.Inputs() {
			if i, fed := p.fed[in]; fed {
				p.used[i] = true
			} else if in.Node != nil {
				visit(in.Node)
			}
		}
		for _, src := range n.ControlInputs() {
			if i, fed := p.placeholderFeed(src); fed {
				p.used[i] = true
			} else {
				visit(src)
			}
		}
	}
}

// sources yields the outputs from which consumers take an output that the client names. The
// consumers of a lowered node take it from the input of its placeholder, except for resources.
func sources(out graph.Output) iter.Seq[graph.Output] {
	return func(yield func(graph.Output) bool) {
		if yield(out) && out.Node.Attrs.Bool(lower.PlaceholderAttr) && out.DType() != tensor.Resource {
			yield(out.Node.Input(out.Index))
		}
	}
}

// placeholderFeed returns the feed of a placeholder. ok is false for other nodes and for a
// placeholder that is not fed.
func (p *pruner) placeholderFeed(n *graph.Node) (feed int, ok bool) {
	if n.Op.Name != "Placeholder" && n.Op.Name != "PlaceholderV2" {
		return 0, false
	}
	feed, ok = p.fed[n.Out(0)]
	return feed, ok
}

// addFeeds adds and connects the nodes of the feeds with consumers.
func (p *pruner) addFeeds(out *Pruned, names []string, b Boundary) error {
	for i, fed := range p.feeds {
		out.FeedTypes = append(out.FeedTypes, fed.DType().Base())
		var n *graph.Node
		if p.used[i] {
			var err error
			if n, err = b.feed(i, names[i], fed).addTo(out.Graph); err != nil {
				return err
			}
			for o := range sources(fed) {
				if err := p.redirect(out.Graph, o, n); err != nil {
					return err
				}
			}
		}
		out.Feeds = append(out.Feeds, n)
	}
	return nil
}

// redirect connects the consumers of an output in the copy to the node that feeds it.
func (p *pruner) redirect(g *graph.Graph, fed graph.Output, feed *graph.Node) error {
	_, placeholder := p.placeholderFeed(fed.Node)
	for _, e := range p.edgesOf(fed) {
		if !p.needed[e.Dst.ID] {
			continue
		}
		if err := g.Connect(feed.Out(0), g.Node(e.Dst.Name), e.DstIn); err != nil {
			return err
		}
	}
	if !placeholder {
		return nil
	}
	for _, e := range p.edgesOf(graph.Output{Node: fed.Node, Index: graph.Control}) {
		if !p.needed[e.Dst.ID] {
			continue
		}
		dst := g.Node(e.Dst.Name)
		if src := g.Node(fed.Node.Name); src != nil {
			g.DisconnectControl(src, dst)
		}
		g.ConnectControl(feed, dst)
	}
	return nil
}

// edgesOf returns the edges of an output of the whole graph, or its control edges. The edges of a
// node are sorted once: a step may feed each of a million outputs.
func (p *pruner) edgesOf(out graph.Output) []graph.Edge {
	byIndex := p.edges[out.Node]
	if byIndex == nil {
		byIndex = map[int][]graph.Edge{}
		for _, e := range out.Node.OutEdges() {
			byIndex[e.SrcOut] = append(byIndex[e.SrcOut], e)
		}
		p.edges[out.Node] = byIndex
	}
	return byIndex[out.Index]
}

// addFetches adds the nodes of the fetches.
func (p *pruner) addFetches(out *Pruned, names []string, b Boundary) error {
	made := map[string]*graph.Node{}
	for i, fetched := range p.fetches {
		t := b.fetch(i, names[i], fetched)
		n := made[t.once]
		if n == nil {
			var err error
			if n, err = t.addTo(out.Graph); err != nil {
				return err
			}
			src := out.Graph.Node(fetched.Node.Name)
			if err := out.Graph.Connect(src.Out(fetched.Index), n, 0); err != nil {
				return err
			}
			if t.once != "" {
				made[t.once] = n
			}
		}
		out.Fetches = append(out.Fetches, n)
		out.FetchTypes = append(out.FetchTypes, fetched.DType().Base())
	}
	return nil
}
