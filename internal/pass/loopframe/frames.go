// Package loopframe finds the while loops of a graph.
package loopframe

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// Frame is a loop of a graph: the nodes from the Enter nodes of one frame name to the Exit nodes.
type Frame struct {
	// frame name of the Enter nodes; "" for the root, the nodes outside of all loops
	Name   string
	Parent *Frame      // nil for the root
	Cond   *graph.Node // the LoopCond node; nil if there is none
	depth  int         // number of frames around it
}

// Frames holds the frame of each node. RunsIn is indexed by the ID of the node. Its element is nil
// if no value can reach the node.
type Frames struct {
	Root   *Frame
	RunsIn []*Frame // by ID of the node
}

// maxDepth bounds the nesting of loops. Programs nest a few; an instance of a frame inside of 1,000
// others costs as many lookups for a dead value.
const maxDepth = 1000

// Find finds the frame of each node, following the edges from the nodes without inputs. It
// fails if inputs of a node are in different frames, or if a frame has more than one parent.
func Find(g *graph.Graph) (*Frames, error) {
	f := &frameFinder{
		Frames: Frames{Root: &Frame{}, RunsIn: make([]*Frame, g.NumIDs())},
		byName: map[string]*Frame{}, leadsTo: make([]*Frame, g.NumIDs()), reachedFrom: make([]*graph.Node, g.NumIDs()),
	}
	var todo []*graph.Node
	for n := range g.Nodes() {
		if n.NumInputs() == 0 && len(n.ControlInputs()) == 0 {
			if err := f.assign(n, f.Root); err != nil {
				return nil, err
			}
			todo = append(todo, n)
		}
	}
	for at := 0; at < len(todo); at++ {
		src := todo[at]
		frame := f.leadsTo[src.ID]
		for _, e := range src.OutEdges() {
			if have := f.RunsIn[e.Dst.ID]; have != nil {
				if have != frame {
					return nil, f.mixed(e.Dst, src)
				}
				continue
			}
			f.reachedFrom[e.Dst.ID] = src
			if err := f.assign(e.Dst, frame); err != nil {
				return nil, err
			}
			todo = append(todo, e.Dst)
		}
	}
	return &f.Frames, nil
}

// frameFinder holds, for nodes by ID, the frame of their outputs and the node from which they were
// reached first.
type frameFinder struct {
	Frames
	byName      map[string]*Frame
	leadsTo     []*Frame
	reachedFrom []*graph.Node
}

// assign records that n is executed in frame.
func (f *frameFinder) assign(n *graph.Node, frame *Frame) error {
	f.RunsIn[n.ID], f.leadsTo[n.ID] = frame, frame
	switch n.Op.Name {
	case "Enter", "RefEnter":
		child, err := f.child(n, frame)
		f.leadsTo[n.ID] = child
		return err
	case "Exit", "RefExit":
		if frame.Parent == nil {
			return status.AtNode(status.InvalidArgumentf("Invalid Exit op: Cannot find a corresponding Enter op."), n.Name)
		}
		f.leadsTo[n.ID] = frame.Parent
	case "LoopCond":
		if frame.Cond == nil {
			frame.Cond = n
		}
	}
	return nil
}

// child returns the frame into which an Enter node forwards its input.
func (f *frameFinder) child(n *graph.Node, parent *Frame) (*Frame, error) {
	name := n.Attrs.String("frame_name")
	if name == "" {
		return nil, status.InvalidArgumentf("The Enter {{node %s}} must have a frame name.", n.Name)
	}
	frame := f.byName[name]
	if frame == nil {
		frame = &Frame{Name: name, Parent: parent, depth: parent.depth + 1}
		if frame.depth > maxDepth {
			return nil, status.ResourceExhaustedf("Loops are nested more than %d deep, at {{node %s}}.", maxDepth, n.Name)
		}
		f.byName[name] = frame
	}
	if frame.Parent != parent {
		return nil, status.Internalf("Invalid loop structure: Mismatched parent frames for \"%s\": \"%s\" vs \"%s\". "+
			"The node giving this error: {{node %s}}.", name, parent.Name, frame.Parent.Name, n.Name)
	}
	return frame, nil
}

// mixed returns the error for a node dst with inputs from two frames; src is the second input.
func (f *frameFinder) mixed(dst, src *graph.Node) error {
	first := f.reachedFrom[dst.ID]
	return status.InvalidArgumentf("{{node %s}} has inputs from different frames. The input {{node %s}} is in frame '%s'. "+
		"The input {{node %s}} is in frame '%s'.",
		dst.Name, src.Name, f.leadsTo[src.ID].Name, first.Name, f.leadsTo[first.ID].Name)
}

// EnteredBy returns the frame into which an Enter node forwards its input; nil if the output of the
// node is not used.
func (f *Frames) EnteredBy(enter *graph.Node) *Frame {
	for _, e := range enter.OutEdges() {
		if frame := f.RunsIn[e.Dst.ID]; frame != nil {
			return frame
		}
	}
	return nil
}
