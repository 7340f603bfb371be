package worker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/runtime/collective"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/status"
)

const (
	// maxEarlySteps bounds the steps that peers may ask for before the master does.
	maxEarlySteps = 1 << 16
	// maxEarlyWait is how long a peer's request waits for a step that the master never starts.
	maxEarlyWait = 10 * time.Minute
	// abortDelay gives the error that made a peer give up time to reach the master before the
	// errors that follow.
	abortDelay = time.Second
)

// errCleanedUp is those get who still wait for something of a step that its master has cleaned up.
var errCleanedUp = status.Abortedf("The step was cleaned up.").Derive()

// steps owns all steps of a worker. A step is there from the first request that names it until
// CleanupGraph, the end of its session or that of the worker; one that only receivers have named
// also ends with the last of them.
type steps struct {
	running sync.WaitGroup // runs of registered graphs
	calls   atomic.Int64   // of functions with parts on other tasks, under way
	lender  Lender         // of tensors of steps; may be nil

	mu    sync.Mutex
	err   error           // guarded by mu; why there will be no more steps
	byID  map[int64]*step // guarded by mu
	early int             // guarded by mu; steps without a session
}

// step is one step on this task.
type step struct {
	id      int64
	table   rendezvous.Table
	buffers collective.Buffers

	kept atomic.Bool // somebody may hold on to the step after its end

	// Guarded by steps.mu:
	session   *session    // nil until the master starts the step
	receivers int         // peers that wait
	runs      []*run      // of registered graphs, that have not ended
	partial   *partial    // nil unless the step is run in pieces
	timer     *time.Timer // ends a step that is early or has been given up; nil if none is due
}

// keep says that somebody may hold on to the step, which then is not used again for another one.
func (st *step) keep() { st.kept.Store(true) }

// over are steps that have ended and that nobody holds on to.
var over = sync.Pool{New: func() any { return new(step) }}

// forget lets a step be used again that ended in peace, if nobody can hold on to it, and reports
// whether it did. It has been taken out of its worker's, and has neither receivers nor runs.
func (st *step) forget() bool {
	if st.kept.Load() || st.partial != nil || !st.table.Reset() {
		return false
	}
	st.session, st.runs = nil, st.runs[:0]
	over.Put(st)
	return true
}

// abort ends the exchange of tensors with an error.
func (st *step) abort(why error) {
	st.table.Abort(why)
	st.buffers.Abort(why)
}

func newSteps(lender Lender) *steps { return &steps{lender: lender, byID: map[int64]*step{}} }

// has reports whether a step is there.
func (s *steps) has(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id] != nil
}

// arrive returns the step that a peer wants to receive from. The caller must call depart.
func (s *steps) arrive(id int64) (*step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.byID[id]
	if st == nil {
		if s.err != nil {
			return nil, s.err
		}
		if s.early >= maxEarlySteps {
			return nil, status.ResourceExhaustedf("%d steps are waited for that have not started", maxEarlySteps)
		}
		st = s.addLocked(id)
		s.early++
		st.timer = time.AfterFunc(maxEarlyWait, func() {
			s.remove(st, status.Abortedf("Step %d was not started within %v of the first request for its tensors.", id, maxEarlyWait))
		})
	}
	st.receivers++
	st.keep()
	return st, nil
}

func (s *steps) addLocked(id int64) *step {
	st := over.Get().(*step)
	st.id = id
	s.byID[id] = st
	return st
}

// depart says that a peer no longer waits.
func (s *steps) depart(st *step) {
	s.mu.Lock()
	st.receivers--
	over := st.receivers == 0 && st.session == nil && s.byID[st.id] == st
	s.mu.Unlock()
	if over {
		s.remove(st, status.Abortedf("Step %d was not started.", st.id))
	}
}

// begin returns the step that a run is part of and adds the run to it. The caller must call finish.
func (s *steps) begin(id int64, r *run) (*step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	st := s.byID[id]
	switch {
	case st == nil:
		st = s.addLocked(id)
	case st.session == nil:
		s.early--
		st.stopTimerLocked()
	case st.session != r.session:
		return nil, status.Internalf("Step %d belongs to session %s, not to %s.", id, st.session.handle, r.session.handle)
	}
	st.session = r.session
	st.runs = append(st.runs, r)
	s.running.Add(1)
	return st, nil
}

// finish takes a run that has ended out of its step. It reports whether the step is still there:
// otherwise, whoever has ended it may be about to end the run.
func (s *steps) finish(st *step, r *run) bool {
	s.mu.Lock()
	alive := s.byID[st.id] == st
	if i := slices.Index(st.runs, r); i >= 0 {
		st.runs = slices.Delete(st.runs, i, i+1)
	}
	s.mu.Unlock()
	s.running.Done()
	return alive
}

func (st *step) stopTimerLocked() {
	if st.timer != nil {
		st.timer.Stop()
		st.timer = nil
	}
}

// giveUp ends the exchange of a step soon: a peer that waited for a tensor no longer does, so that
// the step cannot succeed.
func (s *steps) giveUp(st *step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.session == nil || s.byID[st.id] != st || st.timer != nil {
		return
	}
	st.timer = time.AfterFunc(abortDelay, func() {
		st.abort(status.Abortedf("Step %d cancelled.  Cancelling rendezvous.", st.id).Derive())
	})
}

// cleanup ends a step, if there is one, at the master's request.
func (s *steps) cleanup(id int64) {
	s.mu.Lock()
	st := s.byID[id]
	if st == nil {
		s.mu.Unlock()
		return
	}
	s.removeLocked(st, errCleanedUp)
}

// endSession ends the steps of a session.
func (s *steps) endSession(session *session, why *status.Error) {
	s.mu.Lock()
	var ended []*step
	for _, st := range s.byID {
		if st.session == session {
			ended = append(ended, st)
		}
	}
	s.mu.Unlock()
	for _, st := range ended {
		s.remove(st, why)
	}
}

// close ends all steps, lets none begin, and waits for those that run. It reports whether all have
// ended.
func (s *steps) close(why *status.Error) bool {
	s.mu.Lock()
	s.err = why.Derive()
	all := make([]*step, 0, len(s.byID))
	for _, st := range s.byID {
		all = append(all, st)
	}
	s.mu.Unlock()
	for _, st := range all {
		s.remove(st, why)
	}
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(closeTimeout):
		return false
	}
}

// remove ends a step: runs are cancelled, tensors are released, and peers that wait are answered
// with an error that says why and is marked as following from others.
func (s *steps) remove(st *step, why *status.Error) {
	s.mu.Lock()
	if s.byID[st.id] != st {
		s.mu.Unlock()
		return
	}
	s.removeLocked(st, why)
}

// removeLocked is remove of a step that is there. It unlocks s.mu.
func (s *steps) removeLocked(st *step, why *status.Error) {
	delete(s.byID, st.id)
	if st.session == nil {
		s.early--
	}
	st.stopTimerLocked()
	runs := slices.Clone(st.runs)
	quiet := len(runs) == 0 && st.receivers == 0 && st.session != nil && why == errCleanedUp
	s.mu.Unlock()
	if s.lender != nil {
		s.lender.EndStep(st.id)
	}
	if quiet && st.forget() {
		return
	}
	if !status.IsDerived(why) {
		why = why.Derive()
	}
	for _, r := range runs {
		r.life.Cancel(why)
	}
	st.abort(why)
}

// NumSteps returns how many steps the worker knows: those that run, wait to be started, or have not
// been cleaned up.
func (w *Worker) NumSteps() int {
	w.steps.mu.Lock()
	defer w.steps.mu.Unlock()
	return len(w.steps.byID)
}
