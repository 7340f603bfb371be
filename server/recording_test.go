package server

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/recorder"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestRecordCluster records steps on two tasks until one has finished five.
func TestRecordCluster(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 1})
	p := start(t, cluster.ServerDef{Cluster: spec, Job: "ps"}, WithListener(listeners[ps]))
	w := start(t, cluster.ServerDef{Cluster: spec, Job: "worker"}, WithListener(listeners[worker0]))
	root := op.NewScope()
	v := op.VarHandleOp(root.WithDevice("/job:ps/task:0"), tensor.Float32, tensor.MakePartial(2), op.VarHandleOpSharedName("weights"))
	assign := op.AssignVariableOp(root.WithDevice("/job:ps/task:0"), v, op.Const(root, []float32{1, 2}))
	read := op.ReadVariableOp(root.WithDevice("/job:ps/task:0"), v, tensor.Float32)
	square := op.Square(root.WithDevice("/job:worker/task:0"), read)
	s := session(t, w, root)
	if err := s.Exec(t.Context(), nil, assign); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var training sync.WaitGroup
	training.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.Fetch(ctx, nil, square); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	start := time.Now()
	recording, err := weft.RecordCluster(t.Context(), p.Target(), 5*time.Minute, 5)
	cancel()
	training.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if time.Since(start) > time.Minute {
		t.Error("the recording has not ended after five steps")
	}
	if missing := recording.Missing(); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
	var summary, trace bytes.Buffer
	if err := recording.WriteSummary(&summary); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ps/0", "worker/0", "Square", "_Recv", "from ps/0", "critical path", "ps/0 → worker/0"} {
		if !strings.Contains(summary.String(), want) {
			t.Errorf("the summary has no %q:\n%s", want, summary.String())
		}
	}
	if err := recording.WriteTrace(&trace); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ph":"s"`, `"ph":"f"`, `"ReadVariableOp"`, `"part of a step"`} {
		if !strings.Contains(trace.String(), want) {
			t.Errorf("the trace has no %s", want)
		}
	}
	for _, s := range []*Server{p, w} {
		if s.task.Recorder.Current() != nil {
			t.Errorf("%v is still being recorded", s.Task())
		}
	}
}

// A task that is silent, or recorded by another caller, has an error. The others are recorded.
func TestRecordingWithoutTask(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 1})
	w := start(t, cluster.ServerDef{Cluster: spec, Job: "worker"}, WithListener(listeners[worker0]))
	listeners[ps].Close()
	recording, err := weft.RecordCluster(t.Context(), w.Target(), time.Millisecond, 0)
	if err != nil {
		t.Fatal(err)
	}
	if missing := recording.Missing(); len(missing) != 1 || !strings.Contains(missing["ps/0"], "connection refused") {
		t.Errorf("missing: %v", missing)
	}
	if err := w.task.Recorder.Start(1, time.Minute); err != nil {
		t.Fatal(err)
	}
	recording, err = weft.RecordCluster(t.Context(), w.Target(), time.Millisecond, 0)
	if err != nil {
		t.Fatal(err)
	}
	if missing := recording.Missing(); !strings.Contains(missing["worker/0"], "being recorded by another caller") {
		t.Errorf("missing: %v", missing)
	}
	for _, duration := range []time.Duration{0, -1, recorder.MaxDuration} {
		if _, err := weft.RecordCluster(t.Context(), w.Target(), duration, 0); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("a recording of %v: %v", duration, err)
		}
	}
}

// A recording ends on all tasks when its caller gives up.
func TestRecordingIsCancelled(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1})
	p := start(t, cluster.ServerDef{Cluster: spec, Job: "ps"}, WithListener(listeners[ps]))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := weft.RecordCluster(ctx, p.Target(), time.Minute, 0)
		done <- err
	}()
	for p.task.Recorder.Current() == nil {
		if len(done) > 0 {
			t.Fatal(<-done)
		}
	}
	cancel()
	if err := <-done; status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
	for p.task.Recorder.Current() != nil { // it ends soon
	}
}

// Unknown actions of the protocol are refused.
func TestRecordActions(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1})
	p := start(t, cluster.ServerDef{Cluster: spec, Job: "ps"}, WithListener(listeners[ps]))
	about := &inspection{p, rpc.NewPeers(p.def.Cluster, p.conns), time.Now(), nil, nil}
	for req, want := range map[*pb.RecordRequest]status.Code{
		{}: status.OK, {Action: 17}: status.InvalidArgument, {Action: pb.RecordRequest_STOP, Id: 3}: status.NotFound,
		{Action: pb.RecordRequest_AWAIT, Id: 3}: status.NotFound, {Action: pb.RecordRequest_START, LimitNanos: -1}: status.InvalidArgument,
	} {
		resp, err := about.Record(t.Context(), req)
		if status.CodeOf(err) != want || resp.GetClock() == 0 {
			t.Errorf("%v: got %v, %v", req, resp, err)
		}
	}
}
