package executor

import (
	"fmt"
	"math"
	"strings"
)

// Fuse builds regions with at least the given number of kernels and at most the given number of
// nodes. It includes all fusible nodes that have run, regardless of their times. It returns the
// names of their nodes, one line per region.
func (e *Executor) Fuse(kernels, nodes int) string {
	e.FuseOnly(kernels, nodes)
	return e.Regions()
}

// FuseOnly is Fuse without the names.
func (e *Executor) FuseOnly(kernels, nodes int) {
	e.fused.Store(nil)
	e.fuse(limits{kernels: kernels, nodes: nodes, nanos: math.MaxInt64, each: math.MaxInt64})
}

// FuseAll makes the second run of every executor fuse all fusible nodes regardless of their times,
// until the returned function is called.
func FuseAll() (end func()) {
	before := defaultLimits
	defaultLimits.nanos, defaultLimits.each = math.MaxInt64, math.MaxInt64
	return func() { defaultLimits = before }
}

// Regions returns the names of the nodes of all regions, one line per region.
func (e *Executor) Regions() string {
	p := e.fused.Load()
	if p == nil {
		return ""
	}
	var b strings.Builder
	for i := range p.nodes {
		if c := p.nodes[i].region; c != nil {
			for j := range c.nodes {
				fmt.Fprintf(&b, "%s ", c.nodes[j].name)
			}
			b.WriteString("\n")
		}
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

// SlowRegionCalls is the number of consecutive slow calls after which a region is dropped.
const SlowRegionCalls = slowRegionCalls
