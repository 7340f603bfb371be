package train

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// MonitoredSession is a session for training that looks after itself. It initializes the model or
// restores it from its latest checkpoint; it runs queue runners and hooks; and when tasks are lost
// (errors of the codes Aborted and Unavailable) it makes a new session, restores the model and runs
// the step again. Make one with [MonitoredTrainingSession], or with [NewMonitoredSession] to choose
// each hook. It belongs to one goroutine.
type MonitoredSession struct {
	manager *SessionManager
	chief   bool
	hooks   []SessionRunHook
	grace   time.Duration
	maxWait time.Duration

	sess   *weft.Session // nil when there is none
	coord  *Coordinator  // of sess
	cancel context.CancelFunc
	stop   bool  // a hook has asked for it
	failed error // of a step, so that the hooks' End is not called
	closed bool
	ended  error           // what Close has returned
	ctx    context.Context // values for the hooks' End methods; never ends
}

// MonitoredOptions say what a [MonitoredSession] is made of.
type MonitoredOptions struct {
	Chief          bool // initialize or restore the model; all others wait for the chief
	Scaffold       *Scaffold
	CheckpointDir  string // the chief restores the latest checkpoint of this folder
	CheckpointFile string // the chief restores this checkpoint
	Hooks          []SessionRunHook
	SessionOptions []weft.Option
	// MaxWait is how long a worker waits for the chief; 30 minutes if 0.
	MaxWait time.Duration
	// RecoveryWait is the longest pause between two looks at whether the model is ready; a second
	// if 0.
	RecoveryWait time.Duration
	// StopGrace is how long goroutines have to end after a stop; 2 minutes if 0.
	StopGrace time.Duration
	Logger    *slog.Logger // slog.Default() if nil
}

const (
	maxWait   = 30 * time.Minute
	stopGrace = 2 * time.Minute
)

// NewMonitoredSession returns a session on a target for the graph of a scope, which hooks and the
// scaffold complete and to which nobody may add later. The first session with the target is made
// here, or, for a worker, waited for.
func NewMonitoredSession(ctx context.Context, target string, s *op.Scope, o MonitoredOptions) (*MonitoredSession, error) {
	if o.Scaffold == nil {
		o.Scaffold = &Scaffold{}
	}
	m := &MonitoredSession{ctx: context.WithoutCancel(ctx), chief: o.Chief, hooks: o.Hooks, grace: o.StopGrace, maxWait: o.MaxWait}
	if m.grace == 0 {
		m.grace = stopGrace
	}
	if m.maxWait == 0 {
		m.maxWait = maxWait
	}
	m.manager = &SessionManager{
		Target: target, Scope: s, Scaffold: o.Scaffold, Options: o.SessionOptions, CheckpointDir: o.CheckpointDir,
		CheckpointFile: o.CheckpointFile, RecoveryWait: o.RecoveryWait, Logger: o.Logger,
	}
	err := m.begin(ctx, s)
	if err != nil {
		return nil, errors.Join(err, closeHooks(m.hooks))
	}
	return m, nil
}

// begin completes the graph and makes the first session.
func (m *MonitoredSession) begin(ctx context.Context, s *op.Scope) error {
	if err := s.Err(); err != nil {
		return err
	}
	for _, h := range m.hooks {
		if err := h.Begin(s); err != nil {
			return err
		}
	}
	m.manager.Scaffold.Finalize(s)
	if err := s.Err(); err != nil {
		return err
	}
	return m.ready(ctx)
}

// ready makes a session if there is none. Tasks that are lost on the way may come back.
func (m *MonitoredSession) ready(ctx context.Context) error {
	for m.sess == nil {
		err := m.create(ctx)
		if err == nil {
			return nil
		}
		_ = m.drop(err) // err is the cause
		if !isPreemption(err) || ctx.Err() != nil {
			return err
		}
		m.manager.logger().Warn("lost a task while the session was being made; trying again", "error", err)
		if err := sleep(ctx, firstWait); err != nil {
			return err
		}
	}
	return nil
}

func (m *MonitoredSession) create(ctx context.Context) (err error) {
	if m.chief {
		m.sess, err = m.manager.PrepareSession(ctx)
	} else {
		wait, cancel := context.WithTimeout(ctx, m.maxWait)
		defer cancel()
		m.sess, err = m.manager.WaitForSession(wait)
	}
	if err != nil {
		return err
	}
	// it lives until Close, longer than this call
	coordCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.coord, m.cancel = NewCoordinator(coordCtx), cancel
	StartQueueRunners(m.manager.Scope, m.sess, m.coord)
	for _, h := range m.hooks {
		if err := h.AfterCreateSession(ctx, m.sess, m.coord); err != nil {
			return err
		}
	}
	return nil
}

// drop ends the session and the goroutines that use it, because of an error if there is one, and
// returns why these stopped.
func (m *MonitoredSession) drop(cause error) error {
	if m.sess == nil {
		return nil
	}
	var err error
	if m.coord != nil {
		m.coord.RequestStop(cause)
		grace, cancel := context.WithTimeout(context.Background(), m.grace)
		err = m.coord.Join(grace)
		cancel()
		m.cancel()
	}
	_ = m.sess.Close() // it is over either way
	m.sess, m.coord = nil, nil
	return err
}

