package master_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
)

func TestFullTrace(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, sum)
	x := testcluster.Feeds{"x:0": scalar(1)}
	resp, err := s.Step(t.Context(), x, []string{"z:0"}, nil, &pb.RunOptions{
		TraceLevel: pb.RunOptions_FULL_TRACE, OutputPartitionGraphs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	stats := resp.Metadata.GetStepStats().GetDevStats()
	checkTransfers(t, stats)
	checkKernels(t, stats)
	if n := len(resp.Metadata.GetPartitionGraphs()); n != 3 {
		t.Errorf("%d partition graphs, want 3", n)
	}
	calls := c.Calls()
	if n := testcluster.Count(calls, "Logging"); n != 4 {
		t.Errorf("%d Logging calls, want 2 to each other task", n)
	}
	resp, err = s.Step(t.Context(), x, []string{"z:0"}, nil, nil)
	if err != nil || resp.Metadata.StepStats != nil || testcluster.Count(c.Calls(), "Logging") > 0 {
		t.Errorf("the next step is traced as well: %v, %v", resp, err)
	}
}

// checkTransfers checks that each task has recorded its transfers, and that those of the master's
// own task come first.
func checkTransfers(t *testing.T, stats []*pb.DeviceStepStats) {
	t.Helper()
	var to, labels []string
	for _, d := range stats {
		for _, n := range d.NodeStats {
			if n.NodeName == "RecvTensor" {
				to = append(to, d.Device)
				labels = append(labels, n.TimelineLabel)
			}
		}
	}
	if len(to) < 3 || to[0] != "/job:worker/replica:0/task:0/device:CPU:0" {
		t.Errorf("transfers to %v, want one to the master's task first and to all tasks", to)
	}
	for _, l := range labels {
		if !strings.HasPrefix(l, "[4B] [") || !strings.Contains(l, "b/s] edge_") || !strings.Contains(l, " from /job:") {
			t.Errorf("label %q", l)
		}
	}
}

func checkKernels(t *testing.T, stats []*pb.DeviceStepStats) {
	t.Helper()
	var labels []string
	for _, d := range stats {
		for _, n := range d.NodeStats {
			if n.AllStartMicros == 0 || n.OpEndRelMicros > n.AllEndRelMicros {
				t.Errorf("times of %s: %v", n.NodeName, n)
			}
			labels = append(labels, n.TimelineLabel)
		}
	}
	for _, want := range []string{"_SOURCE = NoOp()", "z = TestAdd(", "y = TestAdd("} {
		if !slices.ContainsFunc(labels, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("no %q among %q", want, labels)
		}
	}
}

func TestCostsAreRecordedEveryFewSteps(t *testing.T) {
	s := openWith(t, psWorker(t), sum, &pb.ConfigProto{GraphOptions: &pb.GraphOptions{BuildCostModel: 2}})
	for i, want := range []bool{false, true, false, true} {
		resp, err := s.Step(t.Context(), testcluster.Feeds{"x:0": scalar(1)}, []string{"z:0"}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		nodes := resp.Metadata.GetCostGraph().GetNode()
		has := slices.ContainsFunc(nodes, func(n *pb.CostGraphDef_Node) bool { return n.Name == "z" && len(n.OutputInfo) == 1 })
		if has != want {
			t.Errorf("step %d: costs of z recorded: %v, want %v", i, has, want)
		}
	}
}

func TestPartitionGraphsCanBeForbidden(t *testing.T) {
	s := openWith(t, psWorker(t), one, &pb.ConfigProto{
		Experimental: &pb.ConfigProto_Experimental{DisableOutputPartitionGraphs: true},
	})
	_, err := s.Step(t.Context(), nil, []string{"a:0"}, nil, &pb.RunOptions{OutputPartitionGraphs: true})
	expect(t, err, status.InvalidArgument, "RunOptions.output_partition_graphs() is not supported")
}
