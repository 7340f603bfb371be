package parallel

import (
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
	"github.com/weft-ml/weft/internal/sys/spin"
)

// Pace lets a goroutine that computes for long offer its core to threads that wait for one. The
// kernel takes a core from who computes only at the next tick of its clock, which with 250 ticks a
// second lasts longer than most steps; a thread that has just been woken, of this process or of a
// client on the same machine, would wait until then. The zero value is ready; it is for one
// goroutine at a time.
type Yielder struct {
	// when to offer the core again, in nanoseconds since epoch; 0 before the first call of Offer
	next int64
}

// between is how long a goroutine computes before it offers its core.
const between = 100 * time.Microsecond

// Offer lets threads that wait run first, if it was last called long enough ago. It is to be called
// between pieces of work, and costs 30 ns as a rule. After an offer that was taken, the goroutine
// computes for twice as long as it had to wait, so that it keeps its share beside others that
// compute.
func (p *Yielder) MaybeYield() {
	now := mono.Nanos()
	if p.due(now) {
		spin.YieldThread()
		p.back(now, mono.Nanos())
	}
}

// due reports whether it is time to offer the core.
func (p *Yielder) due(now int64) bool {
	if p.next == 0 { // whoever has just begun may be done soon
		p.next = now + int64(between)
	}
	return now >= p.next
}

// back takes note of an offer and its end.
func (p *Yielder) back(from, to int64) { p.next = to + max(int64(between), 2*(to-from)) }
