package partition

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/loopframe"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func isSwitch(n *graph.Node) bool { return n.IsSwitch() || n.Op.Name == "_SwitchN" }

func hasControlFlow(g *graph.Graph) bool {
	for n := range g.Nodes() {
		if n.IsEnter() || isSwitch(n) {
			return true
		}
	}
	return false
}

// spanDevices prepares the loops of a graph for splitting by device. It moves control flow to the
// devices of its data, and adds a loop on every device that receives a tensor inside of a loop.
func spanDevices(g *graph.Graph, o *Options) error {
	frames, err := loopframe.Find(g)
	if err != nil {
		return err
	}
	if err := colocateControlFlow(g); err != nil {
		return err
	}
	l := &loopAdder{g: g, o: o, parallel: map[string]int{}, loops: map[frameDevice]*graph.Node{}}
	for n := range g.Nodes() {
		if _, known := l.parallel[n.Attrs.String("frame_name")]; n.IsEnter() && !known {
			l.parallel[n.Attrs.String("frame_name")] = n.Attrs.Int("parallel_iterations")
		}
	}
	for id, frame := range frames.RunsIn {
		if frame == nil || frame == frames.Root {
			continue
		}
		if err := l.driveReceives(g.NodeByID(id), frame); err != nil {
			return err
		}
	}
	return l.driveSends(frames)
}

// colocateControlFlow assigns Switch and Exit to the device of their input, and Enter and
// NextIteration to the device of their first consumer, regardless of their requests. This saves a
// transfer, and a branch that is not taken reads no remote variable.
func colocateControlFlow(g *graph.Graph) error {
	order, err := g.InOrder()
	if err != nil {
		return err
	}
	for _, n := range order {
		switch {
		case isSwitch(n), n.IsExit():
			if src := n.Input(0).Node; src != nil {
				n.Assigned = src.Assigned
			}
		case n.Op.Name == "Enter", n.IsNextIteration():
			if dst := firstConsumer(n); dst != nil {
				n.Assigned = dst.Assigned
			}
		}
	}
	return nil
}

func firstConsumer(n *graph.Node) *graph.Node {
	for _, e := range n.OutEdges() {
		if !e.IsControl() {
			return e.Dst
		}
	}
	return nil
}

// loopAdder adds the loops that drive receives.
type loopAdder struct {
	g        *graph.Graph
	o        *Options
	parallel map[string]int // parallel_iterations, by name of the frame
	loops    map[frameDevice]*graph.Node
}

// frameDevice identifies the added loop of a frame on a device.
type frameDevice struct {
	frame  *loopframe.Frame
	device string
}

// driveReceives makes the future receives of n run in every iteration of its frame. It adds a
// control edge to n from a Merge of the frame on the device of n. A split moves the edge to the
// receives.
func (l *loopAdder) driveReceives(n *graph.Node, frame *loopframe.Frame) error {
	remote := false
	for _, in := range n.Inputs() {
		remote = remote || in.Node != nil && in.Node.Assigned != n.Assigned
	}
	for _, src := range n.ControlInputs() {
		remote = remote || src.Assigned != n.Assigned
	}
	if !remote {
		return nil
	}
	merge, err := l.loop(frame, n)
	if err == nil {
		l.g.ConnectControl(merge, n)
	}
	return err
}

// driveSends adds a loop where a device sends values within a frame without executing iterations of
// it: the values come from Enter nodes, which deliver them to all iterations that begin, and
// nothing on the device begins one after the first. An example is a read, on a GPU, of a variable
// behind a RefEnter on the CPU.
func (l *loopAdder) driveSends(frames *loopframe.Frames) error {
	iterates := map[frameDevice]bool{}
	for id, frame := range frames.RunsIn {
		if n := l.g.NodeByID(id); n != nil && n.IsMerge() {
			iterates[frameDevice{frame, n.Assigned}] = true
		}
	}
	type need struct {
		frame *loopframe.Frame
		src   *graph.Node
	}
	var needs []need // a loop changes the edges
	for id, frame := range frames.RunsIn {
		if frame == nil || frame == frames.Root {
			continue
		}
		dst := l.g.NodeByID(id)
		from := func(src *graph.Node) {
			if at := (frameDevice{frame, src.Assigned}); src.Assigned != dst.Assigned && !iterates[at] {
				iterates[at] = true
				needs = append(needs, need{frame, src})
			}
		}
		for _, in := range dst.Inputs() {
			if in.Node != nil {
				from(in.Node)
			}
		}
		for _, src := range dst.ControlInputs() {
			from(src)
		}
	}
	for _, n := range needs {
		if _, err := l.loop(n.frame, n.src); err != nil {
			return err
		}
	}
	return nil
}

