package train

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

// SupervisorOptions configure a [Supervisor].
type SupervisorOptions struct {
	IsChief  bool      // initialize or restore the model, save it and write summaries
	Scaffold *Scaffold // missing fields are added to it
	// GlobalStep counts the steps; nil for the global step of the graph, if it has one.
	GlobalStep *Variable
	// LogDir is the folder where the chief writes checkpoints and summaries, and whose latest
	// checkpoint it restores; "" for none.
	LogDir             string
	CheckpointBasename string        // "model.ckpt" if empty
	SaveModelEvery     time.Duration // 10 minutes if 0; negative for never
	SaveSummariesEvery time.Duration // 2 minutes if 0; negative for never
	// RecoveryWait is the longest pause between two checks whether the chief has initialized the
	// model; 1 s if 0.
	RecoveryWait   time.Duration
	StopGrace      time.Duration // time that goroutines have to end after a stop; 2 minutes if 0
	SessionOptions []weft.SessionOption
	Logger         *slog.Logger // slog.Default() if nil
}

const defaultSummariesEvery = 2 * time.Minute

// Supervisor prepares a session, and saves checkpoints and writes summaries in goroutines that run
// next to the caller's training loop. New programs use [MonitoredTrainingSession], which also
// recovers from the loss of tasks.
//
//	sv, err := train.NewSupervisor(s, train.SupervisorOptions{IsChief: task == 0, LogDir: dir})
//	…
//	err = sv.ManagedSession(ctx, server.Target(), func(ctx context.Context, sess *weft.Session) error {
//		for !sv.ShouldStop() {
//			…
//		}
//		return nil
//	})
type Supervisor struct {
	options SupervisorOptions
	scope   *op.Scope
	manager *SessionManager
	coord   *Coordinator
	writer  *summary.Writer // nil for none
}

// NewSupervisor returns a supervisor for the graph of a scope. It completes the graph, which must
// not change later, and opens the event file of the chief. It returns the build errors of the
// scope.
func NewSupervisor(s *op.Scope, o SupervisorOptions) (*Supervisor, error) {
	if o.Scaffold == nil {
		o.Scaffold = &Scaffold{}
	}
	o.Scaffold.Finalize(s)
	if err := s.Err(); err != nil {
		return nil, err
	}
	o.setDefaults(s)
	sv := &Supervisor{options: o, scope: s, manager: &SessionManager{
		Scope: s, Scaffold: o.Scaffold, CheckpointDir: o.LogDir, RecoveryWait: o.RecoveryWait, Logger: o.Logger,
	}}
	if o.IsChief && o.LogDir != "" {
		w, err := summary.NewWriter(o.LogDir, summary.Options{})
		if err == nil {
			err = writeGraph(w, s)
		}
		if err != nil {
			return nil, err
		}
		sv.writer = w
	}
	return sv, nil
}

func (o *SupervisorOptions) setDefaults(s *op.Scope) {
	if o.GlobalStep == nil {
		for _, v := range Variables(s, globalStepKey) {
			o.GlobalStep = v
		}
	}
	if o.CheckpointBasename == "" {
		o.CheckpointBasename = defaultBasename
	}
	if o.SaveModelEvery == 0 {
		o.SaveModelEvery = defaultSaveEvery
	}
	if o.SaveSummariesEvery == 0 {
		o.SaveSummariesEvery = defaultSummariesEvery
	}
	if o.StopGrace == 0 {
		o.StopGrace = stopGrace
	}
}

// PrepareOrWaitForSession returns a session whose model is ready: the chief restores or initializes
// the model, the other workers wait for the chief. It starts the queue runners and, on the chief,
// the goroutines that save checkpoints and write summaries. The caller calls [Supervisor.Close] and
// then closes the session.
func (sv *Supervisor) PrepareOrWaitForSession(ctx context.Context, master string) (*weft.Session, error) {
	sv.manager.Target, sv.manager.Options = master, sv.options.SessionOptions
	ready := sv.manager.WaitForSession
	if sv.options.IsChief {
		ready = sv.manager.PrepareSession
	}
	sess, err := ready(ctx)
	if err != nil {
		return nil, err
	}
	sv.coord = NewCoordinator(ctx, status.OutOfRange)
	StartQueueRunners(sv.scope, sess, sv.coord)
	if sv.writer != nil {
		if err := sv.writer.AddSession(0, summary.SessionLog{Status: summary.SessionStart}); err != nil {
			sv.coord.RequestStop(err)
		}
		sv.startServices(sess)
	}
	return sess, nil
}

// startServices starts the goroutines that save checkpoints and write summaries.
func (sv *Supervisor) startServices(sess Session) {
	if sv.options.SaveSummariesEvery > 0 {
		if sum := sv.options.Scaffold.SummaryOp; sum.Node != nil {
			sv.Loop(sv.options.SaveSummariesEvery, func(ctx context.Context) error { return sv.summarize(ctx, sess, sum) })
		}
		if sv.options.GlobalStep != nil {
			rate := trigger{now: time.Now}
			sv.Loop(sv.options.SaveSummariesEvery, func(ctx context.Context) error { return sv.countSteps(ctx, sess, &rate) })
		}
	}
	if sv.options.SaveModelEvery > 0 && sv.options.Scaffold.Saver != nil {
		sv.Loop(sv.options.SaveModelEvery, func(ctx context.Context) error {
			_, err := sv.Save(ctx, sess)
			return err
		})
	}
}

