package cases

import "github.com/weft-ml/weft/internal/gpu/driver"

// Window is the structure of the same name in conv.cl.
type Window struct {
	Batch, Channels                   int32
	In, K, Out, Stride, Dilation, Pad [3]int32
	NCHW, Multiplier                  int32
}

// Struct returns the argument of a kernel.
func (w *Window) Struct() driver.Struct { return driver.StructOf(w) }

func volume(v [3]int32) int64 { return int64(v[0]) * int64(v[1]) * int64(v[2]) }

// members returns a position of the input for each element of the output that is in its window.
func (m *maker) members(w *Window) *Buffer {
	positions := int(volume(w.Out))
	return numbers("i32", int64(w.Batch)*int64(w.Channels)*volume(w.Out), func(e int) float64 {
		p := int32(e / int(w.Channels) % positions) //nolint:gosec // small
		if w.NCHW != 0 {
			p = int32(e % positions) //nolint:gosec // small
		}
		o := [3]int32{p / w.Out[2] / w.Out[1], p / w.Out[2] % w.Out[1], p % w.Out[2]}
		at := int32(0)
		for d := range 3 {
			first := o[d]*w.Stride[d] - w.Pad[d]
			lo, hi := max(first, 0), min(first+w.K[d], w.In[d])
			at = at*w.In[d] + lo + m.r.Int32N(hi-lo)
		}
		return float64(at)
	})
}

// windows are convolutions and poolings: without and with padding, strides, dilation, and three
// dimensions.
var windows = map[string]Window{
	"5x7 by 3x2":              {Batch: 2, Channels: 5, In: [3]int32{1, 5, 7}, K: [3]int32{1, 3, 2}, Out: [3]int32{1, 3, 6}},
	"padded, strides 2 and 1": {Batch: 2, Channels: 3, In: [3]int32{1, 6, 5}, K: [3]int32{1, 3, 3}, Out: [3]int32{1, 3, 5}, Stride: [3]int32{1, 2, 1}, Pad: [3]int32{0, 0, 1}},
	"three dimensions":        {Batch: 1, Channels: 4, In: [3]int32{4, 3, 5}, K: [3]int32{2, 3, 2}, Out: [3]int32{4, 2, 3}, Stride: [3]int32{1, 2, 2}, Pad: [3]int32{1, 1, 1}},
}

func (m *maker) eachWindow(f func(what string, w Window)) {
	for _, what := range []string{"5x7 by 3x2", "padded, strides 2 and 1", "three dimensions"} {
		w := windows[what]
		for d := range 3 {
			w.Stride[d], w.Dilation[d] = max(1, w.Stride[d]), max(1, w.Dilation[d])
		}
		w.Multiplier = 1
		f(what, w)
	}
}

