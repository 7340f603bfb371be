// Package gctune makes the garbage collector run less often in processes with a small heap.
//
// A task allocates little per step and keeps few objects, because tensors return to free lists.
// With the default GOGC of 100, a heap of a few MiB is collected several times a second
// nevertheless, and once or twice while the program starts. A program that imports this package
// lets the heap grow by at least 48 MiB between collections, unless the environment variable GOGC
// is set. An idle task returns the memory to the operating system.
//
// The package imports little, so that it is initialized before the packages that fill the heap.
package gctune

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// minGrowth is the least growth of the heap between collections, in bytes.
const minGrowth = 48 << 20

// Bounds of GOGC, in percent of the live heap. The minimum heap of the runtime is 4 MiB for each
// 100%, which is minGrowth at maxPercent.
const minPercent, maxPercent = 100, 1200

func init() { //nolint:gochecknoinits // must run before the heap grows
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(maxPercent)
		t := &tuner{[]metrics.Sample{{Name: "/gc/heap/live:bytes"}}, maxPercent}
		t.awaitCollection()
	}
}

// tuner adjusts GOGC after each collection.
type tuner struct {
	live    []metrics.Sample
	percent int // current GOGC
}

// awaitCollection schedules adjust after the next collection: the cleanup of a fresh object runs
// then.
func (t *tuner) awaitCollection() { runtime.AddCleanup(new([16]byte), (*tuner).adjust, t) }

// adjust sets GOGC for the size of the live heap.
func (t *tuner) adjust() {
	metrics.Read(t.live)
	percent := growthPercent(t.live[0].Value.Uint64())
	// SetGCPercent stops the world briefly, so small changes are skipped
	if 4*max(percent, t.percent) > 5*min(percent, t.percent) {
		debug.SetGCPercent(percent)
		t.percent = percent
	}
	t.awaitCollection()
}

// growthPercent returns the value of GOGC for a live heap of that many bytes.
func growthPercent(live uint64) int {
	return int(min(max(100*minGrowth/max(live, 1), minPercent), maxPercent))
}
