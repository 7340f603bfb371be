package timeline

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/format/chrometrace"
	"github.com/weft-ml/weft/internal/proto/pb"
)

const (
	psCPU     = "/job:ps/replica:0/task:0/device:CPU:0"
	workerCPU = "/job:worker/replica:0/task:0/device:CPU:0"
	ms        = int64(time.Millisecond)
)

// example returns the recording of a step of 10 ms. The worker dequeues for 4 ms and multiplies for
// 3 ms; the parameter server receives the product in 1 ms, and adds it in 2 ms. The clock of the
// parameter server is an hour ahead.
func example() *pb.ClusterRecording {
	const begin = int64(1_700_000_000_000_000_000)
	const ahead = int64(time.Hour)
	worker := &pb.Recording{
		Begin: begin, End: begin + 20*ms,
		Nodes: []*pb.RecordedNode{
			{Name: "queue", Op: "FIFOQueueV2", Device: workerCPU},
			{Name: "next", Op: "QueueDequeueV2", Device: workerCPU, Inputs: []int32{0}, Waits: true},
			{Name: "product", Op: "MatMul", Device: workerCPU, Inputs: []int32{1}},
			{Name: "product_S1", Op: "_Send", Device: workerCPU, Inputs: []int32{2}, Tensor: "edge_1_product", From: workerCPU, To: psCPU},
		},
		Executions: []*pb.Execution{
			{Node: 3, Step: 1, Ready: 8 * ms, Took: ms / 2}, // out of order
			{Node: 1, Step: 1, Ready: 1 * ms, Took: 4 * ms},
			{Node: 2, Step: 1, Ready: 5 * ms, Took: 3 * ms, Bytes: 100},
		},
		Parts: []*pb.RecordedPart{{Step: 1, Start: 1 * ms, Took: 8 * ms}},
		Steps: []*pb.RecordedStep{{Step: 1, Session: "abc", Start: 1 * ms, Took: 10 * ms}, {Step: 2, Start: 12 * ms, Took: 8 * ms}},
	}
	ps := &pb.Recording{
		Begin: begin + ahead + ms, End: begin + ahead + 20*ms, Lost: 2,
		Nodes: []*pb.RecordedNode{
			{Name: "product_R1", Op: "_Recv", Device: psCPU, Tensor: "edge_1_product", From: workerCPU, To: psCPU, Waits: true},
			{Name: "sum", Op: "AssignAdd", Device: psCPU, Inputs: []int32{0}},
		},
		Executions: []*pb.Execution{
			{Node: 0, Step: 1, Ready: 0, Took: 8 * ms},
			{Node: 1, Step: 1, Ready: 8 * ms, Took: 2 * ms},
			{Node: 7, Step: 1}, // does not exist
		},
		Transfers: []*pb.RecordedTransfer{{
			Step: 1, Tensor: "edge_1_product", From: workerCPU, To: psCPU, Bytes: 1 << 20, Requested: 0, Received: 8 * ms,
			SentMicros: (begin + 8*ms) / 1000,
		}},
		Parts: []*pb.RecordedPart{{Step: 1, Start: 0, Took: 10 * ms}, {Step: 2, Start: 15 * ms, Took: 4 * ms, Unfinished: true}},
	}
	return &pb.ClusterRecording{Tasks: []*pb.RecordedTask{
		{Name: "/job:ps/replica:0/task:0", Recording: ps, ClockOffset: ahead, ClockError: 1000},
		{Name: "/job:worker/replica:0/task:0", Recording: worker},
		{Name: "/job:worker/replica:0/task:1", Error: "connection refused"},
	}}
}

func TestShares(t *testing.T) {
	shares := Build(example()).Shares()
	d := func(n int64) time.Duration { return time.Duration(n) }
	want := []Share{
		{Task: "ps/0", Compute: d(2 * ms), Transfer: d(1 * ms), Wait: d(11 * ms), Idle: d(5 * ms), Steps: 1, Received: 1 << 20},
		{Task: "worker/0", Compute: d(7 * ms / 2), Wait: d(9 * ms / 2), Idle: d(12 * ms), Steps: 1},
	}
	if len(shares) != 2 || shares[0] != want[0] || shares[1] != want[1] {
		t.Errorf("got  %+v\nwant %+v", shares, want)
	}
}

