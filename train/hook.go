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

// SessionRunHook does something around the steps of a [MonitoredSession]. Its methods are called by
// one goroutine at a time. Embed [BaseHook] for the methods that have nothing to do. A hook that is
// an [io.Closer] is closed at the very end, also after an error.
type SessionRunHook interface {
	// Begin is called once, before there is a session. It may add nodes to the graph, which nobody
	// may later.
	Begin(s *op.Scope) error
	// AfterCreateSession is called when there is a session whose model is ready, and again for each
	// that takes the place of one that was lost. Goroutines that use the session are run by coord.
	AfterCreateSession(ctx context.Context, sess Session, coord *Coordinator) error
	// BeforeRun is called before each step and returns what the hook wants of it.
	BeforeRun(ctx context.Context, run *RunContext) (RunArgs, error)
	// AfterRun is called after each step that did not fail. The values are the hook's until it
	// returns.
	AfterRun(ctx context.Context, run *RunContext, values RunValues) error
	// End is called after the last step, unless a step failed.
	End(ctx context.Context, sess Session) error
}

// BaseHook is a hook that does nothing.
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

// RunArgs is what is fed to a step, fetched from it and run by it.
type RunArgs struct {
	Feeds   map[graph.Output]tensor.Tensor
	Fetches []graph.Output
	Targets []*graph.Node
	Trace   bool // record what ran where and when
}

// RunValues is what came of a step.
type RunValues struct {
	Fetched  []tensor.Tensor // in the order of the fetches that the hook asked for
	Metadata *weft.Metadata  // of the whole step; nil if nobody asked for a trace
}

// RunContext is what hooks know of a step.
type RunContext struct {
	Session Session // to run further steps, which hooks do not see
	Args    RunArgs // what the caller wants
	stop    bool
}

// RequestStop makes this step the last.
func (r *RunContext) RequestStop() { r.stop = true }

// hookedStep puts together what the caller and the hooks want of one step.
type hookedStep struct {
	args RunArgs
	at   map[graph.Output]int // of args.Fetches
	want [][]graph.Output     // of each hook
}

// newHookedStep asks the hooks what they want.
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
		if len(more.Feeds) > 0 && !ownFeeds { // the map of the caller stays as it is
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
			return status.InvalidArgumentf("two hooks, or a hook and the caller, feed %v", o)
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

// values returns the values that hook i wants, out of all.
func (st *hookedStep) values(i int, all []tensor.Tensor) []tensor.Tensor {
	out := make([]tensor.Tensor, len(st.want[i]))
	for j, o := range st.want[i] {
		out[j] = all[st.at[o]]
	}
	return out
}

// closeHooks closes the hooks that want it.
func closeHooks(hooks []SessionRunHook) error {
	var errs []error
	for _, h := range hooks {
		if c, ok := h.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
