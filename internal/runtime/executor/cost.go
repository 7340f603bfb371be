package executor

// expensive is the average time of a call, in nanoseconds, from which a node is queued for other
// goroutines. It is several times the cost of waking a goroutine on an idle core.
const expensive = 5000

// costDecay is the divisor of the exponential moving average of call times: a new time has the
// weight 1/costDecay.
const costDecay = 10

// sampleMask selects the calls of cheap kernels that are timed, one of sampleMask+1. Reading the
// clock costs as much as the smallest kernels.
const sampleMask = 15

// expensiveOnGPU takes the place of expensive on a GPU. Kernels there queue work, one at a time, so
// helpers would only wait for one another. The first call, which compiles, and detours take longer.
const expensiveOnGPU = 200_000

// isExpensive reports whether a call of the node is likely to take long. A node that has never run
// counts as expensive.
func (n *node) isExpensive() bool {
	c := n.nanos()
	return c == 0 || c >= expensive && (!n.gpu || c >= expensiveOnGPU)
}

// nanos returns the average time of a call in nanoseconds, or 0 before the first call.
func (n *node) nanos() int64 {
	c := n.cost.Load()
	return max(c, -c)
}

// addCost adds the time of one call to the node's average. The first call finds cold caches, pools
// and pages, so it counts only until the second call. Until then it is stored as a negative number.
// Concurrent runs may lose each other's measurements, which is harmless.
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
