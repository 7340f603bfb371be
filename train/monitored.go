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

// MonitoredSession is a session for training. It initializes the model or restores its latest
// checkpoint, and runs queue runners and hooks. When a task is lost (errors with the codes Aborted
// and Unavailable) it opens a new session, restores the model and repeats the step.
//
// [MonitoredTrainingSession] creates one with the usual hooks, [NewMonitoredSession] one with
// chosen hooks. Its methods must not be called concurrently.
type MonitoredSession struct {
	manager *SessionManager
	chief   bool
	hooks   []SessionRunHook
	grace   time.Duration
	maxWait time.Duration
	once    bool // the loss of a task ends training

	sess   *weft.Session      // nil while there is none
	coord  *Coordinator       // of the goroutines that use sess
	cancel context.CancelFunc // of the context of coord
	stop   bool               // a stop was requested
	failed error              // error of a step: the hooks' End methods are not called
	closed bool
	ended  error           // result of Close
	ctx    context.Context // values for the hooks' End methods; never ends
}

// MonitoredOptions configure a [MonitoredSession].
type MonitoredOptions struct {
	// initialize or restore the model; the other workers wait for the chief
	Chief    bool
	Scaffold *Scaffold // missing fields are added to it; may be nil
	// folder whose latest checkpoint the chief restores; "" for none
	CheckpointDir string
	// prefix of the checkpoint that the chief restores; overrides CheckpointDir
	CheckpointFile string
	Hooks          []SessionRunHook // called in this order
	SessionOptions []weft.SessionOption
	// MaxWait is the time that a worker waits for the chief; 30 minutes if 0.
	MaxWait time.Duration
	// RecoveryWait is the longest pause between two checks whether the chief has initialized the
	// model; 1 s if 0.
	RecoveryWait time.Duration
	// StopGrace is the time that goroutines have to end after a stop; 2 minutes if 0.
	StopGrace time.Duration
	Logger    *slog.Logger // slog.Default() if nil
}

const (
	maxWait   = 30 * time.Minute // TensorFlow's default
	stopGrace = 2 * time.Minute  // TensorFlow's default
)

// NewMonitoredSession returns a session on a target ("local", or "grpc://host:port") for the graph
// of a scope. The hooks and the scaffold complete the graph, which must not change later. The chief
// initializes or restores the model before NewMonitoredSession returns; other workers wait until
// the chief has done so, at most for [MonitoredOptions.MaxWait] (DeadlineExceeded). It returns the
// build errors of the scope and the errors of the hooks.
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

// begin completes the graph and creates the first session.
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

// ready creates a session if there is none. It tries again if a task is lost meanwhile.
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
		m.manager.logger().Warn("lost a task while creating a session; trying again", "error", err)
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
	// the coordinator outlives this call: it runs until Close
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

// drop closes the session after stopping the goroutines that use it. cause is the reason, or nil.
// It returns the error that stopped the goroutines.
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
	_ = m.sess.Close() // the session is dropped even if its tasks are gone
	m.sess, m.coord = nil, nil
	return err
}

// Run runs a step with the feeds, fetches and targets of the caller and of the hooks, and returns
// the values of the caller's fetches in their order. After the loss of a task it repeats the step
// in a new session. Any other error ends training: [MonitoredSession.ShouldStop] returns true
// afterwards. An error with the code OutOfRange means the end of the input; after any other error
// the hooks' End methods are not called.
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
		case isPreemption(err) && ctx.Err() == nil && !m.once:
			m.lost(err)
		default:
			if status.CodeOf(err) != status.OutOfRange { // the end of the input is not a failure
				m.failed = err
			}
			m.stop = true
			return nil, err
		}
	}
}

var errStopped = status.FailedPreconditionf("the monitored session is closed")

// step runs a step once. If a goroutine of the coordinator has failed, step returns the error of
// the goroutine, since that of the step follows from it.
func (m *MonitoredSession) step(ctx context.Context, run *RunContext, opts []weft.RunOption) ([]tensor.Tensor, error) {
	coord := m.coord
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unlink := context.AfterFunc(coord.Context(), func() {
		if coord.Err() != nil {
			cancel() // the step may wait for the failed goroutine
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
	all, metadata, err := m.runStep(ctx, &st.args, opts)
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

// runStep runs a step in the session. The metadata is nil unless a trace is requested.
func (m *MonitoredSession) runStep(
	ctx context.Context, args *RunArgs, opts []weft.RunOption,
) ([]tensor.Tensor, *weft.Metadata, error) {
	if !args.Trace {
		out, err := m.sess.Run(ctx, args.Feeds, args.Fetches, args.Targets, opts...)
		return out, nil, err
	}
	step := weft.Step{Fetches: args.Fetches, Targets: args.Targets}
	var values []tensor.Tensor
	for o, v := range args.Feeds {
		step.Feeds, values = append(step.Feeds, o), append(values, v)
	}
	traceOpts := make([]weft.TraceOption, len(opts))
	for i, o := range opts {
		traceOpts[i] = o
	}
	traced, err := m.sess.RunTraced(ctx, step, values, traceOpts...)
	if err != nil {
		return nil, nil, err
	}
	return traced.Values, traced.Metadata, nil
}

// RunStep calls f with the underlying session, to run steps that the hooks do not see.
func (m *MonitoredSession) RunStep(ctx context.Context, f func(ctx context.Context, sess Session) error) error {
	if m.closed {
		return errStopped
	}
	if err := m.ready(ctx); err != nil {
		return err
	}
	return f(ctx, m.sess)
}

// RequestStop ends training: [MonitoredSession.ShouldStop] returns true from now on.
func (m *MonitoredSession) RequestStop() { m.stop = true }

// ShouldStop reports whether training is over: a stop was requested, the session is closed, or a
// step or a goroutine has failed with an error other than the loss of a task.
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

// lost drops a session that has lost a task.
func (m *MonitoredSession) lost(err error) {
	m.manager.logger().Warn("lost a task; continuing in a new session", "error", err)
	_ = m.drop(err) // err is the cause
}

// Loop calls step until training is over, and closes the session. It returns the errors of step and
// of closing. An error of step with the code OutOfRange means the end of the input: it ends the
// loop and is not returned.
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
// closes the session, and then closes the hooks that are an [io.Closer]. It returns the errors of
// all of these, joined. The End methods run until they return, also if the context of
// [NewMonitoredSession] has ended; [MonitoredSession.Loop] passes its own context to them. Later
// calls return the same error.
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
