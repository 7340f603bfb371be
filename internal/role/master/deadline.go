package master

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/quota"
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
	ctx = context.WithValue(ctx, waiterKey{}, waiter{ctx, d.limit})
	return context.WithTimeoutCause(ctx, d.at-mono.Now(), errTimeout)
}

// waiterKey is the key of the waiter in a context with a deadline.
type waiterKey struct{}

// waiter is a request that waits with a deadline.
type waiter struct {
	client  context.Context // without the deadline
	limited bool            // the deadline is that of --max-step-time
}

// overtime returns how the error of a request that reached its deadline names what it waited for. A
// limited request has reached --max-step-time, which is counted.
func (m *Master) overtime(what string, limited bool) string {
	if !limited {
		return what
	}
	m.Quota.Hit(quota.StepTime)
	return fmt.Sprintf("The time of a step is limited to %v (%s). %s", m.Quota.StepTime, quota.StepTime.Flag(), what)
}

// begin starts the context of a step. It has no timer until something waits for its end. The caller
// must call Finish.
func (st *step) begin(ctx context.Context, d deadline) {
	st.ctx.Begin(ctx)
	st.limited = d.limit
	if d.set {
		st.ctx.SetDeadline(d.at, errTimeout)
	}
}
