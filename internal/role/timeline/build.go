package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
)

// Timeline is what the tasks of a cluster have executed. Times are those since its begin, by the
// clock of the task that was asked for the recording.
type Timeline struct {
	Tasks []Task
	// Length is the time from the first begin to the last end of a recording.
	Length time.Duration
	arrows []arrow
}

// Task is what one task has executed.
type Task struct {
	Name       string        // "ps/0"
	Error      string        // why the task is not recorded; "" if it is
	ClockError time.Duration // bound of the error of its times
	Lost       int           // records for which there was no memory
	start, end time.Duration // of the recording
	nodes      []*pb.RecordedNode
	ops        []op // in the order of their starts
	transfers  []transfer
	parts      []span // of steps on the task
	steps      []step // of its master
	kernels    []kernelRun
}

// kernelRun is a kernel or a copy of a GPU.
type kernelRun struct {
	device, name, node string
	copied             bool
	start, end         time.Duration
}

// kind is what a node spends its time with.
type kind int

const (
	compute kind = iota
	send         // passes a tensor to another device
	receive      // waits for a tensor of another device, and takes it
	wait         // waits for something else, such as an element of a queue
	call         // calls functions, whose nodes are recorded
)

// op is an execution of a node.
type op struct {
	node              *pb.RecordedNode
	index             int32 // of node in the recording
	kind              kind
	step              int64
	ready, start, end time.Duration
	depth             int
	bytes             int64
}

// span is a time of a step.
type span struct {
	step       int64
	start, end time.Duration
	unfinished bool
}

// step is a step that a master has run.
type step struct {
	span
	session string
	code    int32
}

// transfer is a tensor that was received from another task.
type transfer struct {
	step                  int64
	tensor, from, to      string
	bytes                 int64
	requested, sent, done time.Duration
}

// place names an execution: the task and the position in its ops.
type place struct{ task, op int }

// arrow joins the node that sent a tensor with the one that received it.
type arrow struct{ from, to place }

// Build returns the timeline of a recording.
func Build(c *pb.ClusterRecording) *Timeline {
	t := &Timeline{}
	origin, last := extent(c)
	t.Length = time.Duration(last - origin)
	offsets := map[string]int64{}
	for _, task := range c.GetTasks() {
		offsets[cluster.ShortName(task.GetName())] = task.GetClockOffset()
	}
	for _, task := range c.GetTasks() {
		b := builder{origin, offsets, task.GetRecording(), Task{
			Name: cluster.ShortName(task.GetName()), Error: task.GetError(), ClockError: time.Duration(task.GetClockError()), Lost: int(task.GetRecording().GetLost()),
		}, task.GetClockOffset()}
		b.add()
		t.Tasks = append(t.Tasks, b.out)
	}
	t.join()
	return t
}

// extent returns the first begin and the last end of a recording, in nanoseconds of the common
// clock.
func extent(c *pb.ClusterRecording) (begin, end int64) {
	for _, task := range c.GetTasks() {
		if r := task.GetRecording(); r != nil {
			b, e := r.GetBegin()-task.GetClockOffset(), r.GetEnd()-task.GetClockOffset()
			if begin == 0 || b < begin {
				begin = b
			}
			end = max(end, e)
		}
	}
	return begin, end
}

// builder converts the recording of one task.
type builder struct {
	origin  int64            // of the timeline, in nanoseconds of the common clock
	offsets map[string]int64 // of the clocks of the tasks
	in      *pb.Recording
	out     Task
	offset  int64 // of this task's clock
}

// at converts a time of the recording.
func (b *builder) at(since int64) time.Duration {
	return time.Duration(b.in.GetBegin() + since - b.offset - b.origin)
}

// span converts a time with a duration.
func (b *builder) span(step, start, took int64) span {
	return span{step: step, start: b.at(start), end: b.at(start + took)}
}

