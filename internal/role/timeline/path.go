package timeline

import (
	"slices"
	"sort"
	"time"
)

// Segment is a piece of the critical path: nodes of one task, one after the other, or a transfer.
type Segment struct {
	Task  string // that computes, waits or receives
	From  string // the task that sends, for a transfer; "" otherwise
	Took  time.Duration
	Nodes int
	// Longest is the node that took most of the time, or the tensor of a transfer.
	Longest     string
	LongestTook time.Duration
	// Idle is the part of Took in which no node of the path ran: a ready node waited for a
	// processor, or the executor worked.
	Idle time.Duration
}

// slowest returns the longest step that was recorded from its begin to its end, by the master that
// ran it.
func (t *Timeline) slowest() (out step, ok bool) {
	recorded := map[int64]bool{} // steps with nodes
	for i := range t.Tasks {
		for j := range t.Tasks[i].ops {
			recorded[t.Tasks[i].ops[j].step] = true
		}
	}
	for i := range t.Tasks {
		for _, s := range t.Tasks[i].steps {
			if s.code == 0 && (!ok || s.end-s.start > out.end-out.start) && recorded[s.step] {
				out, ok = s, true
			}
		}
	}
	return out, ok
}

// stepIndex finds the executions of one step.
type stepIndex struct {
	t       *Timeline
	byNode  map[nodePlace][]place // executions of a node of a partition, by their starts
	senders map[place]place       // by receiver
}

type nodePlace struct {
	task int
	node int32
}

func (t *Timeline) index(step int64) *stepIndex {
	x := &stepIndex{t, map[nodePlace][]place{}, map[place]place{}}
	for i := range t.Tasks {
		for j := range t.Tasks[i].ops {
			if o := &t.Tasks[i].ops[j]; o.step == step && o.depth == 0 {
				key := nodePlace{i, o.index}
				x.byNode[key] = append(x.byNode[key], place{i, j})
			}
		}
	}
	for _, a := range t.arrows {
		if t.op(a.to).step == step {
			x.senders[a.to] = a.from
		}
	}
	return x
}

// last returns the execution of the step that ended last.
func (x *stepIndex) last() (out place, ok bool) {
	for _, places := range x.byNode {
		for _, p := range places {
			if end := x.t.op(p).end; !ok || end > x.t.op(out).end || end == x.t.op(out).end && before(p, out) {
				out, ok = p, true
			}
		}
	}
	return out, ok
}

// before orders executions that ended at the same time.
func before(a, b place) bool { return a.task < b.task || a.task == b.task && a.op < b.op }

// cause returns the execution that another one waited for last: its sender, or the producer of the
// input that arrived last.
func (x *stepIndex) cause(p place) (out place, ok bool) {
	o := x.t.op(p)
	if from, sent := x.senders[p]; sent {
		return from, x.t.op(from).start < o.end
	}
	for _, in := range o.node.GetInputs() {
		if q, found := x.lastBefore(nodePlace{p.task, in}, o.start); found && (!ok || x.t.op(q).end > x.t.op(out).end) {
			out, ok = q, true
		}
	}
	return out, ok
}

// maxOverlap bounds the executions of a node that are looked at because they overlap.
const maxOverlap = 1024

// lastBefore returns the last execution of a node that started before a time and ended by then, if
// few of them overlap.
func (x *stepIndex) lastBefore(n nodePlace, at time.Duration) (out place, ok bool) {
	places := x.byNode[n]
	i := sort.Search(len(places), func(i int) bool { return x.t.op(places[i]).start >= at })
	for _, p := range slices.Backward(places[max(0, i-maxOverlap):i]) {
		if x.t.op(p).end <= at {
			return p, true
		}
	}
	return place{}, false
}

// Path returns the critical path of the slowest step: its time, and the segments that add up to it,
// in the order of time. It returns no segments if no whole step was recorded.
func (t *Timeline) Path() (took time.Duration, segments []Segment) {
	s, ok := t.slowest()
	if !ok {
		return 0, nil
	}
	x := t.index(s.step)
	var chain []place
	for p, more := x.last(); more && len(chain) < maxChain; p, more = x.cause(p) {
		chain = append(chain, p)
	}
	slices.Reverse(chain)
	return s.end - s.start, x.segments(chain, s)
}

// maxChain bounds the length of a path.
const maxChain = 1_000_000

// segments divides the time of a step among the executions of a chain. The time of an execution is
// that from the end of its cause to its own end. The rest of the step goes to its master.
func (x *stepIndex) segments(chain []place, s step) []Segment {
	var out []Segment
	at := s.start
	for i, p := range chain {
		o := x.t.op(p)
		task := x.t.Tasks[p.task].Name
		next := Segment{Task: task, Took: max(o.end-at, 0), Nodes: 1, Longest: o.node.GetName()}
		next.LongestTook = min(o.end-max(o.start, at), next.Took)
		next.Idle = next.Took - max(next.LongestTook, 0)
		if sender, sent := x.senders[p]; sent && i > 0 && chain[i-1] == sender && sender.task != p.task {
			next.From, next.Longest, next.LongestTook, next.Idle = x.t.Tasks[sender.task].Name, o.node.GetTensor(), next.Took, 0
		}
		at = max(at, o.end)
		if n := len(out); n > 0 && out[n-1].Task == next.Task && out[n-1].From == "" && next.From == "" {
			out[n-1].merge(next)
			continue
		}
		out = append(out, next)
	}
	return out
}

// merge adds the next node of the same task.
func (s *Segment) merge(next Segment) {
	s.Took += next.Took
	s.Nodes += next.Nodes
	s.Idle += next.Idle
	if next.LongestTook > s.LongestTook {
		s.Longest, s.LongestTook = next.Longest, next.LongestTook
	}
}
