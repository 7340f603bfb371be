package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/recorder"
	"github.com/weft-ml/weft/status"
)

const (
	// clockProbes is the number of times that a task is asked for its clock. The fastest answer
	// counts.
	clockProbes = 8
	// recordMargin is added to the time after which a recording ends by itself, for the calls that
	// begin it on all tasks.
	recordMargin = 5 * time.Second
	// fetchTimeout bounds the transfer of a recording.
	fetchTimeout = time.Minute
)

// A recordedTask controls the recording of one task.
type recordedTask interface {
	Record(ctx context.Context, req *pb.RecordRequest) (*pb.RecordResponse, error)
}

// Record implements [rpc.Inspection].
func (i *inspection) Record(ctx context.Context, req *pb.RecordRequest) (*pb.RecordResponse, error) {
	r := i.server.task.Recorder
	out := &pb.RecordResponse{}
	var err error
	switch req.GetAction() {
	case pb.RecordRequest_CLOCK:
	case pb.RecordRequest_START:
		err = r.Start(req.GetId(), time.Duration(req.GetLimitNanos()))
	case pb.RecordRequest_AWAIT:
		err = r.Await(ctx, req.GetId(), req.GetSteps())
	case pb.RecordRequest_STOP:
		out.Recording, err = r.Stop(req.GetId())
	default:
		err = status.InvalidArgumentf("unknown action %d of a recording", req.GetAction())
	}
	out.Clock = time.Now().UnixNano()
	return out, err
}

// RecordCluster implements [rpc.Inspection]. It begins a recording on all tasks, waits, and fetches
// the recordings. A task that is not recorded has an error in the result.
func (i *inspection) RecordCluster(ctx context.Context, req *pb.RecordClusterRequest) (*pb.ClusterRecording, error) {
	duration := time.Duration(req.GetDurationNanos())
	if duration <= 0 || duration > recorder.MaxDuration-recordMargin || req.GetSteps() < 0 {
		return nil, status.InvalidArgumentf("a recording of %v and %d steps: the time must be longer than 0 and at most %v, the number not negative",
			duration, req.GetSteps(), recorder.MaxDuration-recordMargin)
	}
	c := i.newClusterRecorder()
	c.each(func(t *taskRecorder) { t.start(ctx, c.id, duration+recordMargin) })
	waitErr := c.wait(ctx, duration, req.GetSteps())
	c.each(func(t *taskRecorder) { t.fetch(ctx, c.id) })
	if waitErr != nil {
		return nil, waitErr
	}
	out := &pb.ClusterRecording{}
	for _, t := range c.tasks {
		if t.err != nil {
			t.out.Error = t.err.Error()
		}
		out.Tasks = append(out.Tasks, t.out)
	}
	return out, nil
}

// clusterRecorder is one recording of all tasks.
type clusterRecorder struct {
	id    uint64
	tasks []*taskRecorder
}

// taskRecorder is the part of one task. It belongs to one goroutine at a time.
type taskRecorder struct {
	task recordedTask
	out  *pb.RecordedTask
	err  error // the task is not recorded
}

func (i *inspection) newClusterRecorder() *clusterRecorder {
	c := &clusterRecorder{id: rand.Uint64()}
	for _, task := range i.server.def.Cluster.Tasks() {
		t := &taskRecorder{out: &pb.RecordedTask{Name: task.String()}}
		t.task, t.err = i.recorded(task)
		c.tasks = append(c.tasks, t)
	}
	return c
}

func (i *inspection) recorded(task cluster.Task) (recordedTask, error) {
	if task == i.server.def.Self() {
		return i, nil
	}
	return i.peers.Worker(task)
}

// each calls f for all tasks without an error, concurrently, and waits.
func (c *clusterRecorder) each(f func(*taskRecorder)) {
	var wg sync.WaitGroup
	for _, t := range c.tasks {
		if t.err == nil {
			wg.Go(func() { f(t) })
		}
	}
	wg.Wait()
}

// start compares the clocks and begins the recording.
func (t *taskRecorder) start(ctx context.Context, id uint64, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	if t.err = t.compareClocks(ctx); t.err != nil {
		return
	}
	_, t.err = t.task.Record(ctx, &pb.RecordRequest{Action: pb.RecordRequest_START, Id: id, LimitNanos: limit.Nanoseconds()})
}

// compareClocks measures the difference to the task's clock. The clock of the task was read in the
// middle of a call, give or take half of the time of the call.
func (t *taskRecorder) compareClocks(ctx context.Context) error {
	for probe := range clockProbes {
		start := time.Now()
		resp, err := t.task.Record(ctx, &pb.RecordRequest{Action: pb.RecordRequest_CLOCK})
		took := time.Since(start)
		switch {
		case status.CodeOf(err) == status.Unimplemented:
			return fmt.Errorf("the task is one of TensorFlow, or of a release that is not recorded: %w", err)
		case err != nil:
			return err
		}
		if half := took.Nanoseconds() / 2; probe == 0 || half < t.out.ClockError {
			t.out.ClockError, t.out.ClockOffset = half, resp.GetClock()-start.UnixNano()-half
		}
	}
	return nil
}

// wait waits until the time is over or a task has finished the steps; 0 steps are never finished.
func (c *clusterRecorder) wait(ctx context.Context, duration time.Duration, steps int64) error {
	timed, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	if steps > 0 {
		c.each(func(t *taskRecorder) {
			if _, err := t.task.Record(timed, &pb.RecordRequest{Action: pb.RecordRequest_AWAIT, Id: c.id, Steps: steps}); err == nil {
				cancel()
			}
		})
	}
	<-timed.Done() // also if no task could wait
	if ctx.Err() != nil {
		return status.FromContext(ctx, "recording the cluster")
	}
	return nil
}

// fetch ends the recording and takes it.
func (t *taskRecorder) fetch(ctx context.Context, id uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	resp, err := t.task.Record(ctx, &pb.RecordRequest{Action: pb.RecordRequest_STOP, Id: id})
	t.out.Recording, t.err = resp.GetRecording(), err
}
