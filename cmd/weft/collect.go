package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A task makes little garbage in a step, and holds few objects: tensors come back to their pools. With the usual goal of twice
// what is in use, a small heap would be collected several times a second all the same. collectSeldom lets the heap grow by
// garbageRoom at least between collections, unless GOGC says how it should be. A task at rest gives the room back.
const garbageRoom = 48 << 20

func collectSeldom() {
	if os.Getenv("GOGC") == "" {
		newCollector().adjust()
	}
}

// collector sets the goal of the next collection after each.
type collector struct {
	live    []metrics.Sample
	percent int // that was set last
}

func newCollector() *collector {
	return &collector{[]metrics.Sample{{Name: "/gc/heap/live:bytes"}}, 100}
}

// adjust is called after each collection. It has itself called after the next.
func (c *collector) adjust() {
	metrics.Read(c.live)
	percent := growth(c.live[0].Value.Uint64())
	if 4*max(percent, c.percent) > 5*min(percent, c.percent) { // setting it stops the world for a moment
		debug.SetGCPercent(percent)
		c.percent = percent
	}
	runtime.AddCleanup(new([16]byte), (*collector).adjust, c)
}

// growth returns by how many percent a heap may grow of which so many bytes are in use.
func growth(live uint64) int {
	const least, most = 100, 1200 // the runtime's least heap is of 4 MiB for each 100%, which with the most is the room
	return int(min(max(100*garbageRoom/max(live, 1), least), most))
}
