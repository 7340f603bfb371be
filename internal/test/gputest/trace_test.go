package gputest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

// TestTracedStep checks that the trace of a step has the kernels and copies of the devices, under
// the names with which TensorFlow's timelines show them.
func TestTracedStep(t *testing.T) {
	s := op.NewScope()
	x := op.Placeholder(s.WithDevice("/cpu:0"), tensor.Float32)
	y := op.MatMul(s.WithDevice("/gpu:0").Named("product"), x, x)
	z := op.Exp(s.WithDevice("/gpu:1").Named("power"), y)
	session := open(t, s)
	step := weft.Step{Feeds: []op.Output{x}, Fetches: []op.Output{z}}
	traced, err := session.RunTraced(t.Context(), step, []tensor.Tensor{matrix(t, 2, 2, 1, 2, 3, 4)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := traced.Metadata.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var m pb.RunMetadata
	if err := proto.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	got := map[string][]*pb.NodeExecStats{}
	for _, d := range m.GetStepStats().GetDevStats() {
		got[d.GetDevice()] = append(got[d.GetDevice()], d.GetNodeStats()...)
	}
	for device, want := range map[string]string{
		"/device:GPU:0/stream:1":            "product matmul",
		"/device:GPU:0/stream:all":          "product matmul",
		"/device:GPU:0/stream:1<MemcpyH2D>": "MemcpyH2D MemcpyH2D kind_src:pinned kind_dst:device size:16 async:1",
		"/device:GPU:0/memcpy":              "MemcpyD2H MemcpyD2H kind_src:device kind_dst:pinned size:16 async:1",
		"/device:GPU:1/stream:all":          "power exp_",
	} {
		found := false
		for _, n := range got[device] {
			if strings.HasPrefix(n.GetNodeName()+" "+n.GetTimelineLabel(), want) {
				found = true
			}
			if n.GetAllStartMicros() < n.GetScheduledMicros() || n.GetAllEndRelMicros() < 0 {
				t.Errorf("%s: %v", device, n)
			}
		}
		if !found {
			t.Errorf("%s has no %q: %v", device, want, got[device])
		}
	}
	for device, allocator := range map[string]string{"/device:GPU:0": "GPU_0_bfc", "/device:GPU:1": "GPU_1_bfc"} {
		found := false
		for _, n := range got["/job:localhost/replica:0/task:0"+device] {
			for _, m := range n.GetMemory() {
				found = found || m.GetAllocatorName() == allocator && m.GetTotalBytes() == 16
			}
		}
		if !found {
			t.Errorf("%s allocates nothing by %s", device, allocator)
		}
	}
}

// TestTruncatedTrace limits traces to fewer records than a GPU has kernels and copies. The nodes
// fit.
func TestTruncatedTrace(t *testing.T) {
	limits := server.DefaultLimits()
	limits.TraceRecords = 3
	worker := startCluster(t, server.WithLimits(limits))[1]
	s := op.NewScope()
	gpu := s.WithDevice("/job:worker/task:0/gpu:0")
	x := op.Placeholder(s.WithDevice("/job:worker/task:0/cpu:0"), tensor.Float32)
	y := op.Exp(gpu, op.MatMul(gpu, x, x))
	session := openAt(t, worker.Target(), s)
	traced, err := session.RunTraced(t.Context(), weft.Step{Feeds: []op.Output{x}, Fetches: []op.Output{y}}, []tensor.Tensor{matrix(t, 1, 1, 1)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := traced.Metadata.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "the rest of the trace is left out: 1 kernels and copies") {
		t.Error("the trace has no note")
	}
	if page := metricsOf(t, worker); !strings.Contains(page, `weft_limited_total{limit="trace_records"} 1`+"\n") {
		t.Error("the limit was not counted")
	}
}

// TestRecordedCluster checks that a recording has the kernels and copies of GPUs: in the trace as
// threads of their own, and in the summary.
func TestRecordedCluster(t *testing.T) {
	servers := startCluster(t)
	training, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for training.Err() == nil {
			trainAt(t, servers[1].Target(), "/job:ps/task:0/cpu:0", 10, workerGPUs[:2]...)
		}
	}()
	recording, err := weft.RecordCluster(t.Context(), servers[0].Target(), 10*time.Second, 20)
	stop()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	var trace, summary strings.Builder
	if err := errors.Join(recording.WriteTrace(&trace), recording.WriteSummary(&summary)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"GPU:0 kernels"`, `"GPU:1 copies"`, `"name":"relugrad_f32"`, `"node":"tower1/`, `"cat":"copy"`} {
		if !strings.Contains(trace.String(), want) {
			t.Errorf("the trace has no %s", want)
		}
	}
	_, kernels, found := strings.Cut(summary.String(), "longest kernels and copies of GPUs:")
	if !found || !strings.Contains(kernels, "MemcpyH2D") || !strings.Contains(kernels, "GPU:1") {
		t.Errorf("the summary is\n%s", &summary)
	}
}
