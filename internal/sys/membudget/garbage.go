package membudget

import (
	"runtime"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
)

// garbage ends charges for memory without a holder. The charge of a buffer that is left to the
// garbage collector, such as one of strings, or of a resource that was closed ends with a
// collection. An account may be far below the limit of the process, for which a collection is not
// due.
var garbage = collector{fruitful: true, collect: runtime.GC}

// collector collects garbage for accounts.
type collector struct {
	collect func() // replaced by tests

	mu       sync.Mutex // serializes collections
	fruitful bool       // the last collection was enough; guarded by mu
	began    int64      // its time, mono.Nanos; guarded by mu
	next     int64      // earliest time of the next one if it was not enough; guarded by mu
}

const (
	// cleanupTime is how long the charges of what a collection has found may take to end: the
	// runtime runs cleanup functions on goroutines of its own.
	cleanupTime = 20 * time.Millisecond
	// restShare is the time between collections that were not enough, in units of the time of the
	// last one. So an owner that asks for too much, again and again, keeps the collector at work
	// for a fifth of the time.
	restShare = 4
	// longestRest is how long a charge waits for the time of the next collection before it fails.
	longestRest = 2 * time.Second
)

// settle calls try, which returns the account that a charge would take over its limit. If there is
// one, it collects garbage and calls try again.
func (c *collector) settle(try func() *Account) *Account {
	asked := mono.Nanos()
	c.mu.Lock()
	defer c.mu.Unlock()
	over := try()
	if over == nil || c.began > asked { // another goroutine has collected
		return over
	}
	if !c.fruitful {
		rest := c.next - mono.Nanos()
		if rest > int64(longestRest) {
			return over
		}
		time.Sleep(time.Duration(rest)) //nolint:forbidigo // at most 0.1 s; a charge has no context
	}
	c.began = mono.Nanos()
	c.collect()
	ended := mono.Nanos()
	for over = try(); over != nil && mono.Nanos()-ended < int64(cleanupTime); over = try() {
		time.Sleep(time.Millisecond) //nolint:forbidigo // the runtime does not say when it has run cleanup functions
	}
	c.fruitful, c.next = over == nil, mono.Nanos()+restShare*(ended-c.began)
	return over
}