// Run runs a step, with what the hooks add to it. After the loss of a task it runs the step again
// in a new session. An error ends training, one of the code OutOfRange as an ordinary end of the
// input.
func (m *MonitoredSession) Run(
	ctx context.Context, feeds map[graph.Output]tensor.Tensor, fetches []graph.Output, targets []*graph.Node, opts ...weft.RunOption,
) ([]tensor.Tensor, error) {
	if m.closed {
		return nil, errStopped
	}
	for {
		if err := m.ready(ctx); err != nil {
			m.failed = err
			return nil, err
		}
		run := &RunContext{Session: m.sess, Args: RunArgs{Feeds: feeds, Fetches: fetches, Targets: targets}}
		out, err := m.step(ctx, run, opts)
		switch {
		case err == nil:
			m.stop = m.stop || run.stop
			return out, nil
		case isPreemption(err) && ctx.Err() == nil:
			m.lost(err)
		default:
			if status.CodeOf(err) != status.OutOfRange { // the input has ended, which is no failure
				m.failed = err
			}
			m.stop = true
			return nil, err
		}
	}
}

var errStopped = status.FailedPreconditionf("the monitored session is closed")

// step runs a step once. If the goroutines of the coordinator have failed, their error is the one
// to know of.
func (m *MonitoredSession) step(ctx context.Context, run *RunContext, opts []weft.RunOption) ([]tensor.Tensor, error) {
	coord := m.coord
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unlink := context.AfterFunc(coord.Context(), func() {
		if coord.Err() != nil {
			cancel() // what a failed goroutine was to provide will never come
		}
	})
	defer unlink()
	out, err := m.runHooked(ctx, run, opts)
	if err != nil && coord.Err() != nil {
		return nil, coord.Err()
	}
	return out, err
}

func (m *MonitoredSession) runHooked(ctx context.Context, run *RunContext, opts []weft.RunOption) ([]tensor.Tensor, error) {
	st, err := newHookedStep(ctx, run, m.hooks)
	if err != nil {
		return nil, err
	}
	var metadata *weft.Metadata
	if st.args.Trace {
		metadata = &weft.Metadata{}
		opts = append([]weft.RunOption{weft.WithTrace(metadata)}, opts...)
	}
	all, err := m.sess.Run(ctx, st.args.Feeds, st.args.Fetches, st.args.Targets, opts...)
	if err != nil {
		return nil, err
	}
	for i, h := range m.hooks {
		if err := h.AfterRun(ctx, run, RunValues{Fetched: st.values(i, all), Metadata: metadata}); err != nil {
			return nil, err
		}
	}
	return all[:len(run.Args.Fetches)], nil
}

// RunStep runs steps without hooks: f is given the session as it is, to which it may feed what
// hooks must not see.
func (m *MonitoredSession) RunStep(ctx context.Context, f func(ctx context.Context, sess Session) error) error {
	if m.closed {
		return errStopped
	}
	if err := m.ready(ctx); err != nil {
		return err
	}
	return f(ctx, m.sess)
}

// RequestStop brings training to its end, as hooks can.
func (m *MonitoredSession) RequestStop() { m.stop = true }

// ShouldStop reports whether training has come to its end: a stop was asked for, or something has
// failed for good.
func (m *MonitoredSession) ShouldStop() bool {
	if m.closed || m.stop {
		return true
	}
	if m.coord == nil || !m.coord.ShouldStop() {
		return false
	}
	if err := m.coord.Err(); isPreemption(err) {
		m.lost(err)
		return false
	}
	return true
}

// lost ends a session that has lost a task.
func (m *MonitoredSession) lost(err error) {
	m.manager.logger().Warn("lost a task; going on with a new session", "error", err)
	_ = m.drop(err) // err is the cause
}

// Loop calls step until training has come to its end, and closes the session. The end of the input
// (errors of the code OutOfRange) is an ordinary end.
func (m *MonitoredSession) Loop(ctx context.Context, step func(ctx context.Context) error) error {
	for !m.ShouldStop() {
		switch err := step(ctx); {
		case status.CodeOf(err) == status.OutOfRange:
			m.stop = true
		case err != nil:
			m.failed = err
			return errors.Join(err, m.close(ctx))
		}
	}
	return m.close(ctx)
}

// Close calls the End methods of the hooks, unless a step has failed, stops the queue runners,
// closes the session, and then closes the hooks that are an [io.Closer]. It returns the errors of all
// of these, joined. The End methods run until they return, also if the context of
// [NewMonitoredSession] has ended; [MonitoredSession.Loop] passes its own context to them. Later calls
// return the same error.
func (m *MonitoredSession) Close() error { return m.close(m.ctx) }

func (m *MonitoredSession) close(ctx context.Context) error {
	if m.closed {
		return m.ended
	}
	m.closed = true
	var errs []error
	if m.failed == nil && m.sess != nil {
		for _, h := range m.hooks {
			if err := h.End(ctx, m.sess); err != nil {
				errs = append(errs, err)
				break
			}
		}
	}
	err := m.drop(nil)
	if m.failed == nil {
		errs = append(errs, err)
	}
	m.ended = errors.Join(append(errs, closeHooks(m.hooks))...)
	return m.ended
}
