package executor

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/numeric/murmur"
	"github.com/weft-ml/weft/internal/pass/loopframe"
	"github.com/weft-ml/weft/status"
)

// frameInfo is the static description of a frame.
type frameInfo struct {
	index    int // in the frames of the program
	name     string
	hash     uint64 // of name
	root     bool
	slots    int     // number of inputs of all nodes
	initial  []count // counts of all nodes at the start of an iteration
	enters   int     // number of Enter nodes that enter it
	exits    int     // number of Exit nodes in it
	nested   int     // number of frames directly in it
	place    int     // among the frames directly in the frame around it
	parallel int     // maximum of concurrent iterations
}

// layout assigns the nodes of a graph to frames during compilation.
type layout struct {
	program *program
	frames  *loopframe.Frames
	infos   map[*loopframe.Frame]*frameInfo
	byName  map[string]*frameInfo
}

func newLayout(p *program, g *graph.Graph) (*layout, error) {
	frames, err := loopframe.Find(g)
	if err != nil {
		return nil, err
	}
	l := &layout{p, frames, map[*loopframe.Frame]*frameInfo{}, map[string]*frameInfo{}}
	l.named("").root = true
	for n := range g.Nodes() {
		f := frames.RunsIn[n.ID]
		if f == nil {
			return nil, status.InvalidArgumentf("Graph contains a cycle that no value can enter, with {{node %s}}", n.Name)
		}
		if l.infos[f] == nil {
			l.infos[f] = l.named(f.Name)
		}
	}
	return l, nil
}

// named returns the frame of the given name, which is unique in a graph.
func (l *layout) named(name string) *frameInfo {
	f := l.byName[name]
	if f == nil {
		f = &frameInfo{index: len(l.program.frames), name: name, hash: murmur.Sum64(name)}
		l.program.frames = append(l.program.frames, f)
		l.byName[name] = f
	}
	return f
}

// assign sets the frame, the slots and the count of a node.
func (l *layout) assign(n *node, gn *graph.Node) {
	f := l.infos[l.frames.RunsIn[gn.ID]]
	n.frame = int32(f.index)
	n.in, n.count = int32(f.slots), int32(len(f.initial))
	f.slots += gn.NumInputs()
	controls := int32(len(gn.ControlInputs()))
	if n.kind == merge {
		f.initial = append(f.initial, count{pending: 1 + 2*controls})
	} else {
		f.initial = append(f.initial, count{pending: n.numIn + controls})
	}
	if n.kind == enter {
		child := l.named(gn.Attrs.String("frame_name"))
		n.child = child.index
		if child.enters == 0 {
			child.place = f.nested
			f.nested++
		}
		child.enters++
		if child.parallel == 0 {
			child.parallel = max(gn.Attrs.Int("parallel_iterations"), 1)
		}
	}
	if n.kind == exit {
		n.exit = int32(f.exits)
		f.exits++
	}
}
