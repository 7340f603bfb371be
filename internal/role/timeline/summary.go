package timeline

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weft-ml/weft/cluster"
)

// Share says how a task spent the time of its recording. The parts add up to the whole.
type Share struct {
	Task string
	// Compute is the time in which at least one kernel ran, Transfer that in which only tensors
	// were being received, and Wait that in which parts of steps ran and did neither. Idle is the
	// rest.
	Compute, Transfer, Wait, Idle time.Duration
	Steps                         int // parts of steps that ended
	Received                      int64
}

// Shares returns how each recorded task spent its time.
func (t *Timeline) Shares() []Share {
	var out []Share
	for i := range t.Tasks {
		if t.Tasks[i].Error == "" {
			out = append(out, t.Tasks[i].share())
		}
	}
	return out
}

func (t *Task) share() Share {
	out := Share{Task: t.Name}
	var computing, moving, running []interval
	clip := func(start, end time.Duration) interval { return interval{max(start, t.start), min(end, t.end)} }
	for i := range t.ops {
		if o := &t.ops[i]; o.kind == compute || o.kind == send {
			computing = append(computing, clip(o.start, o.end))
		}
	}
	for i := range t.transfers {
		moving = append(moving, clip(t.transfers[i].sent, t.transfers[i].done))
		out.Received += t.transfers[i].bytes
	}
	for _, p := range t.parts {
		running = append(running, clip(p.start, p.end))
		if !p.unfinished {
			out.Steps++
		}
	}
	busy := union(computing)
	transfer := union(moving).without(busy)
	waiting := union(running).without(busy).without(transfer)
	out.Compute, out.Transfer, out.Wait = busy.total(), transfer.total(), waiting.total()
	out.Idle = max(t.end-t.start-out.Compute-out.Transfer-out.Wait, 0)
	return out
}

// unfinished returns the number of parts of steps that were running when the recording ended.
func (t *Task) unfinished() int {
	n := 0
	for _, p := range t.parts {
		if p.unfinished {
			n++
		}
	}
	return n
}

// Total is the time of all executions of a node, of all waits for one thing, or of all runs of a
// kernel.
type Total struct {
	Task, Name string
	Op         string // operation, or device of a kernel
	Count      int
	Took       time.Duration
	Longest    time.Duration
}

// Nodes returns the nodes whose kernels took most time, at most n.
func (t *Timeline) Nodes(n int) []Total {
	return t.totals(n, func(_ place, o *op) (string, bool) { return o.node.GetName(), o.kind == compute })
}

// Waits returns what nodes waited for longest, at most n: tensors of other tasks, and resources
// such as queues.
func (t *Timeline) Waits(n int) []Total {
	return t.totals(n, func(p place, o *op) (string, bool) {
		switch o.kind {
		case receive:
			return o.node.GetTensor() + " from " + cluster.ShortName(o.node.GetFrom()), true
		case wait:
			return t.waitName(p), true
		case compute, send, call:
		}
		return "", false
	})
}

// Kernels returns the kernels and copies on which GPUs spent most time, at most n.
func (t *Timeline) Kernels(n int) []Total {
	sums := map[[3]string]*Total{}
	for i := range t.Tasks {
		for j := range t.Tasks[i].kernels {
			k := &t.Tasks[i].kernels[j]
			add(sums, [3]string{t.Tasks[i].Name, k.name, localDevice(k.device)}, k.end-k.start)
		}
	}
	return greatest(sums, n)
}

// add adds a time to the total of a task, a name, and an operation or a device.
func add(sums map[[3]string]*Total, key [3]string, took time.Duration) {
	sum := sums[key]
	if sum == nil {
		sum = &Total{Task: key[0], Name: key[1], Op: key[2]}
		sums[key] = sum
	}
	sum.Count++
	sum.Took += took
	sum.Longest = max(sum.Longest, took)
}

// totals adds up the executions with the same task and name, and returns the n greatest.
func (t *Timeline) totals(n int, name func(place, *op) (string, bool)) []Total {
	sums := map[[3]string]*Total{}
	for i := range t.Tasks {
		for j := range t.Tasks[i].ops {
			o := &t.Tasks[i].ops[j]
			label, ok := name(place{i, j}, o)
			if !ok {
				continue
			}
			add(sums, [3]string{t.Tasks[i].Name, label, o.node.GetOp()}, o.end-o.start)
		}
	}
	return greatest(sums, n)
}

// greatest returns the n greatest totals.
func greatest(sums map[[3]string]*Total, n int) []Total {
	out := slices.SortedFunc(maps.Values(sums), func(a, b *Total) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Name, b.Name))
	})
	totals := make([]Total, min(n, len(out)))
	for i := range totals {
		totals[i] = *out[i]
	}
	return totals
}