// loop returns the Merge of the added loop for a frame on the device of dst:
//
//	Const or the Merge of the frame around → Enter → Merge → Switch → NextIteration → Merge
//
// The Switch has the condition of the frame itself, which is received from another device in every
// iteration.
func (l *loopAdder) loop(frame *loopframe.Frame, dst *graph.Node) (*graph.Node, error) {
	key := frameDevice{frame, dst.Assigned}
	if merge, ok := l.loops[key]; ok {
		return merge, nil
	}
	if frame.Cond == nil {
		return nil, status.InvalidArgumentf("A cross-device loop must have a pivot predicate: %s", frame.Name)
	}
	start, err := l.start(frame, dst)
	if err != nil {
		return nil, err
	}
	b := &builder{loopAdder: l, prefix: dst.Name, device: dst.Assigned}
	dtype := opdef.Attrs{"T": tensor.Float32}
	enter := b.add("Enter", opdef.Attrs{
		"T": tensor.Float32, "frame_name": frame.Name, "parallel_iterations": int64(l.parallel[frame.Name]),
	}, start)
	merge := b.add("Merge", opdef.Attrs{"T": tensor.Float32, "N": int64(2)}, enter)
	choose := b.add("Switch", dtype, merge, frame.Cond.Out(0))
	next := b.add("NextIteration", dtype, graph.Output{Node: choose.Node, Index: 1})
	b.connect(next, merge.Node, 1)
	if b.err != nil {
		return nil, b.err
	}
	if frame.Cond.Assigned != dst.Assigned {
		l.g.ConnectControl(merge.Node, choose.Node)
	}
	l.loops[key] = merge.Node
	return merge.Node, nil
}

// start returns the initial value of the added loop, in the frame around it.
func (l *loopAdder) start(frame *loopframe.Frame, dst *graph.Node) (graph.Output, error) {
	if frame.Parent.Parent != nil {
		merge, err := l.loop(frame.Parent, dst)
		if err != nil {
			return graph.Output{}, err
		}
		return merge.Out(0), nil
	}
	if err := takeNode(dst.Name); err != nil {
		return graph.Output{}, err
	}
	n, err := l.g.Add(l.o.NewName(dst.Name), "Const", opdef.Attrs{"dtype": tensor.Float32, "value": emptyTensor})
	if err != nil {
		return graph.Output{}, err
	}
	n.Assigned = dst.Assigned
	return n.Out(0), nil
}

// builder adds the nodes of one loop. After an error its methods do nothing.
type builder struct {
	*loopAdder
	prefix, device string
	err            error
}

func (b *builder) add(op string, attrs opdef.Attrs, inputs ...graph.Output) graph.Output {
	if b.err != nil {
		return graph.Output{}
	}
	if b.err = takeNode(b.prefix); b.err != nil {
		return graph.Output{}
	}
	n, err := b.g.Add(loopPrefix+b.o.NewName(b.prefix), op, attrs)
	if err != nil {
		b.err = err
		return graph.Output{}
	}
	n.Assigned = b.device
	for i, in := range inputs {
		b.connect(in, n, i)
	}
	return n.Out(0)
}

func (b *builder) connect(src graph.Output, dst *graph.Node, in int) {
	if b.err == nil {
		b.err = b.g.Connect(src, dst, in)
	}
}
