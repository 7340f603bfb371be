package worker

import (
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
)

func TestTransferLabels(t *testing.T) {
	for _, tt := range []struct {
		bytes int64
		took  time.Duration
		want  string
	}{
		{64, 773 * time.Microsecond, "[64B] [0.662354Mb/s] edge_6_b from a to b"},
		{4, 0, "[4B] [32.000000Mb/s] edge_6_b from a to b"},
		{100 << 20, 100 * time.Millisecond, "[100.0MB] [8.4Gb/s] edge_6_b from a to b"},
	} {
		start := time.Unix(1, 0)
		got := transfer{name: "edge_6_b", from: "a", to: "b", bytes: tt.bytes, start: start, end: start.Add(tt.took)}.label()
		if got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestTransferLog(t *testing.T) {
	w := &Worker{}
	logging := func(req *pb.LoggingRequest) []*pb.LabeledStepStats {
		resp, err := w.Logging(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Step
	}
	add := func(step int64, to string) { w.transfers.record(transfer{step: step, to: to}) }

	add(1, "a") // logging is off
	logging(&pb.LoggingRequest{EnableRpcLogging: true})
	logging(&pb.LoggingRequest{EnableRpcLogging: true})
	add(2, "a")
	add(2, "b")
	add(2, "a")
	logging(&pb.LoggingRequest{DisableRpcLogging: true})
	add(3, "a") // the other master has it enabled
	got := logging(&pb.LoggingRequest{FetchStepId: []int64{1, 2, 3}})
	if len(got) != 2 || got[0].StepId != 2 || len(got[0].StepStats.DevStats) != 2 || len(got[0].StepStats.DevStats[0].NodeStats) != 2 {
		t.Errorf("got %v", got)
	}
	if got := logging(&pb.LoggingRequest{FetchStepId: []int64{2}}); len(got) != 0 {
		t.Errorf("a step is returned twice: %v", got)
	}
	logging(&pb.LoggingRequest{}) // the form in which old masters disable it
	if w.transfers.active() {
		t.Error("transfers are recorded though no master has asked")
	}
	logging(&pb.LoggingRequest{EnableRpcLogging: true})
	for step := range int64(3000) {
		add(step, "a")
	}
	if n := len(w.transfers.steps); n > maxLoggedSteps {
		t.Errorf("%d steps are kept", n)
	}
	if w.transfers.active() {
		t.Error("transfers are recorded though no master requests them")
	}
	logging(&pb.LoggingRequest{EnableRpcLogging: true, Clear: true})
	if n := len(w.transfers.steps); n != 0 {
		t.Errorf("%d steps are kept after Clear", n)
	}
}

// The transfers of one step are bounded: a loop has any number.
func TestTransfersOfOneStep(t *testing.T) {
	w := &Worker{}
	if _, err := w.Logging(t.Context(), &pb.LoggingRequest{EnableRpcLogging: true}); err != nil {
		t.Fatal(err)
	}
	kept := func() (n int) {
		for _, s := range w.transfers.steps {
			for _, d := range s.GetDevStats() {
				n += len(d.GetNodeStats())
			}
		}
		return n
	}
	for range maxLoggedTransfers + 2 {
		w.transfers.record(transfer{step: 1, to: "a"})
	}
	if n := kept(); n != 0 || w.transfers.kept != n || w.transfers.active() {
		t.Errorf("%d transfers are kept, and %d counted, want 0; active: %t", n, w.transfers.kept, w.transfers.active())
	}
	if _, err := w.Logging(t.Context(), &pb.LoggingRequest{EnableRpcLogging: true}); err != nil {
		t.Fatal(err)
	}
	w.transfers.record(transfer{step: 1, to: "a"})
	if _, err := w.Logging(t.Context(), &pb.LoggingRequest{FetchStepId: []int64{1}}); err != nil || w.transfers.kept != 0 {
		t.Errorf("%d transfers are counted, want 0; %v", w.transfers.kept, err)
	}
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1)
	for range 1000 {
		w.transfers.record(transfer{step: 1, to: "a"})
	}
	if n := kept(); n == 1000 {
		t.Error("no transfer is dropped without memory")
	}
}
