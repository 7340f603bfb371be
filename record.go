package weft

import (
	"context"
	"io"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/timeline"
	"github.com/weft-ml/weft/status"
)

// Recording is what all tasks of a cluster have executed in a short time, on one clock.
type Recording struct{ timeline *timeline.Timeline }

// RecordCluster records all tasks of the target's cluster for a duration of at most 9 minutes and
// 55 seconds, or until one task has finished a number of steps as a master; 0 for no such limit.
// Tasks of TensorFlow are not recorded. It fails with FailedPrecondition for tasks that are being
// recorded already, and with Unimplemented if the target is a server of TensorFlow.
func RecordCluster(ctx context.Context, target string, duration time.Duration, steps int, opts ...TargetOption) (*Recording, error) {
	master, done, err := connectOnce(target, opts)
	if err != nil {
		return nil, err
	}
	defer done(ctx)
	recorder, ok := master.(interface {
		RecordCluster(context.Context, *pb.RecordClusterRequest) (*pb.ClusterRecording, error)
	})
	if !ok {
		return nil, status.Unimplementedf("the target %s cannot be recorded", target)
	}
	recorded, err := recorder.RecordCluster(ctx, &pb.RecordClusterRequest{DurationNanos: duration.Nanoseconds(), Steps: int64(steps)})
	if err != nil {
		return nil, err
	}
	return &Recording{timeline.Build(recorded)}, nil
}

// WriteTrace writes the recording in Chrome's trace event format, which Perfetto and
// chrome://tracing display. A task is a process; arrows lead from the nodes that send a tensor to
// those that receive it.
func (r *Recording) WriteTrace(w io.Writer) error { return r.timeline.WriteTrace(w) }

// WriteSummary says in words where the time went: the nodes that computed longest, how much of its
// time each task computed, received and waited, and the critical path of the slowest step.
func (r *Recording) WriteSummary(w io.Writer) error { return r.timeline.WriteSummary(w) }

// Missing returns why tasks are not recorded, by their names such as "ps/0".
func (r *Recording) Missing() map[string]string {
	out := map[string]string{}
	for i := range r.timeline.Tasks {
		if t := &r.timeline.Tasks[i]; t.Error != "" {
			out[t.Name] = t.Error
		}
	}
	return out
}