func TestSummary(t *testing.T) {
	var b bytes.Buffer
	if err := Build(example()).WriteSummary(&b); err != nil {
		t.Fatal(err)
	}
	const want = `recorded 20ms
ps/0: the recording was full; 3 records are missing
ps/0: parts of steps still running at the end: 1 ('weft status' shows for whom they wait)
worker/1 is not recorded: connection refused

      task  steps  compute  transfer   wait   idle  received
      ps/0      1    10.5%      5.3%  57.9%  26.3%   1.0 MiB
  worker/0      1    17.5%      0.0%  22.5%  60.0%   0.0 MiB

nodes that computed longest:
  3ms  1×  longest 3ms  worker/0  MatMul     product
  2ms  1×  longest 2ms  ps/0      AssignAdd  sum

longest waits:
  8ms  1×  longest 8ms  ps/0      _Recv           edge_1_product from worker/0
  4ms  1×  longest 4ms  worker/0  QueueDequeueV2  next (QueueDequeueV2 on queue)

critical path of the slowest step (10ms):
  7.5ms  worker/0         nodes: 3; longest: next, 4ms; between nodes: 0s
  500µs  worker/0 → ps/0  edge_1_product
  2ms    ps/0             nodes: 1; longest: sum, 2ms; between nodes: 0s
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTrace checks the rules of the format that viewers depend on: complete events of a thread do
// not overlap, each arrow has two ends in complete events, and it does not lead back in time.
func TestTrace(t *testing.T) {
	var b bytes.Buffer
	if err := Build(example()).WriteTrace(&b); err != nil {
		t.Fatal(err)
	}
	var file struct {
		TraceEvents []chrometrace.Event
	}
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	names, flows, spans := map[string]int{}, map[int][]chrometrace.Event{}, []chrometrace.Event{}
	for _, e := range file.TraceEvents {
		switch e.Phase {
		case chrometrace.Complete:
			names[e.Name]++
			for _, s := range spans {
				if s.Process == e.Process && s.Thread == e.Thread && s.Start < e.Start+*e.Took && e.Start < s.Start+*s.Took {
					t.Errorf("%v and %v overlap", s, e)
				}
			}
			spans = append(spans, e)
		case chrometrace.FlowStart, chrometrace.FlowEnd:
			flows[e.Flow] = append(flows[e.Flow], e)
		case chrometrace.Metadata:
			if e.Name == chrometrace.ProcessName {
				names[e.Args["name"].(string)]++
			}
		default:
			t.Errorf("unexpected phase of %v", e)
		}
	}
	for _, want := range []string{
		"edge_1_product from ps/0", "edge_1_product to ps/0", "edge_1_product from worker/0", "product", "sum", "step", "part of a step",
		"next (QueueDequeueV2 on queue)", "ps/0", "worker/0", "worker/1 (not recorded: connection refused)",
	} {
		if (names[want] > 0) == strings.HasPrefix(want, "edge_1_product from ps") {
			t.Errorf("%d events have the name %q", names[want], want)
		}
	}
	if len(flows) != 1 {
		t.Fatalf("the arrows are %v", flows)
	}
	for _, ends := range flows {
		if len(ends) != 2 || ends[0].Phase != chrometrace.FlowStart || ends[1].Phase != chrometrace.FlowEnd || ends[0].Start > ends[1].Start {
			t.Fatalf("the ends of an arrow are %v", ends)
		}
		for _, end := range ends {
			inside := false
			for _, s := range spans {
				inside = inside || s.Process == end.Process && s.Thread == end.Thread && s.Start <= end.Start && end.Start <= s.Start+*s.Took
			}
			if !inside {
				t.Errorf("%v is in no event", end)
			}
		}
	}
}

// TestArrowOfLongSend records a send that was interrupted and ends after the receive, and one that
// begins after it by the clocks.
func TestArrowOfLongSend(t *testing.T) {
	for late, want := range map[bool]int{false: 2, true: 0} {
		line := Build(example())
		for _, a := range line.arrows {
			from, to := line.op(a.from), line.op(a.to)
			if late {
				from.start = to.end + time.Millisecond
			}
			from.end = to.end + time.Second
		}
		tr := tracer{timeline: line, at: map[place]int{}}
		for i := range line.Tasks {
			tr.task(i)
		}
		spans := len(tr.events)
		tr.addArrows()
		if got := tr.events[spans:]; len(got) != want {
			t.Errorf("%d ends of arrows, want %d", len(got), want)
		} else if want > 0 {
			to := tr.events[tr.at[line.arrows[0].to]]
			if got[0].Start > got[1].Start || got[1].Start > to.Start+*to.Took {
				t.Errorf("the arrow %v leads to %v", got, to)
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	var b bytes.Buffer
	timeline := Build(&pb.ClusterRecording{})
	if err := timeline.WriteSummary(&b); err != nil || !strings.Contains(b.String(), "no step was recorded") {
		t.Errorf("got %q, %v", b.String(), err)
	}
	if err := timeline.WriteTrace(&b); err != nil {
		t.Error(err)
	}
}

func TestIntervals(t *testing.T) {
	a := union([]interval{{5, 9}, {1, 3}, {2, 4}, {9, 10}, {7, 7}})
	if len(a) != 2 || a[0] != (interval{1, 4}) || a[1] != (interval{5, 10}) {
		t.Errorf("the union is %v", a)
	}
	rest := a.without(intervals{{0, 2}, {3, 6}, {7, 8}})
	if want := (intervals{{2, 3}, {6, 7}, {8, 10}}); len(rest) != 3 || rest[0] != want[0] || rest[1] != want[1] || rest[2] != want[2] {
		t.Errorf("the rest is %v, want %v", rest, want)
	}
	if a.total() != 8 {
		t.Errorf("the total is %d", a.total())
	}
}

// A loop executes its nodes often. The path takes the executions that depend on each other.
func TestPathOfLoop(t *testing.T) {
	r := &pb.Recording{
		Begin: 1, End: 1 + 100*ms,
		Nodes: []*pb.RecordedNode{
			{Name: "next", Op: "NextIteration", Device: workerCPU, Inputs: []int32{1}},
			{Name: "body", Op: "Mul", Device: workerCPU, Inputs: []int32{0}},
		},
		Steps: []*pb.RecordedStep{{Step: 1, Took: 100 * ms}},
	}
	for i := range int64(50) {
		r.Executions = append(r.Executions, &pb.Execution{Node: 0, Step: 1, Ready: 2 * i * ms, Took: ms},
			&pb.Execution{Node: 1, Step: 1, Ready: (2*i + 1) * ms, Took: ms})
	}
	took, segments := Build(&pb.ClusterRecording{Tasks: []*pb.RecordedTask{{Name: "/job:worker/replica:0/task:0", Recording: r}}}).Path()
	if took != 100*time.Millisecond || len(segments) != 1 || segments[0].Nodes != 100 || segments[0].Took != took || segments[0].Idle != 0 {
		t.Errorf("got %v, %+v", took, segments)
	}
}

// A recording has a million records at most. The steps of a master may have no nodes, and the nodes
// of a task that does not follow the protocol a device each.
func TestManyRecords(t *testing.T) {
	const n = 100_000
	var task Task
	for i := range time.Duration(n) {
		node := &pb.RecordedNode{Device: strconv.Itoa(int(i))}
		task.ops = append(task.ops, op{node: node, step: 1, start: i, end: i + 1})
		task.steps = append(task.steps, step{span: span{step: 2, end: i}})
	}
	began := time.Now()
	tl := Timeline{Tasks: []Task{task}}
	if _, ok := tl.slowest(); ok {
		t.Error("a step without nodes is the slowest")
	}
	if lanes := deviceLanes(&task); len(lanes) != n {
		t.Errorf("%d devices", len(lanes))
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}
