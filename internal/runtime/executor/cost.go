package executor

// expensive is the time from which on a call is worth another goroutine, in nanoseconds: some times
// what it takes to wake one on an idle core.
const expensive = 5000

// costDecay is the weight of the past in the average time of a node's calls.
const costDecay = 10

// sampleMask says how often calls of cheap kernels are timed: a clock costs as much as the smallest
// kernels.
const sampleMask = 15

// isExpensive reports whether a call of the node is likely to take long. A node that has never run
// may be anything.
func (n *node) isExpensive() bool {
	c := n.nanos()
	return c == 0 || c >= expensive
}

// nanos returns the average time of a call, as far as it is known; 0 before the first.
func (n *node) nanos() int64 {
	c := n.cost.Load()
	return max(c, -c)
}

// addCost adds one call to the node's average. The first call finds caches, pools and pages cold,
// and counts only until there is a second: until then it is stored as a negative number. Concurrent
// runs may lose one another's measurements, which does no harm.
func (n *node) addCost(nanos int64) {
	nanos = max(nanos, 1)
	switch old := n.cost.Load(); {
	case old == 0:
		n.cost.Store(-nanos)
	case old < 0:
		n.cost.Store(min(nanos, -old))
	default:
		n.cost.Store(max(1, old+(nanos-old)/costDecay))
	}
}
