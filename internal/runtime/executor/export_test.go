package executor

import (
	"fmt"
	"math"
	"strings"
)

// Fuse makes regions of at least and at most so many kernels and nodes, of all nodes that have run,
// whatever they take. It returns their names, a line for each region.
func (e *Executor) Fuse(kernels, nodes int) string {
	e.FuseOnly(kernels, nodes)
	return e.Regions()
}

// FuseOnly is Fuse without the names.
func (e *Executor) FuseOnly(kernels, nodes int) {
	e.fused.Store(nil)
	e.fuse(limits{kernels: kernels, nodes: nodes, nanos: math.MaxInt64, each: math.MaxInt64})
}

// FuseAll makes the second runs of executors fuse all that can be fused, whatever it takes,
// until the returned function is called.
func FuseAll() (end func()) {
	before := defaultLimits
	defaultLimits.nanos, defaultLimits.each = math.MaxInt64, math.MaxInt64
	return func() { defaultLimits = before }
}

// Regions describes the regions that there are.
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

// SlowRegionCalls is how many slow calls of a region end fusion.
const SlowRegionCalls = slowRegionCalls
