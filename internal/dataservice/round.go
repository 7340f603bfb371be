package dataservice

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/proto/datapb"
	"github.com/weft-ml/weft/status"
)

// round is one round of coordinated reads: every consumer receives one of the elements, which are
// produced when all consumers have asked for theirs.
type round struct {
	waiting  map[int64]bool // consumers that have asked
	produced chan struct{}  // closed when elements and err are set
	elements []*datapb.GetElementResponse
	err      error
	taken    int
}

// coordinated returns the element of a consumer in a round.
func (t *runningTask) coordinated(ctx context.Context, req *datapb.GetElementRequest, consumers int) (*datapb.GetElementResponse, error) {
	number, consumer := req.GetRoundIndex(), req.GetConsumerIndex()
	if consumer < 0 || consumer >= int64(consumers) {
		return nil, status.FailedPreconditionf("Requesting data for consumer index %d, but the task is configured for only %d consumers",
			consumer, consumers)
	}
	t.mu.Lock()
	r := t.rounds[number]
	if r == nil {
		r = &round{waiting: map[int64]bool{}, produced: make(chan struct{})}
		t.rounds[number] = r
	}
	last := !r.waiting[consumer] && len(r.waiting) == consumers-1
	r.waiting[consumer] = true
	t.mu.Unlock()
	if last {
		t.produce(r, consumers)
	}
	select {
	case <-r.produced:
	case <-ctx.Done():
		return nil, status.FromContext(ctx, "waiting for the other consumers of a round")
	case <-t.ctx.Done():
		return nil, status.Cancelledf("the task %d has ended", t.def.GetTaskId())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.taken++; r.taken == consumers {
		delete(t.rounds, number)
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.elements[consumer], nil
}

func (t *runningTask) produce(r *round, consumers int) {
	defer close(r.produced)
	for range consumers {
		e, err := t.take(t.ctx)
		if err != nil {
			r.err = err
			return
		}
		r.elements = append(r.elements, e)
	}
}

// retryInterval is the time between calls of a dispatcher that does not answer.
const retryInterval = 200 * time.Millisecond

// pause waits before a call is repeated.
func (t *runningTask) pause() error {
	timer := time.NewTimer(retryInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.ctx.Done():
		return status.FromContext(t.ctx, "waiting for the dispatcher")
	}
}
