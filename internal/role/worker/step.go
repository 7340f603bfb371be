package worker

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/runtime/collective"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/status"
)

const (
	// maxEarlyWait bounds the wait of a peer for a step that the master never starts.
	maxEarlyWait = 10 * time.Minute
	// abortDelay gives the error that made a peer give up time to reach the master before the
	// derived errors.
	abortDelay = time.Second
)

// singleStep is the number under which collective operations that run one by one exchange buffers,
// in TensorFlow too. All eager contexts share it, and it never ends.
const singleStep = 0

// errCleanedUp is the error of peers that still wait for tensors of a step when its master cleans
// it up.
var errCleanedUp = status.Abortedf("The step was cleaned up.").Derive()

// steps owns all steps of a worker. A step exists from the first request with its number until
// CleanupGraph, the end of its session, or that of the worker. A step that only receivers have
// named also ends with the last of them. A step without a session of its own also ends when it has
// had no run for 10 minutes.
type steps struct {
	running sync.WaitGroup     // runs of registered graphs
	calls   atomic.Int64       // running calls of functions with parts on other tasks
	lender  Lender             // may be nil
	cache   *responseCache     // may be nil
	single  collective.Buffers // of singleStep

	mu    sync.Mutex
	err   error           // reason why new steps are rejected; guarded by mu
	byID  map[int64]*step // guarded by mu
	quota *quota.Quota    // limits of early; may be nil
	early int             // number of steps without a session; guarded by mu
	// numbers of steps without a session by the task that has named each first; guarded by mu
	earlyOf map[string]int
	sweeper *time.Timer // the next sweep; nil if no step may become idle; guarded by mu
}

// step is one step on this task.
type step struct {
	id      int64
	table   rendezvous.Table
	buffers collective.Buffers

	held atomic.Bool // something may refer to the step after its end

	// Guarded by steps.mu:
	session   *session // nil until the master starts the step
	receivers int      // number of waiting peers
	peer      string   // the task that has named the step before its master; "" for none
	runs      []*run   // runs that have not ended
	partial   *partial // nil unless it is a partial run
	counted   *session // the session that counts it; nil for none
	idle      int      // number of sweeps since the last run
	// it outlives the failure of a run or receiver; written once, before it has any
	lasting bool
	// ends a step that was not started, or that a peer gave up; nil if not set
	timer *time.Timer
}

// markHeld records that something may refer to the step after its end, so that it is not recycled.
func (st *step) markHeld() { st.held.Store(true) }

// stepPool is a free list of steps that nothing refers to.
var stepPool = sync.Pool{New: func() any { return new(step) }}

// recycle puts a step that was cleaned up into the free list if nothing can refer to it, and
// reports whether it did. The step is no longer in steps, and has neither receivers nor runs.
func (st *step) recycle() bool {
	if st.held.Load() || st.lasting || st.partial != nil || !st.table.Reset() {
		return false
	}
	st.session, st.runs, st.idle = nil, st.runs[:0], 0
	stepPool.Put(st)
	return true
}

// abort ends the exchange of tensors with an error.
func (st *step) abort(why error) {
	st.table.Abort(why)
	st.buffers.Abort(why)
}

func newSteps(lender Lender, q *quota.Quota) *steps {
	return &steps{lender: lender, quota: q, byID: map[int64]*step{}, single: collective.Buffers{Shared: true}}
}

// has reports whether a step exists.
func (s *steps) has(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id] != nil
}

// addReceiver returns the step that a peer receives from. The caller must call removeReceiver.
func (s *steps) addReceiver(id int64, recvDevice string) (*step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.byID[id]
	if st == nil {
		if s.err != nil {
			return nil, s.err
		}
		peer, _, _ := strings.Cut(recvDevice, "/device:")
		if err := s.quota.Check(quota.EarlySteps, s.early+1); err != nil {
			return nil, err
		}
		if err := s.quota.Check(quota.PeerEarlySteps, s.earlyOf[peer]+1); err != nil {
			return nil, err
		}
		st = s.addLocked(id)
		s.addEarlyLocked(st, peer)
		st.timer = time.AfterFunc(maxEarlyWait, func() {
			s.remove(st, status.Abortedf("Step %d was not started within %v of the first request for its tensors.", id, maxEarlyWait))
		})
	}
	st.receivers++
	st.markHeld()
	return st, nil
}

func (s *steps) addLocked(id int64) *step {
	st := stepPool.Get().(*step)
	st.id = id
	s.byID[id] = st
	return st
}

// addEarlyLocked counts a step without a session.
func (s *steps) addEarlyLocked(st *step, peer string) {
	s.early++
	if s.earlyOf == nil {
		s.earlyOf = map[string]int{}
	}
	s.earlyOf[peer]++
	st.peer = peer
}

