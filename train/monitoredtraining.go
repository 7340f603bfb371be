package train

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/summary"
)

// TrainingOptions configure a [MonitoredTrainingSession]. The zero value is for a worker that is
// not the chief.
type TrainingOptions struct {
	Master   string    // target of the session, such as "grpc://host:port"; "local" if empty
	IsChief  bool      // initialize or restore the model, save it and write summaries
	Scaffold *Scaffold // missing fields are added to it; may be nil
	// CheckpointDir is the folder where the chief saves checkpoints, and whose latest checkpoint it
	// restores at the start; "" for no checkpoints.
	CheckpointDir  string
	Hooks          []SessionRunHook // of every worker
	ChiefOnlyHooks []SessionRunHook // of the chief

	SaveCheckpointSteps int64 // global steps between checkpoints; 0 for none
	// SaveCheckpointEvery is the time between checkpoints: 10 minutes if both it and
	// SaveCheckpointSteps are 0. If it is negative no checkpoints are saved.
	SaveCheckpointEvery time.Duration
	SummaryDir          string // folder of the event file; CheckpointDir if empty
	SaveSummariesSteps  int64  // global steps between summaries; 100 if 0, negative for never
	// LogStepCountSteps is the number of global steps after which the rate of steps is logged and
	// written as a summary; 100 if 0, negative for never.
	LogStepCountSteps int64

	SessionOptions []weft.SessionOption
	MaxWait        time.Duration // time that a worker waits for the chief; 30 minutes if 0
	// RecoveryWait is the longest pause between two checks whether the chief has initialized the
	// model; 1 s if 0.
	RecoveryWait time.Duration
	StopGrace    time.Duration // time that goroutines have to end after a stop; 2 minutes if 0
	// Logger logs waits, lost tasks and the rate of steps. If it is nil, slog.Default() logs all
	// but the rate of steps.
	Logger *slog.Logger
}

// MonitoredTrainingSession returns a session for one worker of a cluster or for a single process,
// with the usual hooks. The chief initializes the model or restores its latest checkpoint, saves
// checkpoints, writes summaries and measures the rate of steps. The other workers wait for the
// chief. Errors are those of [NewMonitoredSession].
//
//	sess, err := train.MonitoredTrainingSession(ctx, s, train.TrainingOptions{
//		Master: server.Target(), IsChief: task == 0, CheckpointDir: dir,
//		Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 1000}},
//	})
//	if err != nil {
//		return err
//	}
//	return sess.Loop(ctx, func(ctx context.Context) error {
//		_, err := sess.Run(ctx, feeds, nil, []*graph.Node{update})
//		return err
//	})
func MonitoredTrainingSession(ctx context.Context, s *op.Scope, o TrainingOptions) (*MonitoredSession, error) {
	if o.Master == "" {
		o.Master = "local"
	}
	if o.Scaffold == nil {
		o.Scaffold = &Scaffold{}
	}
	m := MonitoredOptions{
		Chief: o.IsChief, Scaffold: o.Scaffold, Hooks: o.Hooks, SessionOptions: o.SessionOptions, MaxWait: o.MaxWait,
		RecoveryWait: o.RecoveryWait, StopGrace: o.StopGrace, Logger: o.Logger,
	}
	if o.IsChief {
		m.CheckpointDir = o.CheckpointDir
		hooks, err := o.chiefHooks()
		if err != nil {
			return nil, err
		}
		m.Hooks = slices.Concat(m.Hooks, o.ChiefOnlyHooks, hooks)
	}
	return NewMonitoredSession(ctx, o.Master, s, m)
}

// chiefHooks returns the hooks that the options ask for.
func (o *TrainingOptions) chiefHooks() ([]SessionRunHook, error) {
	dir := o.SummaryDir
	if dir == "" {
		dir = o.CheckpointDir
	}
	var hooks []SessionRunHook
	var w *summary.Writer
	if dir != "" && (o.LogStepCountSteps >= 0 || o.SaveSummariesSteps >= 0) {
		var err error
		if w, err = summary.NewWriter(dir, summary.Options{}); err != nil {
			return nil, err
		}
	}
	if w != nil && o.LogStepCountSteps >= 0 {
		hooks = append(hooks, &StepCounterHook{EverySteps: o.LogStepCountSteps, Writer: w, Logger: o.Logger})
	}
	if w != nil && o.SaveSummariesSteps >= 0 {
		hooks = append(hooks, &SummarySaverHook{SaveSteps: o.SaveSummariesSteps, Scaffold: o.Scaffold, Writer: w})
	}
	if o.CheckpointDir != "" && o.SaveCheckpointEvery >= 0 {
		hooks = append(hooks, &CheckpointSaverHook{
			Dir: o.CheckpointDir, SaveSteps: o.SaveCheckpointSteps, SaveEvery: o.SaveCheckpointEvery, Scaffold: o.Scaffold, Writer: w,
		})
	}
	if w != nil {
		hooks = append(hooks, &writerHook{w: w})
	}
	return hooks, nil
}

// writerHook closes the event file that several hooks write to.
type writerHook struct {
	BaseHook
	w *summary.Writer
}

// Close implements io.Closer.
func (h *writerHook) Close() error { return h.w.Close() }
