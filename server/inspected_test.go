package server

import (
	"io"
	"log/slog"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestInspectedCluster asks a parameter server for what a worker knows: the numbers of summaries,
// the graph of a session, and the log.
func TestInspectedCluster(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 1})
	log := WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))) //nolint:sloglint // its lines are kept for others
	p := start(t, cluster.ServerDef{Cluster: spec, Job: "ps"}, WithListener(listeners[ps]), log)
	w := start(t, cluster.ServerDef{Cluster: spec, Job: "worker"}, WithListener(listeners[worker0]), log)
	root := op.NewScope()
	value := op.Placeholder(root, tensor.Float32)
	loss := op.ScalarSummary(root, op.Const(root, "loss"), value)
	s, err := weft.NewSession(w.Target(), root.Graph())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Fetch(t.Context(), weft.Feeds{value: tensor.Scalar[float32](0.25)}, loss); err != nil {
		t.Fatal(err)
	}
	found, err := p.inspection.GetScalars(t.Context(), &pb.GetScalarsRequest{Cluster: true})
	if err != nil || len(found.GetSeries()) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if got := found.GetSeries()[0]; got.GetTask() != "/job:worker/replica:0/task:0" || got.GetTag() != "loss" || got.GetValues()[0] != 0.25 || got.GetSteps()[0] != -1 {
		t.Errorf("the series is %v", got)
	}
	handle := w.task.Master.Inspect(t.Context())[0].GetHandle()
	graph, err := p.inspection.GetGraph(t.Context(), &pb.GetGraphRequest{Task: "/job:worker/task:0", Session: handle})
	if err != nil || len(graph.GetNodes()) != 3 {
		t.Errorf("%v, %v", graph, err)
	}
	for task, code := range map[string]status.Code{"worker": status.InvalidArgument, "/job:worker/task:7": status.InvalidArgument, "/job:ps/task:0": status.NotFound} {
		if _, err := p.inspection.GetGraph(t.Context(), &pb.GetGraphRequest{Task: task, Session: handle}); status.CodeOf(err) != code {
			t.Errorf("%s: %v", task, err)
		}
	}
	lines, err := p.inspection.GetLog(t.Context(), &pb.GetLogRequest{Cluster: true, Level: "info", Lines: 1})
	if err != nil || len(lines.GetLines()) != 2 || len(lines.GetMissing()) != 0 {
		t.Errorf("%v, %v", lines, err)
	}
	for _, req := range []*pb.GetLogRequest{{Level: "loud"}, {Lines: -1}} {
		if _, err := p.inspection.GetLog(t.Context(), req); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%v: %v", req, err)
		}
	}
	if _, err := p.inspection.SetLogLevel(t.Context(), &pb.SetLogLevelRequest{}); status.CodeOf(err) != status.Unimplemented {
		t.Errorf("a server without a level: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	lines, err = p.inspection.GetLog(t.Context(), &pb.GetLogRequest{Cluster: true})
	if err != nil || lines.GetMissing()["/job:worker/replica:0/task:0"] == "" {
		t.Errorf("after the end of the worker: %v, %v", lines, err)
	}
}