func (b *builder) add() {
	in := b.in
	if in == nil {
		return
	}
	b.out.nodes = in.GetNodes()
	b.out.start, b.out.end = b.at(0), b.at(in.GetEnd()-in.GetBegin())
	for _, x := range in.GetExecutions() {
		if int(x.GetNode()) >= len(in.GetNodes()) || x.GetNode() < 0 {
			b.out.Lost++ // of a task that does not follow the protocol
			continue
		}
		n := in.GetNodes()[x.GetNode()]
		ready := b.at(x.GetReady())
		start := ready + time.Duration(x.GetQueued())
		b.out.ops = append(b.out.ops, op{
			node: n, index: x.GetNode(), kind: kindOf(n), step: x.GetStep(), ready: ready, start: start, end: start + time.Duration(x.GetTook()),
			depth: int(x.GetDepth()), bytes: x.GetBytes(),
		})
	}
	slices.SortStableFunc(b.out.ops, func(a, b op) int { return cmp.Compare(a.start, b.start) })
	for _, r := range in.GetTransfers() {
		b.out.transfers = append(b.out.transfers, b.transfer(r))
	}
	for _, k := range in.GetKernels() {
		start := b.at(k.GetStart())
		b.out.kernels = append(b.out.kernels, kernelRun{
			k.GetDevice(), k.GetName(), k.GetNode(), k.GetCopy(), start, start + time.Duration(k.GetTook()),
		})
	}
	slices.SortStableFunc(b.out.kernels, func(a, b kernelRun) int { return cmp.Compare(a.start, b.start) })
	for _, p := range in.GetParts() {
		s := b.span(p.GetStep(), p.GetStart(), p.GetTook())
		s.unfinished = p.GetUnfinished()
		b.out.parts = append(b.out.parts, s)
	}
	for _, s := range in.GetSteps() {
		b.out.steps = append(b.out.steps, step{b.span(s.GetStep(), s.GetStart(), s.GetTook()), s.GetSession(), s.GetCode()})
	}
}

// transfer converts a transfer. The time at which it was sent, by the clock of the other task, is
// brought between the request and the end.
func (b *builder) transfer(r *pb.RecordedTransfer) transfer {
	out := transfer{
		step: r.GetStep(), tensor: r.GetTensor(), from: r.GetFrom(), to: r.GetTo(), bytes: r.GetBytes(),
		requested: b.at(r.GetRequested()), done: b.at(r.GetReceived()),
	}
	out.sent = out.requested
	if r.GetSentMicros() != 0 {
		sent := time.Duration(r.GetSentMicros()*1000 - b.offsets[cluster.ShortName(r.GetFrom())] - b.origin)
		out.sent = min(max(sent, out.requested), out.done)
	}
	return out
}

// kindOf returns what a node spends its time with.
func kindOf(n *pb.RecordedNode) kind {
	switch n.GetOp() {
	case "_Send", "_HostSend", "Send":
		return send
	case "_Recv", "_HostRecv", "Recv":
		return receive
	case "PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile", "For",
		"RemoteCall", "SymbolicGradient", "_If", "_While":
		return call
	}
	if n.GetWaits() {
		return wait
	}
	return compute
}

// edge identifies what one node sends to another.
type edge struct {
	step             int64
	tensor, from, to string
}

// join finds the sender of each received tensor. In loops, the senders and receivers of an edge
// have the same order.
func (t *Timeline) join() {
	senders := map[edge][]place{}
	each := func(k kind, f func(edge, place)) {
		for i := range t.Tasks {
			for j := range t.Tasks[i].ops {
				if o := &t.Tasks[i].ops[j]; o.kind == k && o.node.GetTensor() != "" {
					f(edge{o.step, o.node.GetTensor(), o.node.GetFrom(), o.node.GetTo()}, place{i, j})
				}
			}
		}
	}
	each(send, func(e edge, p place) { senders[e] = append(senders[e], p) })
	each(receive, func(e edge, p place) {
		if from := senders[e]; len(from) > 0 {
			t.arrows = append(t.arrows, arrow{from[0], p})
			senders[e] = from[1:]
		}
	})
}

func (t *Timeline) op(p place) *op { return &t.Tasks[p.task].ops[p.op] }
