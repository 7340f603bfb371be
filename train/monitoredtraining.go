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

// TrainingOptions say how [MonitoredTrainingSession] trains. The zero value is a worker that is not
// the chief.
type TrainingOptions struct {
	Master   string // target of the session, such as "grpc://host:port"; "local" if empty
	IsChief  bool   // initialize or restore the model, save it and write summaries
	Scaffold *Scaffold
	// CheckpointDir is where the chief saves checkpoints and finds the one to go on from; "" for no
	// checkpoints.
	CheckpointDir  string
	Hooks          []SessionRunHook // of every worker
	ChiefOnlyHooks []SessionRunHook

	SaveCheckpointSteps int64 // 0 for by time
	// 10 minutes if 0 and SaveCheckpointSteps is 0; negative for never
	SaveCheckpointEvery time.Duration
	SummaryDir          string // CheckpointDir if empty
	SaveSummariesSteps  int64  // 100 if 0; negative for never
	// steps between two notes of the rate of steps; 100 if 0, negative for never
	LogStepCountSteps int64

	SessionOptions []weft.Option
	MaxWait        time.Duration // how long a worker waits for the chief; 30 minutes if 0
	// longest pause between two looks at whether the model is ready; a second if 0
	RecoveryWait time.Duration
	StopGrace    time.Duration // how long goroutines have to end after a stop; 2 minutes if 0
	// also gets the rate of steps; if nil, slog.Default() gets the rest
	Logger *slog.Logger
}

// MonitoredTrainingSession returns a session to train with, for one worker of a cluster or for a
// single process, with the usual hooks: the chief initializes the model or restores it from its
// latest checkpoint, saves checkpoints, writes summaries and counts steps; all others wait for the
// chief.
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

// writerHook owns the event file that several hooks write to.
type writerHook struct {
	BaseHook
	w *summary.Writer
}

// Close implements io.Closer.
func (h *writerHook) Close() error { return h.w.Close() }
