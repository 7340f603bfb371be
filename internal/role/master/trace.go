package master

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
)

// trace records what a client asks to know about a step besides its results. A nil *trace records
// nothing.
type trace struct {
	session  *session
	plan     *plan
	timeline bool // record the times of kernels and transfers
	costs    bool // record the costs of nodes
	graphs   bool // record the graph of each device
	memory   bool // report allocations when memory runs out
}

func newTrace(s *session, p *plan, options *pb.RunOptions) (*trace, error) {
	t := trace{
		session: s, plan: p, timeline: options.GetTraceLevel() == pb.RunOptions_FULL_TRACE,
		graphs: options.GetOutputPartitionGraphs(), memory: options.GetReportTensorAllocationsUponOom(),
	}
	run := p.runs.Add(1)
	if every := s.config.GetGraphOptions().GetBuildCostModel(); every > 0 {
		t.costs = (run-s.config.GetGraphOptions().GetBuildCostModelAfter())%every == 0
	}
	if t.graphs && s.config.GetExperimental().GetDisableOutputPartitionGraphs() {
		return nil, status.InvalidArgumentf("RunOptions.output_partition_graphs() is not supported when " +
			"disable_output_partition_graphs is true.")
	}
	if !t.timeline && !t.costs && !t.graphs && !t.memory {
		return nil, nil //nolint:nilnil // nothing is to be recorded
	}
	recorded := t
	return &recorded, nil
}

// executorOptions returns the options for the workers, nil if they record nothing.
func (t *trace) executorOptions() *pb.ExecutorOpts {
	if t == nil {
		return nil
	}
	return &pb.ExecutorOpts{
		RecordCosts: t.costs, RecordTimeline: t.timeline, RecordPartitionGraphs: t.graphs,
		ReportTensorAllocationsUponOom: t.memory,
	}
}

// begin makes all tasks of the step record their transfers.
func (t *trace) begin(ctx context.Context) {
	if t != nil && t.timeline {
		t.logging(ctx, &pb.LoggingRequest{EnableRpcLogging: true})
	}
}

// logging sends a request to all tasks of the step. If one fails, the trace lacks its transfers.
func (t *trace) logging(ctx context.Context, req *pb.LoggingRequest) []*pb.LoggingResponse {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	resps := make([]*pb.LoggingResponse, len(t.plan.partitions))
	err := forEachConcurrently(len(resps), func(i int) error {
		var err error
		resps[i], err = t.plan.partitions[i].worker.Logging(ctx, req)
		return err
	})
	if err != nil {
		t.session.master.Log.Debug("a task records no transfers", "session", t.session.handle, "error", err)
	}
	return resps
}

// noMetadata is the metadata of a step that records nothing. It must not be modified.
var noMetadata = &pb.RunMetadata{}

// end collects the records: first the transfers, those to the master's own task before the others,
// then the kernels.
func (t *trace) end(ctx context.Context, id int64, resps []*message.RunGraphResponse) *pb.RunMetadata {
	if t == nil {
		return noMetadata
	}
	out := &pb.RunMetadata{}
	if t.timeline {
		out.StepStats = &pb.StepStats{}
		logs := t.logging(ctx, &pb.LoggingRequest{DisableRpcLogging: true, FetchStepId: []int64{id}})
		if local := t.plan.local; local >= 0 {
			addTransfers(out.StepStats, logs[local], id)
			logs[local] = nil
		}
		for _, log := range logs {
			addTransfers(out.StepStats, log, id)
		}
	}
	for _, resp := range resps {
		if t.timeline {
			out.StepStats.DevStats = append(out.StepStats.DevStats, resp.StepStats.GetDevStats()...)
		}
		if t.costs && len(resp.CostGraph.GetNode()) > 0 {
			if out.CostGraph == nil {
				out.CostGraph = &pb.CostGraphDef{}
			}
			out.CostGraph.Node = append(out.CostGraph.Node, resp.CostGraph.GetNode()...)
		}
		if t.graphs {
			out.PartitionGraphs = append(out.PartitionGraphs, resp.PartitionGraphs...)
		}
	}
	return out
}

func addTransfers(stats *pb.StepStats, resp *pb.LoggingResponse, id int64) {
	for _, step := range resp.GetStep() {
		if step.GetStepId() == id {
			stats.DevStats = append(stats.DevStats, step.GetStepStats().GetDevStats()...)
		}
	}
}
