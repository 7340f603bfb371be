package grpch2

import "sync/atomic"

// A frequencyGauge reports whether an event, such as a call that takes long, has become frequent.
//
// A single observation proves nothing on a machine that runs other programs. The gauge is a score:
// an event adds gaugeStep, the absence of one subtracts 1. An event is frequent if it has occurred
// three times in a row, or in more than one of nine calls in the long run. The upper bound lets the
// gauge fall below the threshold after 48 calls without an event. It is safe for concurrent use; of
// two concurrent observations one may be lost.
type frequencyGauge struct{ score atomic.Int32 }

const (
	gaugeStep      = 8 // one event outweighs eight observations without one
	gaugeThreshold = 2 * gaugeStep
	gaugeMax       = 8 * gaugeStep
)

// record adds an observation: whether the event occurred.
func (g *frequencyGauge) record(occurred bool) {
	score := g.score.Load()
	switch {
	case occurred:
		g.score.Store(min(score+gaugeStep, gaugeMax))
	case score > 0:
		g.score.Store(score - 1)
	}
}

// frequent reports whether the event occurs often.
func (g *frequencyGauge) frequent() bool { return g.score.Load() > gaugeThreshold }