func init() {
	makers["IM2COL"] = func(m *maker) {
		m.eachWindow(func(what string, w Window) {
			w.Dilation[1], w.In[1] = 2, w.In[1]+2
			n := volume(w.Out) * volume(w.K) * int64(w.Channels)
			m.add(what, n, 0, out(m.t(0), n), m.random(m.t(0), int64(w.Batch)*volume(w.In)*int64(w.Channels)), n,
				(int64(w.Batch)-1)*volume(w.Out), w.Struct())
		})
	}
	makers["COL2IM"] = func(m *maker) {
		m.eachWindow(func(what string, w Window) {
			n := int64(w.Batch) * volume(w.In) * int64(w.Channels)
			rows := int64(w.Batch) * volume(w.Out) * volume(w.K) * int64(w.Channels)
			m.add(what, n, 1, out(m.t(0), n), m.positive(m.t(0), rows), n, w.Struct()).Rel = sumTolerance(m.t(0))
		})
	}
	makers["DEPTHWISE"] = func(m *maker) {
		m.eachWindow(func(what string, w Window) {
			if w.In[0] > 1 {
				return // depthwise convolutions have two dimensions
			}
			w.Multiplier = 2
			ins, outs := int64(w.Batch)*volume(w.In)*int64(w.Channels), 2*int64(w.Batch)*volume(w.Out)*int64(w.Channels)
			filters := 2 * volume(w.K) * int64(w.Channels)
			to, first, second := outs, ins, filters
			switch {
			case m.is("_input"):
				to, first, second = ins, outs, filters
			case m.is("_filter"):
				to, first, second = filters, ins, outs
			}
			c := m.add(what, to, 1, out(m.t(0), to), m.positive(m.t(0), first), m.positive(m.t(0), second), to, w.Struct())
			c.Rel = sumTolerance(m.t(0))
		})
	}
	pool := func(m *maker) {
		for nchw := range int32(2) {
			m.eachWindow(func(what string, w Window) {
				w.NCHW = nchw
				what += pick(nchw == 1, ", channels first", "")
				t, ins, outs := m.t(0), int64(w.Batch)*volume(w.In)*int64(w.Channels), int64(w.Batch)*volume(w.Out)*int64(w.Channels)
				x := numbers(t, ins, func(int) float64 { return float64(m.r.IntN(9)) })
				var c *Case
				switch {
				case m.is("_at"):
					c = m.add(what, outs, 0, out(t, outs), out("i64", outs), x, outs, nchw, w.Struct())
				case m.is("_first"):
					c = m.add(what, outs, 0, out("i32", outs), x, outs, w.Struct())
				case m.is("_pick"):
					c = m.add(what, outs, 0, out(t, outs), x, numbers(t, outs, func(int) float64 { return float64(m.r.IntN(9)) }), m.positive(t, ins), outs, w.Struct())
				case m.is("_grad") && m.program.Macro == "MAXPOOL":
					c = m.add(what, ins, 1, out(t, ins), m.members(&w), m.positive(t, outs), ins, w.Struct())
				case m.is("_grad"):
					c = m.add(what, ins, 1, out(t, ins), m.positive(t, outs), ins, w.Struct())
				case m.program.Macro == "AVGPOOL":
					c = m.add(what, outs, 1, out(t, outs), m.positive(t, ins), outs, w.Struct())
				default:
					c = m.add(what, outs, 0, out(t, outs), x, outs, w.Struct())
				}
				c.Rel = pick(c.ULP > 0, sumTolerance(t), 0)
			})
		}
	}
	makers["MAXPOOL"], makers["AVGPOOL"] = pool, pool
	makers["IMAGEPLACES"] = func(m *maker) {
		m.add("3 images", 300, 0, out("i64", 300), m.indexes("i64", 300, 64), int64(300), int64(100), int64(64))
	}
	makers["COLS"] = func(m *maker) {
		const rows, channels, splits = 500, 37, 3
		count := pick(m.program.Name == "colsum", int64(500), 0)
		m.group("3 splits", [3]int{2, 1, 1}, [3]int{32, 8, 1}, 1, out("f32", splits*channels), m.positive(m.t(0), rows*channels),
			m.positive(m.t(0), rows*channels), m.low(channels), m.positive("f32", channels), int64(rows), int64(channels), int32(splits), count).Rel = 2e-6
	}
	makers["NORMALIZE"] = func(m *maker) {
		const n, channels = 3700, 37
		for relu := range int32(2) {
			c := m.add(pick(relu == 1, "with relu", "plain"), n, 2, out(m.t(0), n), m.normal(m.t(0), n), m.normal("f32", channels), m.positive("f32", channels),
				m.positive("f32", channels), m.normal("f32", channels), int64(n), uint32(channels), float32(0.001), relu)
			c.Rel, c.Abs = sumTolerance(m.t(0)), 4*sumTolerance(m.t(0))
		}
	}
	makers["NORMGRAD"] = func(m *maker) {
		const n, channels = 3700, 37
		for frozen := range int32(2) {
			c := m.add(pick(frozen == 1, "frozen", "training"), n, 2, out(m.t(0), n), m.normal(m.t(0), n), m.normal(m.t(0), n), m.normal("f32", channels),
				m.positive("f32", channels), m.positive("f32", channels), m.normal("f32", channels), m.normal("f32", channels),
				int64(n), uint32(channels), int64(100), float32(0.001), frozen)
			c.Rel, c.Abs = sumTolerance(m.t(0)), 4*sumTolerance(m.t(0))
		}
	}
	makers["NORMSTEP"] = func(m *maker) {
		for what := range int32(3) {
			m.add(pick(what == 0, "factor", pick(what == 1, "running value", "divided")), 37, 2, out("f32", 37), m.positive("f32", 37),
				m.positive("f32", 37), int64(37), float32(0.25), what)
		}
	}
	makers["LRN"] = func(m *maker) {
		const n, channels = 1200, 12
		var args []any
		if m.is("_grad") {
			args = []any{m.positive(m.t(0), n), m.positive(m.t(0), n), m.positive(m.t(0), n), m.positive("f32", n)}
		} else {
			args = []any{m.normal(m.t(0), n)}
		}
		result := m.t(0)
		if m.is("_norms") {
			result = "f32"
		}
		args = append(append([]any{out(result, n)}, args...), int64(n), int32(channels), int32(3), float32(1), float32(0.1), float32(0.75))
		c := m.add("radius 3", n, 8, args...)
		c.Rel, c.Abs = 4*sumTolerance(m.t(0)), 4*sumTolerance(m.t(0))
	}
	makers["LSTM"] = (*maker).lstm
	makers["GRU"] = (*maker).gru
	draws := func(more ...any) func(m *maker) {
		return func(m *maker) {
			for _, n := range lengths {
				ulp := 0.0
				if (m.program.Name == "normal" || m.program.Name == "truncated") && m.t(0) == "f64" {
					ulp = 16
				}
				low := pick(n == 1, uint64(7), 1<<64-100) // the counter wraps
				c := m.add(length(n), n, ulp, append([]any{out(m.t(0), n), uint64(0x1234567890abcdef), low, uint64(9), n}, more...)...)
				c.Abs = pick(ulp > 0, 1e-15, 0)
			}
		}
	}
	makers["DRAW"], makers["TRUNCATED"], makers["FULL"] = draws(), draws(), draws()
	makers["RANGED"] = draws(uint64(1<<32-50), uint64(1000))
}

// low returns values below those of positive, so that differences have one sign.
func (m *maker) low(n int64) *Buffer {
	return numbers("f32", n, func(int) float64 { return -m.r.Float64() })
}
