package worker

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// What a master leaves on a task stays until the master removes it: sessions, graphs, steps. Each
// is small, and so is the request that makes it. So each asks for its memory
// ([membudget.AwaitRecord]) and is bounded in number.
const (
	// maxName bounds a handle or name that a session keeps, in bytes. Those of TensorFlow are below
	// 1 KiB.
	maxName = 4 << 10
	// maxSessions bounds the sessions of a worker, of all masters. --max-sessions is the bound of
	// each master.
	maxSessions = 1 << 16
	// maxSharedGraphs bounds the graphs in the session that all masters share which create none.
	maxSharedGraphs = 100_000
	// maxUncharged is the number of steps of a session that exist without being asked for. Steps
	// that run need memory also when sessions and graphs get none.
	maxUncharged = 1024

	// About the memory of records without what they refer to, in bytes.
	sessionMemory = 2 << 10
	deviceMemory  = 128
	graphMemory   = 4 << 10
	stepMemory    = 1 << 10

	// idleSweeps is the number of sweeps without a run after which a step ends that has no session
	// of its own. Its master may have vanished, and nothing else ends it.
	idleSweeps = 10
	// heldSweeps is the same for a step with tensors that another task may still request, when its
	// own part of the step needs longer than that.
	heldSweeps = 60
	// idlePeriod is the time between sweeps.
	idlePeriod = time.Minute
)

// checkName checks the length of a name that is kept.
func checkName(what, name string) error {
	if len(name) > maxName {
		return status.InvalidArgumentf("The %s has %d bytes, more than %d: %.64s...", what, len(name), maxName, name)
	}
	return nil
}

// chargeSession asks for the memory of a session.
func chargeSession(ctx context.Context, req *pb.CreateWorkerSessionRequest) error {
	if err := checkName("session_handle", req.GetSessionHandle()); err != nil {
		return err
	}
	if err := checkName("master_task", req.GetMasterTask()); err != nil {
		return err
	}
	size := sessionMemory + len(req.GetSessionHandle()) + len(req.GetMasterTask())
	for _, d := range req.GetClusterDeviceAttributes() {
		if err := checkName("name of a device", d.GetName()); err != nil {
			return err
		}
		size += deviceMemory + len(d.GetName())
	}
	if !membudget.AwaitRecord(ctx, int64(size)) {
		return status.ResourceExhaustedf("There is not enough memory for the session %.64s (--memory-limit).", req.GetSessionHandle())
	}
	return nil
}

// checkCount bounds the number of sessions.
func checkCount(n int) error {
	if n >= maxSessions {
		return status.ResourceExhaustedf("The task has %d sessions of masters, its limit.", n)
	}
	return nil
}

// chargeGraph asks for the memory of a registered graph. What the graph needs while it is compiled
// is held until release is called.
func chargeGraph(ctx context.Context, def *pb.GraphDef) (release func(), err error) {
	nodes := len(def.GetNode()) + len(def.GetLibrary().GetFunction())
	for _, f := range def.GetLibrary().GetFunction() {
		nodes += len(f.GetNodeDef())
	}
	if release = membudget.AwaitHold(ctx, graphMemory+partition.FootprintOf(nodes)); release == nil {
		return nil, status.ResourceExhaustedf("There is not enough memory for a graph of %d nodes (--memory-limit).", nodes)
	}
	return release, nil
}

// countLocked adds a step to those of a session, and asks for its memory if there are many.
func (s *steps) countLocked(id int64, of *session) error {
	if of.steps >= maxUncharged && !membudget.TakeRecord(stepMemory) {
		return status.ResourceExhaustedf("There is not enough memory for step %d: its session has %d steps that were not cleaned up "+
			"(--memory-limit).", id, of.steps)
	}
	of.steps++
	return nil
}

// startSweepsLocked starts to end idle steps, unless that has been done.
func (s *steps) startSweepsLocked() {
	if s.sweeper == nil {
		s.sweeper = time.AfterFunc(idlePeriod, s.sweep)
	}
}

// sweep ends the steps that have been idle for idleSweeps. It repeats itself while there are steps
// that may become idle.
func (s *steps) sweep() {
	s.mu.Lock()
	var idle []*step
	more := false
	for _, st := range s.byID {
		if st.session == nil || st.session.handle != "" || st.lasting {
			continue
		}
		more = true
		if len(st.runs) > 0 || st.receivers > 0 {
			st.idle = 0
		} else if st.idle++; st.idle > heldSweeps || st.idle > idleSweeps && st.table.Parked() == 0 {
			idle = append(idle, st)
		}
	}
	if s.sweeper != nil {
		s.sweeper.Stop()
	}
	s.sweeper = nil
	if more && s.err == nil {
		s.startSweepsLocked()
	}
	s.mu.Unlock()
	for _, st := range idle {
		s.removeIdle(st)
	}
}

// removeIdle ends a step unless a run or a peer has joined it meanwhile.
func (s *steps) removeIdle(st *step) {
	s.mu.Lock()
	if s.byID[st.id] != st || st.idle <= idleSweeps || len(st.runs) > 0 || st.receivers > 0 {
		s.mu.Unlock()
		return
	}
	s.removeLocked(st, status.Abortedf("Step %d had no run for %v.", st.id, time.Duration(st.idle)*idlePeriod))
}