// removeEarlyLocked ends the count of a step, which has a session or is removed.
func (s *steps) removeEarlyLocked(st *step) {
	s.early--
	if s.earlyOf[st.peer]--; s.earlyOf[st.peer] <= 0 {
		delete(s.earlyOf, st.peer)
	}
	st.peer = ""
}

// removeReceiver records that a peer no longer waits.
func (s *steps) removeReceiver(st *step) {
	s.mu.Lock()
	st.receivers--
	unused := st.receivers == 0 && st.session == nil && s.byID[st.id] == st
	s.mu.Unlock()
	if unused {
		s.remove(st, status.Abortedf("Step %d was not started.", st.id))
	}
}

// begin returns the step of a run and adds the run to it. The caller must call finish.
func (s *steps) begin(id int64, r *run) (*step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	st := s.byID[id]
	if st == nil || st.session == nil {
		if err := s.countLocked(id, r.session); err != nil {
			return nil, err
		}
		if r.session.handle == "" {
			s.startSweepsLocked()
		}
	}
	switch {
	case st == nil:
		st = s.addLocked(id)
		st.counted = r.session
	case st.session == nil:
		s.removeEarlyLocked(st)
		st.stopTimerLocked()
		st.counted = r.session
	case !st.session.owns(r.session):
		return nil, status.Internalf("Step %d belongs to session %s, not to %s.", id, st.session.handle, r.session.handle)
	}
	if !st.lasting {
		st.session = r.session
	}
	st.idle = 0
	st.runs = append(st.runs, r)
	s.running.Add(1)
	return st, nil
}

// finish removes a run from its step. It reports whether the step still exists: otherwise, the
// goroutine that has ended the step may be about to cancel the run.
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

// scheduleAbort ends the exchange of a step after abortDelay: a peer has stopped waiting for a
// tensor, so the step cannot succeed.
func (s *steps) scheduleAbort(st *step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.session == nil || st.lasting || s.byID[st.id] != st || st.timer != nil {
		return
	}
	st.timer = time.AfterFunc(abortDelay, func() {
		st.abort(status.Abortedf("Step %d cancelled.  Cancelling rendezvous.", st.id).Derive())
	})
}

// admits reports whether a task may end a step. Any may end one that no master has started, or that
// does not exist.
func (s *steps) admits(id int64, caller cluster.Task) bool {
	if caller == (cluster.Task{}) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.byID[id]
	return st == nil || st.session == nil || st.session.admits(caller)
}

// cleanup ends a step at the master's request.
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
		if st.session != nil && session.owns(st.session) {
			ended = append(ended, st)
		}
	}
	s.mu.Unlock()
	for _, st := range ended {
		s.remove(st, why)
	}
}

// close ends all steps, rejects new ones, and waits for the running ones. It reports whether all
// have ended.
func (s *steps) close(why *status.Error) bool {
	s.mu.Lock()
	s.err = why.Derive()
	if s.sweeper != nil {
		s.sweeper.Stop()
	}
	all := make([]*step, 0, len(s.byID))
	for _, st := range s.byID {
		all = append(all, st)
	}
	s.mu.Unlock()
	s.single.Abort(s.err)
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

// remove ends a step: it cancels runs, releases tensors, and answers waiting peers with an error
// that gives the reason and is marked as derived.
func (s *steps) remove(st *step, why *status.Error) {
	s.mu.Lock()
	if s.byID[st.id] != st {
		s.mu.Unlock()
		return
	}
	s.removeLocked(st, why)
}

// removeLocked is remove for a step that exists. It unlocks s.mu.
func (s *steps) removeLocked(st *step, why *status.Error) {
	delete(s.byID, st.id)
	if st.session == nil {
		s.removeEarlyLocked(st)
	}
	if st.counted != nil {
		st.counted.steps--
		st.counted = nil
	}
	st.stopTimerLocked()
	started := st.session != nil
	runs := slices.Clone(st.runs)
	quiet := len(runs) == 0 && st.receivers == 0 && st.session != nil && why == errCleanedUp
	s.mu.Unlock()
	if s.lender != nil {
		s.lender.EndStep(st.id)
	}
	if s.cache != nil && started {
		s.cache.dropStep(st.id) // the session may have ended without CleanupGraph
	}
	if quiet && st.recycle() {
		return
	}
	if !status.IsDerived(why) {
		why = why.Derive()
	}
	for _, r := range runs {
		r.ctx.Cancel(why)
	}
	st.abort(why)
}

// NumSteps returns the number of steps that exist: running, not yet started, or not yet cleaned up.
func (w *Worker) NumSteps() int {
	w.steps.mu.Lock()
	defer w.steps.mu.Unlock()
	return len(w.steps.byID)
}
