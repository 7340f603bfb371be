package train

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// SessionRunHook extends the steps of a [MonitoredSession]. Its methods are called by one goroutine
// at a time. Hooks embed [BaseHook] and define the methods that they need. A hook that is an
// [io.Closer] is closed with the session, also after an error. An error of a method ends training,
// unless its code means the loss of a task (Aborted, Unavailable).
type SessionRunHook interface {
	// Begin is called once, before the first session is created. It may add nodes to the graph; the
	// other methods must not.
	Begin(s *op.Scope) error
	// AfterCreateSession is called after the model of a new session is ready: for the first
	// session, and for each that replaces a lost one. Goroutines that use the session are started
	// with coord.
	AfterCreateSession(ctx context.Context, sess Session, coord *Coordinator) error
	// BeforeRun is called before each step. It returns what the hook adds to the step.
	BeforeRun(ctx context.Context, run *RunContext) (RunArgs, error)
	// AfterRun is called after each successful step. The values are valid until it returns.
	AfterRun(ctx context.Context, run *RunContext, values RunValues) error
	// End is called after the last step, unless a step has failed.
	End(ctx context.Context, sess Session) error
}

// BaseHook is a [SessionRunHook] whose methods do nothing. Other hooks embed it.
type BaseHook struct{}

// Begin implements [SessionRunHook].
func (BaseHook) Begin(*op.Scope) error { return nil }

// AfterCreateSession implements [SessionRunHook].
func (BaseHook) AfterCreateSession(context.Context, Session, *Coordinator) error { return nil }

// BeforeRun implements [SessionRunHook].
func (BaseHook) BeforeRun(context.Context, *RunContext) (RunArgs, error) { return RunArgs{}, nil }

// AfterRun implements [SessionRunHook].
func (BaseHook) AfterRun(context.Context, *RunContext, RunValues) error { return nil }

// End implements [SessionRunHook].
func (BaseHook) End(context.Context, Session) error { return nil }

// RunArgs are the arguments of a step, or what a hook adds to them.
type RunArgs struct {
	Feeds   map[graph.Output]tensor.Tensor // of outputs that the caller and other hooks do not feed
	Fetches []graph.Output
	Targets []*graph.Node
	Trace   bool // record the device and the times of each node
}

// RunValues are the results of a step for a hook.
type RunValues struct {
	Fetched  []tensor.Tensor // in the order of the fetches that the hook asked for
	Metadata *weft.Metadata  // of the whole step; nil unless a hook asked for a trace
}

// RunContext describes a step to the hooks.
type RunContext struct {
	Session Session // for further steps, which hooks do not see
	Args    RunArgs // arguments of the caller
	stop    bool
}

// RequestStop makes this step the last one.
func (r *RunContext) RequestStop() { r.stop = true }

// A hookedStep merges the arguments of the caller and of the hooks for one step.
type hookedStep struct {
	args RunArgs
	at   map[graph.Output]int // positions in args.Fetches
	want [][]graph.Output     // fetches of each hook
}

// newHookedStep calls BeforeRun of the hooks and merges the results.
func newHookedStep(ctx context.Context, run *RunContext, hooks []SessionRunHook) (*hookedStep, error) {
	st := &hookedStep{args: run.Args, at: make(map[graph.Output]int, len(run.Args.Fetches)+1)}
	st.args.Fetches, st.args.Targets = slices.Clip(st.args.Fetches), slices.Clip(st.args.Targets)
	for i, o := range st.args.Fetches {
		st.at[o] = i
	}
	ownFeeds := false
	for _, h := range hooks {
		more, err := h.BeforeRun(ctx, run)
		if err != nil {
			return nil, err
		}
		if len(more.Feeds) > 0 && !ownFeeds { // do not change the caller's map
			st.args.Feeds, ownFeeds = maps.Clone(st.args.Feeds), true
		}
		if err := st.add(more); err != nil {
			return nil, err
		}
	}
	return st, nil
}

func (st *hookedStep) add(more RunArgs) error {
	if st.args.Feeds == nil && len(more.Feeds) > 0 {
		st.args.Feeds = map[graph.Output]tensor.Tensor{}
	}
	for o, t := range more.Feeds {
		if _, twice := st.args.Feeds[o]; twice {
			return status.InvalidArgumentf("%v is fed by two hooks, or by a hook and the caller", o)
		}
		st.args.Feeds[o] = t
	}
	for _, o := range more.Fetches {
		if _, there := st.at[o]; !there {
			st.at[o] = len(st.args.Fetches)
			st.args.Fetches = append(st.args.Fetches, o)
		}
	}
	st.args.Targets = append(st.args.Targets, more.Targets...)
	st.args.Trace = st.args.Trace || more.Trace
	st.want = append(st.want, more.Fetches)
	return nil
}

// values returns the values that hook i has fetched, out of those of the step.
func (st *hookedStep) values(i int, all []tensor.Tensor) []tensor.Tensor {
	out := make([]tensor.Tensor, len(st.want[i]))
	for j, o := range st.want[i] {
		out[j] = all[st.at[o]]
	}
	return out
}

// closeHooks closes the hooks that are an [io.Closer].
func closeHooks(hooks []SessionRunHook) error {
	var errs []error
	for _, h := range hooks {
		if c, ok := h.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
