package timeline

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/format/chrometrace"
	"github.com/weft-ml/weft/status"
)

// Lanes of a task: rows of the trace with events of one kind.
const (
	stepLane = iota
	partLane
	computeLane // and lanes for the other devices
	receiveLane = 1000
	waitLane    = 2000
	gpuLane     = 3000 // kernels of the first device, then its copies, then those of the next one
)

// laneSize is the number of rows that belong to a lane of a task.
const laneSize = 1000

// WriteTrace writes the timeline in Chrome's trace event format. A task is a process. Its threads
// are the steps that its master runs, its parts of steps, the nodes of each device, the tensors
// that it receives, what else it waits for, and the kernels and copies of each GPU. Arrows lead
// from the nodes that send a tensor to those that receive it on another task.
func (t *Timeline) WriteTrace(w io.Writer) error {
	tr := tracer{timeline: t, at: map[place]int{}}
	for i := range t.Tasks {
		tr.task(i)
	}
	tr.addArrows()
	return chrometrace.Write(w, tr.events)
}

// tracer collects the events of a trace.
type tracer struct {
	timeline *Timeline
	events   []chrometrace.Event
	at       map[place]int // event of each operation that sends or receives
	// of the current task
	process int
	rows    map[int]*chrometrace.Rows
	named   map[int]bool
}

func (tr *tracer) task(i int) {
	t := &tr.timeline.Tasks[i]
	tr.process, tr.rows, tr.named = i+1, map[int]*chrometrace.Rows{}, map[int]bool{}
	name := t.Name
	if t.Error != "" {
		name += " (not recorded: " + t.Error + ")"
	}
	tr.events = append(tr.events, chrometrace.Name(chrometrace.ProcessName, tr.process, 0, name),
		chrometrace.SortIndex(chrometrace.ProcessSortIndex, tr.process, 0, i))
	slices.SortFunc(t.steps, func(a, b step) int { return cmp.Compare(a.start, b.start) })
	for _, s := range t.steps {
		args := map[string]any{"step": fmt.Sprint(s.step), "session": s.session}
		if s.code != 0 {
			args["error"] = status.Code(s.code).String()
		}
		tr.add(stepLane, "steps of its sessions", "step", "step", s.start, s.end, args)
	}
	slices.SortFunc(t.parts, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for _, p := range t.parts {
		args := map[string]any{"step": fmt.Sprint(p.step)}
		if p.unfinished {
			args["unfinished"] = true
		}
		tr.add(partLane, "parts of steps", "part of a step", "part", p.start, p.end, args)
	}
	tr.kernels(t)
	lanes := deviceLanes(t)
	for j := range t.ops {
		tr.op(place{i, j}, lanes)
	}
}

// kernels adds what the GPUs of a task have executed.
func (tr *tracer) kernels(t *Task) {
	lanes := map[string]int{}
	for i := range t.kernels {
		k := &t.kernels[i]
		lane, ok := lanes[k.device]
		if !ok {
			lane = gpuLane + 2*len(lanes)
			lanes[k.device] = lane
		}
		title, category := localDevice(k.device)+" kernels", "kernel"
		if k.copied {
			lane, title, category = lane+1, localDevice(k.device)+" copies", "copy"
		}
		tr.add(lane, title, k.name, category, k.start, k.end, map[string]any{"node": k.node})
	}
}

// deviceLanes returns the lanes of the devices of a task's nodes, in the order of their names. The
// nodes of a task that does not follow the protocol may have a million devices.
func deviceLanes(t *Task) map[string]int {
	lanes := map[string]int{}
	for i := range t.ops {
		lanes[t.ops[i].node.GetDevice()] = 0
	}
	for i, name := range slices.Sorted(maps.Keys(lanes)) {
		lanes[name] = computeLane + i
	}
	return lanes
}

// op adds an execution.
func (tr *tracer) op(p place, lanes map[string]int) {
	o := tr.timeline.op(p)
	lane := lanes[o.node.GetDevice()]
	title, name, category := localDevice(o.node.GetDevice()), o.node.GetName(), o.node.GetOp()
	args := map[string]any{"op": o.node.GetOp(), "step": fmt.Sprint(o.step), "bytes": o.bytes}
	if queued := o.start - o.ready; queued > 0 {
		args["ready before start (µs)"] = chrometrace.Micros(queued)
	}
	switch o.kind {
	case receive:
		lane, title = receiveLane, "receives"
		name = o.node.GetTensor() + " from " + cluster.ShortName(o.node.GetFrom())
	case wait:
		lane, title = waitLane, "waits"
		name = tr.timeline.waitName(p)
	case send:
		name = o.node.GetTensor() + " to " + cluster.ShortName(o.node.GetTo())
	case compute, call:
	}
	tr.add(lane, title, name, category, o.start, o.end, args)
	if o.kind == send || o.kind == receive {
		tr.at[p] = len(tr.events) - 1
	}
}

// waitName says what a node waits for: its operation, and the node of the resource.
func (t *Timeline) waitName(p place) string {
	o := t.op(p)
	name, nodes := o.node.GetName(), t.Tasks[p.task].nodes
	if inputs := o.node.GetInputs(); len(inputs) > 0 && int(inputs[0]) < len(nodes) {
		return name + " (" + o.node.GetOp() + " on " + nodes[inputs[0]].GetName() + ")"
	}
	return name + " (" + o.node.GetOp() + ")"
}

// localDevice returns "CPU:0" for the full name of a device.
func localDevice(name string) string {
	if i := strings.LastIndex(name, "/device:"); i >= 0 {
		return name[i+len("/device:"):]
	}
	return name // of a task that does not follow the protocol
}

// add adds an event in a lane, in the first row of it that is free.
func (tr *tracer) add(lane int, title, name, category string, start, end time.Duration, args map[string]any) {
	rows := tr.rows[lane]
	if rows == nil {
		rows = &chrometrace.Rows{}
		tr.rows[lane] = rows
	}
	row := rows.Place(start, end)
	thread := lane*laneSize + row
	if !tr.named[thread] {
		tr.named[thread] = true
		if row > 0 {
			title = fmt.Sprintf("%s (%d)", title, row+1)
		}
		tr.events = append(tr.events, chrometrace.Name(chrometrace.ThreadName, tr.process, thread, title),
			chrometrace.SortIndex(chrometrace.ThreadSortIndex, tr.process, thread, thread))
	}
	event := chrometrace.Span(name, tr.process, thread, start, end-start)
	event.Category, event.Args = category, args
	tr.events = append(tr.events, event)
}

// addArrows adds the arrows between tasks. Each end lies within its event, so that viewers find the
// event that it belongs to.
func (tr *tracer) addArrows() {
	for i, a := range tr.timeline.arrows {
		if a.from.task == a.to.task {
			continue
		}
		from, to := tr.events[tr.at[a.from]], tr.events[tr.at[a.to]]
		// Both ends lie within their events. A send that was interrupted ends after the receive.
		end := to.Start + *to.Took*0.999
		start := max(from.Start, min(from.Start+*from.Took/2, end))
		if end < start {
			continue // by the clocks, the tensor has arrived before it was sent
		}
		tr.events = append(tr.events,
			chrometrace.Event{
				Name: "tensor", Category: "transfer", Phase: chrometrace.FlowStart, Process: from.Process, Thread: from.Thread, Start: start, Flow: i + 1,
			},
			chrometrace.Event{
				Name: "tensor", Category: "transfer", Phase: chrometrace.FlowEnd, Bind: "e", Process: to.Process, Thread: to.Thread, Start: end, Flow: i + 1,
			})
	}
}
