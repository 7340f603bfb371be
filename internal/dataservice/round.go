package dataservice

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/proto/datapb"
	"github.com/weft-ml/weft/status"
)

// round is one round of coordinated reads: every consumer receives one of the elements, which are
// produced when all consumers have asked for theirs.
//
// A round lives while consumers wait for it. The last one that was produced stays until the next
// one, for a consumer that asks again because it did not receive the answer.
type round struct {
	waiting  map[int64]int // number of requests of each consumer that wait
	started  bool          // it is being produced, or was; guarded by the mutex of the task
	ended    chan struct{} // closed when elements or err is set
	elements []*datapb.GetElementResponse
	err      error
}

// maxRounds bounds the rounds for which the consumers of a task wait. A consumer asks for its next
// element of a task when it has the last one, so they ask for one round, or for two.
const maxRounds = 64

// coordinated returns the element of a consumer in a round.
func (t *runningTask) coordinated(ctx context.Context, req *datapb.GetElementRequest, consumers int64) (*datapb.GetElementResponse, error) {
	number, consumer := req.GetRoundIndex(), req.GetConsumerIndex()
	if consumer < 0 || number < 0 {
		return nil, status.FailedPreconditionf("RoundRobinTaskRunner needs to know the consumer index and element index of each request, got %d and %d",
			consumer, number)
	}
	if consumer >= consumers {
		return nil, status.FailedPreconditionf("Requesting data for consumer index %d, but the task is configured for only %d consumers",
			consumer, consumers)
	}
	r, last, err := t.enter(number, consumer, consumers)
	if err != nil {
		return nil, err
	}
	if last {
		t.produce(number, r, consumers)
	}
	select {
	case <-r.ended:
	case <-ctx.Done():
		t.leave(number, r, consumer)
		return nil, status.FromContext(ctx, "waiting for the other consumers of a round")
	case <-t.ctx.Done():
		t.leave(number, r, consumer)
		return nil, status.Cancelledf("the task %d has ended", t.def.GetTaskId())
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.elements[consumer], nil
}

// enter makes a consumer wait for a round. last reports whether all consumers do now, so that the
// caller must produce the round. Earlier rounds end then: those who wait for them get an error.
func (t *runningTask) enter(number, consumer, consumers int64) (r *round, last bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if number < t.current {
		return nil, false, t.tooLate(number, t.current)
	}
	if r = t.rounds[number]; r == nil {
		if len(t.rounds) >= maxRounds {
			return nil, false, status.ResourceExhaustedf("Consumer %d requested data for round %d, but the consumers of task %d wait for %d other rounds, "+
				"which is the limit: their requests must be for the same round.", consumer, number, t.def.GetTaskId(), maxRounds)
		}
		r = &round{waiting: map[int64]int{}, ended: make(chan struct{})}
		t.rounds[number] = r
	}
	if r.started {
		return r, false, nil
	}
	r.waiting[consumer]++
	if int64(len(r.waiting)) < consumers {
		return r, false, nil
	}
	r.started, r.waiting = true, nil
	t.current = number
	for k, earlier := range t.rounds {
		if k >= number {
			continue
		}
		delete(t.rounds, k)
		if !earlier.started {
			earlier.err = t.tooLate(k, number)
			close(earlier.ended)
		}
	}
	return r, true, nil
}

func (t *runningTask) tooLate(number, current int64) error {
	return status.FailedPreconditionf("A consumer of task %d requested data for round %d, but the current round has already reached %d. "+
		"This may indicate that the consumer was restarted with the same iteration name.", t.def.GetTaskId(), number, current)
}

// leave ends the wait of a consumer. A round for which none waits is forgotten.
func (t *runningTask) leave(number int64, r *round, consumer int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.started {
		return
	}
	if r.waiting[consumer]--; r.waiting[consumer] == 0 {
		delete(r.waiting, consumer)
	}
	if len(r.waiting) == 0 && t.rounds[number] == r {
		delete(t.rounds, number)
	}
}

// produce produces the elements of a round. A round that fails is forgotten, so that the consumers
// can ask for it again.
func (t *runningTask) produce(number int64, r *round, consumers int64) {
	defer close(r.ended)
	for range consumers {
		e, err := t.take(t.ctx)
		if err != nil {
			r.err = err
			t.mu.Lock()
			if t.rounds[number] == r {
				delete(t.rounds, number)
			}
			t.mu.Unlock()
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
