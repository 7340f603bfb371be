package train

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// SessionManager creates sessions whose model is ready: the chief initializes the model or restores
// it from a checkpoint, and the other workers wait for the chief.
type SessionManager struct {
	Target   string               // as for [weft.NewSession]
	Scope    *op.Scope            // of the complete graph
	Scaffold *Scaffold            // finalized
	Options  []weft.SessionOption // of the sessions

	CheckpointDir  string // folder whose latest checkpoint is restored; "" for none
	CheckpointFile string // prefix of the checkpoint to restore; overrides CheckpointDir

	// RecoveryWait is the longest pause between two checks whether the chief has initialized the
	// model; 1 s if 0.
	RecoveryWait time.Duration
	Logger       *slog.Logger // slog.Default() if nil
}

const (
	firstWait    = 20 * time.Millisecond // first pause between checks; later ones double
	recoveryWait = time.Second           // longest pause; a check opens a session
)

func (m *SessionManager) logger() *slog.Logger {
	if m.Logger == nil {
		return slog.Default() //nolint:forbidigo // the caller has passed none
	}
	return m.Logger
}

func (m *SessionManager) session() (*weft.Session, error) {
	g, err := m.Scope.Finalize()
	if err != nil {
		return nil, err
	}
	return weft.NewSession(m.Target, g, append([]weft.SessionOption{weft.WithLogger(m.logger())}, m.Options...)...)
}

// PrepareSession returns a session for the chief. It restores the model from a checkpoint, or
// initializes it if there is none, and then initializes the local variables and tables. The error
// has the code NotFound if the state file of CheckpointDir names a checkpoint that does not exist,
// and FailedPrecondition if variables are still not initialized. The caller closes the session.
func (m *SessionManager) PrepareSession(ctx context.Context) (*weft.Session, error) {
	sess, err := m.session()
	if err != nil {
		return nil, err
	}
	if err := m.prepare(ctx, sess); err != nil {
		_ = sess.Close() // err is the cause
		return nil, err
	}
	return sess, nil
}

func (m *SessionManager) prepare(ctx context.Context, sess *weft.Session) error {
	restored, err := m.restore(ctx, sess)
	if err == nil && !restored {
		err = m.initialize(ctx, sess)
	}
	if err != nil {
		return err
	}
	missing, err := m.initializeLocal(ctx, sess)
	if err == nil && missing == "" {
		missing, err = notReady(ctx, sess, m.Scaffold.ReadyOp)
	}
	if err == nil && missing != "" {
		err = status.FailedPreconditionf("Init operations did not make model ready: variables not initialized: %s", missing)
	}
	return err
}

// restore restores the model if there is a checkpoint.
func (m *SessionManager) restore(ctx context.Context, sess *weft.Session) (bool, error) {
	prefix, saver := m.CheckpointFile, m.Scaffold.Saver
	switch {
	case saver == nil:
		return false, nil
	case prefix == "" && m.CheckpointDir == "":
		return false, nil
	case prefix == "":
		var err error
		if prefix, err = checkpoint.Latest(m.CheckpointDir); err != nil {
			return false, err
		}
		if err := saver.Recover(ctx, m.CheckpointDir); err != nil || prefix == "" {
			return false, err
		}
	}
	if err := saver.Restore(ctx, sess, prefix); err != nil {
		return false, err
	}
	m.logger().Info("restored", "checkpoint", prefix)
	return true, nil
}

func (m *SessionManager) initialize(ctx context.Context, sess *weft.Session) error {
	if n := m.Scaffold.InitOp; n != nil {
		if _, err := sess.Run(ctx, m.Scaffold.InitFeeds, nil, []*graph.Node{n}); err != nil {
			return err
		}
	}
	if m.Scaffold.InitFn != nil {
		return m.Scaffold.InitFn(ctx, sess)
	}
	return nil
}

// initializeLocal initializes the local variables and tables if the global variables are
// initialized, and otherwise returns the names of those that are not.
func (m *SessionManager) initializeLocal(ctx context.Context, sess *weft.Session) (missing string, err error) {
	if m.Scaffold.LocalInitOp == nil {
		return "", nil
	}
	if missing, err = notReady(ctx, sess, m.Scaffold.ReadyForLocalInitOp); err != nil || missing != "" {
		return missing, err
	}
	_, err = sess.Run(ctx, nil, nil, []*graph.Node{m.Scaffold.LocalInitOp})
	return "", err
}

// notReady returns the names of the variables that are not initialized, "" for none.
func notReady(ctx context.Context, sess Session, ready op.Output) (string, error) {
	if ready.Node == nil {
		return "", nil
	}
	out, err := sess.Run(ctx, nil, []op.Output{ready}, nil)
	if err != nil {
		return "", err
	}
	return strings.Join(tensor.Values[string](&out[0]), ", "), nil
}

// WaitForSession returns a session for a worker that is not the chief: it waits until the chief has
// initialized or restored the model, and initializes the local variables and tables. While it waits
// it logs what is missing. The error has the code DeadlineExceeded if ctx ends first. The caller
// closes the session.
func (m *SessionManager) WaitForSession(ctx context.Context) (*weft.Session, error) {
	waiting := startWaitLog(m.logger(), "a session on "+m.Target)
	defer waiting.stop()
	pause, logged := firstWait, ""
	for {
		sess, missing, err := m.attempt(ctx)
		if sess != nil || err != nil {
			return sess, err
		}
		if missing != logged {
			m.logger().Info("waiting for the chief to initialize or restore the model", "missing", missing)
			logged = missing
		}
		waiting.setReason(missing)
		if err := sleep(ctx, pause); err != nil {
			return nil, status.DeadlineExceededf("Session was not ready: waiting for the chief to initialize %s: %w", missing, err)
		}
		longest := m.RecoveryWait
		if longest == 0 {
			longest = recoveryWait
		}
		pause = min(2*pause, longest)
	}
}

// attempt returns a session if the model is ready, and otherwise what is missing: names of
// variables, or the error of a task that was lost and may come back.
func (m *SessionManager) attempt(ctx context.Context) (*weft.Session, string, error) {
	sess, err := m.session()
	if err != nil {
		return nil, "", err
	}
	missing, err := m.initializeLocal(ctx, sess)
	if err == nil && missing == "" {
		missing, err = notReady(ctx, sess, m.Scaffold.ReadyOp)
	}
	if err == nil && missing == "" {
		return sess, "", nil
	}
	_ = sess.Close() // the next attempt opens a new session
	if isPreemption(err) && ctx.Err() == nil {
		return nil, err.Error(), nil
	}
	return nil, abbreviate(missing), err
}

// isPreemption reports whether an error means that a task was lost. It may be restarted.
func isPreemption(err error) bool {
	code := status.CodeOf(err)
	return err != nil && (code == status.Aborted || code == status.Unavailable)
}

// sleep waits for d. It returns the cause if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
