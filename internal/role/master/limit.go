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
	at  time.Duration // by lifetime.Now
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
func (s *session) limit(options *pb.RunOptions) limit {
	if ms := options.GetTimeoutInMs(); ms > 0 {
		return limitOf(ms)
	}
	return limitOf(s.config.GetOperationTimeoutInMs())
}

// context returns one that ends at the limit, for those who are going to wait.
func (l limit) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if !l.set {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, l.at-mono.Now(), errTimeout)
}

// begin begins the life of a step, which has no timer as long as nobody waits. The caller must
// finish it.
func (st *step) begin(ctx context.Context, l limit) {
	st.life.Begin(ctx)
	if l.set {
		st.life.SetDeadline(l.at, errTimeout)
	}
}
