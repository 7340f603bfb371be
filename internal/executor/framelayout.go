package executor

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// frameLayout says which frame each node is executed in and which frame its outputs go to, by the ID of the node.
type frameLayout struct {
	frames  []*frameInfo
	byName  map[string]*frameInfo
	runsIn  []*frameInfo
	leadsTo []*frameInfo
	from    []*graph.Node // the node through which each was reached first
}

// assignFrames follows the edges of a graph from the nodes without inputs and finds the frame of every node.
func assignFrames(g *graph.Graph) (*frameLayout, error) {
	root := &frameInfo{}
	l := &frameLayout{
		frames: []*frameInfo{root}, byName: map[string]*frameInfo{},
		runsIn: make([]*frameInfo, g.NumIDs()), leadsTo: make([]*frameInfo, g.NumIDs()), from: make([]*graph.Node, g.NumIDs()),
	}
	var todo []*graph.Node
	for n := range g.Nodes() {
		if n.NumInputs() == 0 && len(n.ControlInputs()) == 0 {
			if err := l.enter(n, root); err != nil {
				return nil, err
			}
			todo = append(todo, n)
		}
	}
	for len(todo) > 0 {
		src := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, e := range src.OutEdges() {
			dst, frame := e.Dst, l.leadsTo[src.ID]
			if have := l.runsIn[dst.ID]; have != nil {
				if have != frame {
					return nil, l.mixed(dst, src)
				}
				continue
			}
			l.from[dst.ID] = src
			if err := l.enter(dst, frame); err != nil {
				return nil, err
			}
			todo = append(todo, dst)
		}
	}
	for n := range g.Nodes() {
		if l.runsIn[n.ID] == nil {
			return nil, status.InvalidArgumentf("Graph contains a cycle that no value can enter, with {{node %s}}", n.Name)
		}
	}
	return l, nil
}

// enter records that n is executed in frame.
func (l *frameLayout) enter(n *graph.Node, frame *frameInfo) error {
	l.runsIn[n.ID], l.leadsTo[n.ID] = frame, frame
	switch kinds[n.Op.Name] {
	case enter:
		child, err := l.child(n, frame)
		l.leadsTo[n.ID] = child
		return err
	case exit:
		if frame.parent == nil {
			return status.InvalidArgumentf("Invalid Exit op: Cannot find a corresponding Enter op.")
		}
		l.leadsTo[n.ID] = frame.parent
	default:
	}
	return nil
}

// child returns the frame that an Enter node enters.
func (l *frameLayout) child(n *graph.Node, parent *frameInfo) (*frameInfo, error) {
	name := n.Attrs.String("frame_name")
	if name == "" {
		return nil, status.InvalidArgumentf("The Enter {{node %s}} must have a frame name.", n.Name)
	}
	f := l.byName[name]
	if f == nil {
		f = &frameInfo{index: len(l.frames), name: name, hash: hashName(name), parent: parent}
		l.frames = append(l.frames, f)
		l.byName[name] = f
	}
	if f.parent != parent {
		return nil, status.Internalf("Invalid loop structure: Mismatched parent frames for \"%s\": \"%s\" vs \"%s\". "+
			"The node giving this error: {{node %s}}.", name, parent.name, f.parent.name, n.Name)
	}
	return f, nil
}

// mixed reports that dst has inputs from two frames, src being the second.
func (l *frameLayout) mixed(dst, src *graph.Node) error {
	first := l.from[dst.ID]
	return status.InvalidArgumentf("{{node %s}} has inputs from different frames. The input {{node %s}} is in frame '%s'. "+
		"The input {{node %s}} is in frame '%s'.",
		dst.Name, src.Name, l.leadsTo[src.ID].name, first.Name, l.leadsTo[first.ID].name)
}