// globalStep returns the current global step, or [NoStep] if the graph has none.
func (sv *Supervisor) globalStep(ctx context.Context, sess Session) (int64, error) {
	if sv.options.GlobalStep == nil {
		return NoStep, nil
	}
	return readStep(ctx, sess, sv.options.GlobalStep)
}

// Save saves a checkpoint and returns its prefix.
func (sv *Supervisor) Save(ctx context.Context, sess Session) (string, error) {
	at, err := sv.globalStep(ctx, sess)
	if err != nil {
		return "", err
	}
	prefix, err := sv.options.Scaffold.Saver.Save(ctx, sess, fileio.Join(sv.options.LogDir, sv.options.CheckpointBasename), at)
	if err == nil && sv.writer != nil {
		err = sv.writer.AddSession(max(at, 0), summary.SessionLog{Status: summary.SessionCheckpoint, Checkpoint: prefix})
	}
	return prefix, err
}

func (sv *Supervisor) summarize(ctx context.Context, sess Session, sum op.Output) error {
	out, err := sess.Run(ctx, nil, []op.Output{sum}, nil)
	if err != nil {
		return err
	}
	return sv.SummaryComputed(ctx, sess, &out[0])
}

// SummaryComputed writes a summary that the caller has fetched: a string tensor of serialized
// tensorflow.Summary messages. The error has the code FailedPrecondition if this is not the chief
// or there is no LogDir.
func (sv *Supervisor) SummaryComputed(ctx context.Context, sess Session, serialized *tensor.Tensor) error {
	if sv.writer == nil {
		return status.FailedPreconditionf("Writing a summary requires a summary writer.")
	}
	at, err := sv.globalStep(ctx, sess)
	if err != nil {
		return err
	}
	return writeSummary(sv.writer, max(at, 0), serialized)
}

func (sv *Supervisor) countSteps(ctx context.Context, sess Session, rate *trigger) error {
	at, err := sv.globalStep(ctx, sess)
	if err != nil {
		return err
	}
	steps, took := rate.fire(at)
	if took <= 0 {
		return nil
	}
	return sv.writer.Add(at, summary.Value{Tag: stepRateTag, Data: float32(float64(steps) / took.Seconds())})
}

// Loop starts a goroutine that calls f at once and then after each interval, until the supervisor
// stops. An error of f stops the supervisor.
func (sv *Supervisor) Loop(every time.Duration, f func(ctx context.Context) error) {
	sv.coord.Go(func(ctx context.Context) error {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			if err := f(ctx); err != nil {
				if ctx.Err() != nil {
					return nil // the supervisor has stopped
				}
				return err
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// ShouldStop reports whether a stop was requested, a goroutine has failed or the context of the
// session has ended.
func (sv *Supervisor) ShouldStop() bool { return sv.coord != nil && sv.coord.ShouldStop() }

// WaitForStop waits until a stop is requested. It returns false if ctx ends first.
func (sv *Supervisor) WaitForStop(ctx context.Context) bool { return sv.coord.WaitForStop(ctx) }

// RequestStop requests a stop. A non-nil err is the reason, which [Supervisor.Close] returns.
func (sv *Supervisor) RequestStop(err error) { sv.coord.RequestStop(err) }

// Close stops the goroutines, waits up to [SupervisorOptions.StopGrace] until they have ended, and
// closes the event file. It returns the error that stopped the goroutines, if there was one. It
// does not close the session. It may be called more than once.
func (sv *Supervisor) Close() error {
	var errs []error
	if sv.coord != nil {
		sv.coord.RequestStop(nil)
		grace, cancel := context.WithTimeout(context.Background(), sv.options.StopGrace)
		defer cancel()
		errs = append(errs, sv.coord.Join(grace))
	}
	if sv.writer != nil {
		errs = append(errs, sv.writer.AddSession(0, summary.SessionLog{Status: summary.SessionStop}), sv.writer.Close())
		sv.writer = nil
	}
	return errors.Join(errs...)
}

// ManagedSession prepares a session, calls f with it, and closes the supervisor and the session. It
// returns the first error. An error with the code OutOfRange means the end of the input and is not
// returned.
func (sv *Supervisor) ManagedSession(ctx context.Context, master string, f func(ctx context.Context, sess *weft.Session) error) error {
	sess, err := sv.PrepareOrWaitForSession(ctx, master)
	if err != nil {
		return errors.Join(err, sv.Close())
	}
	defer sess.Close()
	if err := f(ctx, sess); err != nil {
		sv.coord.RequestStop(err)
	}
	return sv.Close()
}
