package cases

// Sizes of recurrent layers.
const cellRows, cellCount = 7, 33

func (m *maker) lstm() {
	t, n := m.t(0), int64(cellRows*cellCount)
	one := func() *Buffer { return m.normal(t, cellCount) }
	all := func() *Buffer { return m.normal(t, n) }
	gate := func() *Buffer { return numbers(t, n, func(int) float64 { return m.r.Float64() }) }
	for peephole := range int32(2) {
		what := pick(peephole == 1, "peepholes", "plain")
		var c *Case
		switch {
		case m.is("_grad"):
			c = m.add(what, n, 4, out(t, 4*n), out(t, n), gate(), gate(), gate(), gate(), gate(), all(), all(), all(), all(), all(), one(), one(), one(),
				n, int32(cellCount), 1+peephole, 2-peephole, peephole, peephole)
		case m.is("_peep"):
			// The kernel adds to its outputs if there is more, but cases begin with empty ones.
			c = m.add(what, cellCount, 4, out(t, cellCount), out(t, cellCount), out(t, cellCount), m.normal(t, 4*n), all(), all(), int64(cellCount),
				int64(cellRows), 1+peephole, int32(0))
		default:
			c = m.add(what, n, 8, out(t, n), out(t, n), out(t, n), out(t, n), out(t, n), out(t, n), out(t, n), m.normal(t, 4*n), m.normal(t, 4*n),
				all(), m.normal(t, 4*cellCount), one(), one(), one(), n, int32(cellCount), 1+peephole, 2-peephole,
				float32(peephole), float32(3), peephole)
		}
		c.Rel, c.Abs = 16*sumTolerance(t), 16*sumTolerance(t)
	}
}

func (m *maker) gru() {
	t, n := m.t(0), int64(cellRows*cellCount)
	all := func() *Buffer { return m.normal(t, n) }
	gate := func() *Buffer { return numbers(t, n, func(int) float64 { return m.r.Float64() }) }
	var c *Case
	switch {
	case m.is("_state"):
		c = m.add("plain", n, 8, out(t, n), out(t, n), all(), all(), m.normal(t, cellCount), gate(), all(), n, int32(cellCount))
	case m.is("_candidate"):
		c = m.add("plain", n, 8, out(t, n), out(t, 2*n), gate(), gate(), all(), all(), n, int32(cellCount))
	case m.is("_reset"):
		c = m.add("plain", n, 8, out(t, n), out(t, 2*n), all(), gate(), gate(), all(), all(), n, int32(cellCount))
	default:
		c = m.add("plain", n, 8, out(t, n), out(t, n), out(t, n), m.normal(t, 2*n), m.normal(t, 2*n), m.normal(t, 2*cellCount), all(), n, int32(cellCount))
	}
	c.Rel, c.Abs = 16*sumTolerance(t), 16*sumTolerance(t)
}
