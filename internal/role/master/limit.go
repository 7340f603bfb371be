package master

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/mono"
)

// limit is when something is to be over. The zero limit is none.
type limit struct {
	set bool
	at  time.Duration // by mono.Now
}

// longest is a limit that nobody reaches.
const longest = 100 * 365 * 24 * time.Hour

// limitOf returns that of what begins now and may take a number of milliseconds, or any time if
// that is 0.
func limitOf(ms int64) limit {
	if ms <= 0 {
		return limit{}
	}
	return limit{true, mono.Now() + time.Duration(min(ms, longest.Milliseconds()))*time.Millisecond}
}

// limit returns that of a step which begins now: it has the time that the client allows it, or else
// the session.
func (s *session) limit(ctx context.Context, options *pb.RunOptions) limit {
	ms := options.GetTimeoutInMs()
	if ms <= 0 {
		ms = s.config.GetOperationTimeoutInMs()
	}
	return limitOf(ms).before(ctx)
}

// before returns the earlier of l and a time shortly before the deadline of ctx. A client that
// stops waiting at that deadline then still gets an error that says what it has waited for.
func (l limit) before(ctx context.Context) limit {
	end, ok := ctx.Deadline()
	if !ok {
		return l
	}
	left := time.Until(end)
	at := mono.Now() + left - min(left/earlyFraction, maxEarly)
	if l.set && l.at < at {
		return l
	}
	return limit{true, at}
}

// context returns one that ends at the limit, for those who are going to wait.
func (l limit) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if !l.set {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(context.WithValue(ctx, clientContext{}, ctx), l.at-mono.Now(), errTimeout)
}

// clientContext is the key of the client's context in a context with a limit.
type clientContext struct{}

// begin begins the life of a step, which has no timer as long as nobody waits. The caller must
// finish it.
func (st *step) begin(ctx context.Context, l limit) {
	st.life.Begin(ctx)
	if l.set {
		st.life.SetDeadline(l.at, errTimeout)
	}
}
