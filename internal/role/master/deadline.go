package master

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/mono"
)

// deadline is the time at which a request ends. The zero deadline is never reached.
type deadline struct {
	set   bool
	limit bool          // it is that of --max-step-time
	at    time.Duration // by mono.Now
}

// maxTimeout bounds timeouts, so that a deadline does not overflow.
const maxTimeout = 100 * 365 * 24 * time.Hour

// deadlineAfter returns the deadline that is ms milliseconds away, or none if ms is 0.
func deadlineAfter(ms int64) deadline {
	if ms <= 0 {
		return deadline{}
	}
	return deadline{set: true, at: mono.Now() + time.Duration(min(ms, maxTimeout.Milliseconds()))*time.Millisecond}
}

// deadline returns the deadline of a step that begins now. The client's option takes precedence
// over the session's. The limit of the task is the most.
func (s *session) deadline(ctx context.Context, options *pb.RunOptions) deadline {
	ms := options.GetTimeoutInMs()
	if ms <= 0 {
		ms = s.config.GetOperationTimeoutInMs()
	}
	if q := s.master.Quota; q != nil && q.StepTime > 0 {
		if most := max(q.StepTime.Milliseconds(), 1); ms <= 0 || ms > most {
			d := deadlineAfter(most)
			d.limit = true
			return d.before(ctx)
		}
	}
	return deadlineAfter(ms).before(ctx)
}

// before returns the earlier of d and a time shortly before the deadline of ctx. A client that
// stops waiting at that deadline then still gets an error that says what it has waited for.
func (d deadline) before(ctx context.Context) deadline {
	end, ok := ctx.Deadline()
	if !ok {
		return d
	}
	left := time.Until(end)
	at := mono.Now() + left - min(left/earlyFraction, maxEarly)
	if d.set && d.at < at {
		return d
	}
	return deadline{set: true, at: at}
}

// context returns a context with the deadline, for requests that wait without a step.
func (d deadline) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if !d.set {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(context.WithValue(ctx, clientContext{}, ctx), d.at-mono.Now(), errTimeout)
}

// clientContext is the key of the client's context in a context with a deadline.
type clientContext struct{}

// begin starts the context of a step. It has no timer until something waits for its end. The caller
// must call Finish.
func (st *step) begin(ctx context.Context, d deadline) {
	st.ctx.Begin(ctx)
	st.limited = d.limit
	if d.set {
		st.ctx.SetDeadline(d.at, errTimeout)
	}
}
