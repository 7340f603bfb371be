// Package recorder records what a task executes for a short time: nodes, transfers, and the steps
// that its master runs. The recordings of all tasks of a cluster make up a timeline.
//
// A recording is collected in memory and fetched once, when it has ended. While nothing is
// recorded, a step pays for one atomic load on each of its tasks.
package recorder

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

const (
	// MaxDuration bounds the time of a recording.
	MaxDuration = 10 * time.Minute
	// keepTime is how long a recording that has ended waits to be fetched.
	keepTime = time.Minute
)

// Recorder makes the recordings of a task, one at a time. The zero value is ready for use. A nil
// *Recorder records nothing. Its methods may be called concurrently.
type Recorder struct {
	// Devices are those of the task. The kernels and copies of GPUs among them are recorded. It
	// does not change after the first use.
	Devices []*kernel.Device

	current atomic.Pointer[Recording] // nil while nothing is recorded

	mu     sync.Mutex
	kept   *Recording  // current, or ended and not fetched; guarded by mu
	timer  *time.Timer // ends kept, and then drops it; guarded by mu
	closed bool        // guarded by mu
}

// Current returns the recording to add to, nil if there is none.
func (r *Recorder) Current() *Recording {
	if r == nil {
		return nil
	}
	return r.current.Load()
}

// Start begins a recording that the caller numbers. It ends after limit at the latest.
func (r *Recorder) Start(id uint64, limit time.Duration) error {
	if limit <= 0 || limit > MaxDuration {
		return status.InvalidArgumentf("a recording of %v: it must be longer than 0 and at most %v", limit, MaxDuration)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return status.Unavailablef("the task is shutting down")
	case r.kept != nil && r.Current() == r.kept:
		ago := time.Since(r.kept.begin).Round(time.Second)
		return status.FailedPreconditionf("the task is being recorded by another caller, since %v ago", ago)
	}
	r.drop()
	rec := newRecording(id, r.Devices)
	r.kept = rec
	r.timer = time.AfterFunc(limit, func() { r.expire(rec) })
	r.current.Store(rec)
	return nil
}

// expire ends a recording at its limit.
func (r *Recorder) expire(rec *Recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept != rec {
		return
	}
	r.end()
	r.timer = time.AfterFunc(keepTime, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.kept == rec {
			r.drop()
		}
	})
}

// end ends the recording that is kept. The caller holds mu.
func (r *Recorder) end() {
	r.current.Store(nil)
	r.kept.end()
	r.timer.Stop()
}

// drop forgets the recording that is kept. The caller holds mu.
func (r *Recorder) drop() {
	if r.kept != nil {
		r.end()
		r.kept, r.timer = nil, nil
	}
}

// find returns a recording. The caller holds mu.
func (r *Recorder) find(id uint64) (*Recording, error) {
	if r.kept == nil || r.kept.id != id {
		return nil, status.NotFoundf("the task has no recording %x: it was fetched, or ended more than %v ago", id, keepTime)
	}
	return r.kept, nil
}

// Await waits until the task's master has finished a number of steps since the start, or the
// recording ends. At most one call waits at a time.
func (r *Recorder) Await(ctx context.Context, id uint64, steps int64) error {
	r.mu.Lock()
	rec, err := r.find(id)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-rec.await(steps):
	case <-rec.ended:
	case <-ctx.Done():
		return status.FromContext(ctx, "waiting for recorded steps")
	}
	return nil
}

// Stop ends a recording and returns it.
func (r *Recorder) Stop(id uint64) (*pb.Recording, error) {
	r.mu.Lock()
	rec, err := r.find(id)
	if err == nil {
		r.drop()
	}
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return rec.proto(), nil
}

// Close ends the recording, if there is one, and refuses new ones.
func (r *Recorder) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.drop()
}
