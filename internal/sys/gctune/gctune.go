// Package gctune has the garbage of a process collected seldom.
//
// A task makes little garbage in a step, and holds few objects: tensors come back to their pools.
// With the usual goal of twice what is in use, a small heap would be collected several times a
// second all the same, and once or twice while the program starts. A program that imports this
// package lets the heap grow by 48 MiB at least between collections, unless GOGC says how it should
// be. A task at rest gives the room back.
//
// It imports little, so that it is initialized before the packages that fill the heap.
package gctune

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// room is what a small heap may grow by between collections, in bytes.
const room = 48 << 20

// Bounds of how far the heap grows, in percent of what is in use. The runtime's least heap is of 4
// MiB for each 100%, which with the most is the room.
const least, most = 100, 1200

func init() { //nolint:gochecknoinits // only here it is early enough
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(most)
		c := &collector{[]metrics.Sample{{Name: "/gc/heap/live:bytes"}}, most}
		c.await()
	}
}

// collector sets the goal of the next collection after each.
type collector struct {
	live    []metrics.Sample
	percent int // that was set last
}

// await has adjust called after the next collection.
func (c *collector) await() { runtime.AddCleanup(new([16]byte), (*collector).adjust, c) }

func (c *collector) adjust() {
	metrics.Read(c.live)
	percent := growth(c.live[0].Value.Uint64())
	// setting it stops the world for a moment
	if 4*max(percent, c.percent) > 5*min(percent, c.percent) {
		debug.SetGCPercent(percent)
		c.percent = percent
	}
	c.await()
}

// growth returns by how many percent a heap may grow of which so many bytes are in use.
func growth(live uint64) int {
	return int(min(max(100*room/max(live, 1), least), most))
}
