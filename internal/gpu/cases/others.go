package cases

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

func init() {
	makers["STRIDED"] = func(m *maker) {
		// A transpose of 4 dimensions that also reverses the second.
		shape := []int64{5, 3, 7, 4}
		to, from := []int64{84, 28, 4, 1}, []int64{1, -20, 60, 5}
		m.add("permuted and reversed", 420, 0, out(m.t(0), 420), m.random(m.t(0), 420), int64(420), int64(0), int64(40), Loop(shape, to, from))
		m.add("a part", 6, 0, out(m.t(0), 30), m.random(m.t(0), 30), int64(6), int64(1), int64(7), Loop([]int64{2, 3}, []int64{10, 1}, []int64{10, 2}))
	}
	makers["ROWS"] = func(m *maker) {
		m.group("rows", [3]int{2, 3, 1}, [3]int{256, 1, 1}, 0, out(m.t(0), 10*700), m.random(m.t(0), 10*1000), int64(10), int64(600), int64(50),
			int64(700), int64(17), int64(990))
	}
	makers["TRANSPOSE"] = func(m *maker) {
		for _, s := range [][3]int64{{1, 1, 1}, {3, 70, 33}, {2, 5, 129}} {
			n := size(s[:])
			m.group(shapeText(s[:]...), [3]int{4, 1, 1}, [3]int{32, 8, 1}, 0, out(m.t(0), n), m.random(m.t(0), n), s[0], s[1], s[2])
		}
	}
	makers["FILL"] = func(m *maker) { m.add("3001 elements", 3001, 0, out(m.t(0), 3001), m.random(m.t(0), 1), int64(3001)) }
	makers["FILLBITS"] = func(m *maker) { m.add("3001 elements", 3001, 0, out(m.t(0), 3001), int64(3001), m.r.Uint64()) }
	makers["FILLPAIR"] = func(m *maker) {
		m.add("3001 elements", 3001, 0, out(m.t(0), 3001), int64(3001), m.r.Uint64()>>2, m.r.Uint64()>>2)
	}
	makers["MIRROR"] = func(m *maker) {
		for edge := range int64(2) {
			shape, in, before := []int64{4, 9, 7}, []int64{4, 5, 4}, []int64{0, 2, 1}
			m.add(pick(edge == 0, "reflect", "symmetric"), size(shape), 0, out(m.t(0), size(shape)), m.random(m.t(0), size(in)), size(shape),
				int32(edge), Loop(shape, []int64{20, 4, 1}, in, before))
		}
	}
	makers["ONEHOT"] = func(m *maker) {
		index := numbers(m.t(1), 35, func(int) float64 { return float64(m.r.IntN(12)) })
		m.add("7 x 10 x 5", 350, 0, out(m.t(0), 350), index, m.random(m.t(0), 1), m.random(m.t(0), 1), int64(350), int64(10), int64(5))
	}
	makers["BAND"] = func(m *maker) {
		for _, b := range [][2]int64{{0, 0}, {-1, 2}, {3, -1}} {
			m.add("band "+shapeText(b[:]...), 4*9*11, 0, out(m.t(0), 396), m.random(m.t(0), 396), int64(396), int64(9), int64(11), b[0], b[1])
		}
	}
	makers["RANGE"] = func(m *maker) {
		start := map[string][2]any{
			"f32": {float32(1.5), float32(0.25)}, "f64": {-2.5, 0.125}, "i32": {int32(7), int32(-3)}, "i64": {int64(1) << 40, int64(5)},
		}[m.t(0)]
		m.add("3001 elements", 3001, 0, out(m.t(0), 3001), int64(3001), start[0], start[1])
	}
	makers["GATHER"] = func(m *maker) {
		m.add("2 x 40 of 30 x 7", 560, 0, out(m.t(0), 560), m.random(m.t(0), 2*30*7), m.indexes(m.t(1), 40, 32), int64(2), int64(30), int64(40), int64(7))
	}
	makers["GATHERB"] = func(m *maker) {
		m.add("3 x 2 x 40 of 30 x 7", 1680, 0, out(m.t(0), 1680), m.random(m.t(0), 6*30*7), m.indexes(m.t(1), 120, 32), int64(3), int64(2),
			int64(30), int64(40), int64(7))
	}
	makers["FLATTEN"] = func(m *maker) {
		m.add("3 coordinates", 700, 0, out("i64", 700), m.indexes(m.t(0), 2100, 8), int64(700), int32(3), Loop([]int64{8, 9, 7}))
	}
	makers["KEYS"] = func(m *maker) {
		m.add("700 of 1024", 1024, 0, out("u64", 1024), m.indexes(m.t(0), 700, 60), int64(700), int64(1024), int64(58))
	}
	makers["SORTBLOCKS"] = func(m *maker) {
		for _, n := range []int64{1, 2, 256, 1024, 4096} {
			b := numbers("u64", n, func(int) float64 { return float64(m.r.IntN(1 << 30)) })
			m.group(shapeText(n), [3]int{3, 1, 1}, [3]int{256, 1, 1}, 0, inout(b), n, int64(2), min(n, 1024), n)
			m.group(shapeText(n)+" in rows", [3]int{3, 1, 1}, [3]int{256, 1, 1}, 0, inout(b), n, int64(2), min(n, 64), min(n, 64))
		}
		for _, row := range []int64{4, 512} {
			n := 5 * row // in the last case more than a block and less than another
			b := numbers("u64", n, func(int) float64 { return float64(m.r.IntN(1 << 30)) })
			m.group("5 rows of "+shapeText(row), [3]int{3, 1, 1}, [3]int{256, 1, 1}, 0, inout(b), n, int64(2), row, row)
		}
	}
	makers["SORTSTEP"] = func(m *maker) {
		b := numbers("u64", 4096, func(int) float64 { return float64(m.r.IntN(1 << 30)) })
		m.add("4096 keys", 2048, 0, inout(b), int64(4096), int64(4096), int64(2048), int64(4096))
	}
	makers["TOPKEYS"] = func(m *maker) {
		const rows, n, padded, k = 3, 50, 64, 7
		x := numbers(m.t(0), rows*n, func(int) float64 { return float64(m.r.IntN(30)) })
		if !m.is("_values") {
			m.add("3 rows of 50", rows*padded, 0, out("u64", rows*padded), x, int64(rows), int64(n), int64(padded))
			return
		}
		keys := numbers("u64", rows*padded, func(int) float64 { return float64(m.r.IntN(1<<20)<<32 | m.r.IntN(n)) })
		m.add("7 of 50", rows*k, 0, out(m.t(0), rows*k), out("i32", rows*k), keys, x, int64(rows), int64(n), int64(padded), int64(k))
	}
	makers["REVERSESEQ"] = func(m *maker) {
		const outer, steps, batch, inner = 2, 9, 4, 3 // the shape of x
		lengths := numbers(m.t(1), batch, func(i int) float64 { return []float64{0, 1, 6, 9}[i] })
		m.add("batch within time", outer*steps*batch*inner, 0, out(m.t(0), outer*steps*batch*inner), m.random(m.t(0), outer*steps*batch*inner), lengths,
			int64(outer*steps*batch*inner), int64(steps), int64(batch*inner), int64(batch), int64(inner))
	}
	makers["COUNTS"] = func(m *maker) {
		m.add("300 entries", 300, 0, inout(numbers("i64", 50, func(int) float64 { return 0 })), m.sorted(300, 55), int64(300), int64(50))
	}
	makers["DIVIDEROWS"] = func(m *maker) {
		for root := range int32(2) {
			count := numbers("i64", 90, func(int) float64 { return float64(m.r.IntN(5)) })
			m.add(pick(root == 0, "mean", "by the root"), 630, float64(root), inout(m.normal(m.t(0), 630)), count, int64(90), int64(7), root)
		}
	}
	makers["SCATTER"] = func(m *maker) {
		small := func(n int64) *Buffer {
			return numbers(m.t(0), n, func(int) float64 { return float64(m.r.IntN(4)) + 1 })
		}
		c := m.add("rows", 2100, 0, inout(small(350)), small(2100), m.sorted(300, 55), int64(300), int64(7), int64(50), int32(1))
		c.Rel = sumTolerance(m.t(0))
		c = m.add("one value", 300, 0, inout(small(50)), small(1), m.sorted(300, 55), int64(300), int64(1), int64(50), int32(0))
		c.Rel = sumTolerance(m.t(0))
	}
	makers["SCATTERS"] = func(m *maker) {
		m.add("rows", 2100, 0, inout(m.random(m.t(0), 350)), m.random(m.t(0), 2100), m.sorted(300, 55), int64(300), int64(7), int64(50), int32(1))
	}
	makers["REDUCE"] = (*maker).reduce
	makers["ARG"] = (*maker).arg
	makers["SCAN"] = (*maker).scan
	makers["MATMUL128"] = func(m *maker) { m.product(128) }
	makers["MATMUL32"] = func(m *maker) { m.product(32) }
	makers["BIAS"] = func(m *maker) {
		m.add("last dimension", 2997, 0, out(m.t(0), 2997), m.values(m.t(0), 2997, 0), m.values(m.t(0), 9, 1), int64(2997), uint32(9), uint32(1))
		m.add("second of 3", 3*4*250, 0, out(m.t(0), 3000), m.values(m.t(0), 3000, 0), m.values(m.t(0), 4, 1), int64(3000), uint32(4), uint32(250))
	}
	makers["SOFTMAX"] = func(m *maker) {
		for logs := range int32(2) {
			for _, s := range [][2]int64{{1, 1}, {7, 10}, {3, 1000}} {
				c := m.group(pick(logs == 1, "log ", "")+shapeText(s[:]...), [3]int{2, 1, 1}, [3]int{256, 1, 1}, 4, out(m.t(0), s[0]*s[1]),
					m.normal(m.t(0), s[0]*s[1]), s[0], s[1], logs)
				c.Rel = 4 * sumTolerance(m.t(0))
			}
		}
	}
	makers["XENT"] = func(m *maker) {
		for _, s := range [][2]int64{{7, 10}, {3, 1000}} {
			n := s[0] * s[1]
			labels := numbers(m.t(0), n, func(int) float64 { return m.r.Float64() / float64(s[1]) })
			c := m.group(shapeText(s[:]...), [3]int{2, 1, 1}, [3]int{256, 1, 1}, 4, out(m.t(0), s[0]), out(m.t(0), n), m.normal(m.t(0), n), labels,
				s[0], s[1], s[1], int64(1), s[1], int64(1))
			c.Rel, c.Abs = 8*sumTolerance(m.t(0)), sumTolerance(m.t(0))
		}
	}
	makers["SPARSEXENT"] = func(m *maker) {
		for _, s := range [][2]int64{{7, 10}, {3, 1000}} {
			n := s[0] * s[1]
			labels := numbers(m.t(1), s[0], func(i int) float64 { return float64(3*i - 1) })
			c := m.group(shapeText(s[:]...), [3]int{2, 1, 1}, [3]int{256, 1, 1}, 4, out(m.t(0), s[0]), out(m.t(0), n), m.normal(m.t(0), n), labels, s[0], s[1])
			c.Rel, c.Abs = 8*sumTolerance(m.t(0)), sumTolerance(m.t(0))
		}
	}
	makers["UPDATE"], makers["DENSE"] = (*maker).update, (*maker).update
}

// sumTolerance is the allowed difference of sums of numbers of one sign.
func sumTolerance(t string) float64 {
	return map[string]float64{"f16": 1e-3, "bf16": 8e-3, "f32": 1e-6, "f64": 1e-14}[t]
}

func (m *maker) normal(t string, n int64) *Buffer {
	return numbers(t, n, func(int) float64 { return m.r.NormFloat64() })
}

// positive returns values of about 1, whose sum is that of their magnitudes.
func (m *maker) positive(t string, n int64) *Buffer {
	return numbers(t, n, func(int) float64 { return pick(isFloat(t), 0.5+m.r.Float64(), float64(m.r.IntN(3))) })
}

// indexes returns n indices from -1 to limit.
func (m *maker) indexes(t string, n int64, limit int) *Buffer {
	return numbers(t, n, func(int) float64 { return float64(m.r.IntN(limit+2) - 1) })
}

// sorted returns the sorted list of n entries with indices below limit.
func (m *maker) sorted(n int64, limit int) *Buffer {
	list := make([]uint64, n)
	for i := range list {
		list[i] = uint64(m.r.IntN(limit))<<32 | uint64(i)
	}
	slices.Sort(list)
	b := &Buffer{Type: "u64", Data: make([]byte, 8*n)}
	for i, v := range list {
		binary.NativeEndian.PutUint64(b.Data[8*i:], v)
	}
	return b
}

func (m *maker) reduce() {
	t := m.t(0)
	count := map[bool]int64{true: 5, false: -1}
	partial := pick(t == "f16" || t == "bf16", "f32", t)
	for _, s := range [][4]int64{{1, 1, 1, 1}, {5, 1000, 1, 1}, {700, 3, 1, 1}, {2, 5000, 1, 7}, {3, 70, 41, 1}, {1, 999, 33, 4}} {
		a, r, b, splits := s[0], s[1], s[2], s[3]
		if (b == 1) != m.is("_rows") {
			continue
		}
		x, y := m.positive(t, a*r*b), out(pick(splits > 1, partial, t), a*splits*b)
		rel := sumTolerance(t) * pick(m.program.Name == "prod", float64(r), 1) // each factor rounds
		c := count[m.program.Name == "sum" && splits == 1]
		if b == 1 {
			m.group(shapeText(s[:]...), [3]int{3, 1, 1}, [3]int{256, 1, 1}, 1, y, x, a, r, int32(splits), c).Rel = rel
			continue
		}
		m.group(shapeText(s[:]...), [3]int{3, 1, 1}, [3]int{32, 8, 1}, 1, y, x, a, r, b, int32(splits), c).Rel = rel
	}
	if m.is("_cols") {
		m.group("one", [3]int{1, 1, 1}, [3]int{32, 8, 1}, 1, out(t, 2), m.positive(t, 2), int64(1), int64(1), int64(2), int32(1), int64(-1))
	}
}

func (m *maker) arg() {
	for _, s := range [][3]int64{{1, 1, 1}, {5, 1000, 1}, {3, 70, 41}} {
		x := numbers(m.t(0), size(s[:]), func(int) float64 { return float64(m.r.IntN(90)) })
		y := out(m.t(1), s[0]*s[2])
		m.group(shapeText(s[:]...), [3]int{3, 1, 1}, [3]int{256, 1, 1}, 0, y, x, s[0], s[1], s[2])
	}
}

func (m *maker) scan() {
	for i, s := range [][3]int64{{1, 1, 1}, {2, 1000, 1}, {3, 70, 41}} {
		x := numbers(m.t(0), size(s[:]), func(int) float64 { return pick(isFloat(m.t(0)), 0.9+m.r.Float64()/5, float64(m.r.IntN(3))) })
		for k := range int32(4) {
			if i < 2 && k > 0 {
				continue
			}
			c := m.group(shapeText(s[:]...), [3]int{3, 1, 1}, [3]int{256, 1, 1}, 1, out(m.t(0), size(s[:])), x, s[0], s[1], s[2], k&1, k>>1)
			// The CPU adds one after the other; of short types the twin rounds less often.
			c.Rel = 70 * sumTolerance(m.t(0))
		}
	}
}

func (m *maker) product(tile int64) {
	t := m.t(0)
	for _, s := range [][4]int64{{1, 1, 1, 1}, {tile + 5, tile - 3, 21, 1}, {33, 40, 300, 3}} {
		for form := range 4 {
			if form > 0 && s[0] == 1 {
				continue
			}
			rows, n, k, splits := s[0], s[1], s[2], s[3]
			ai, ap, bp, bj := k, int64(1), n, int64(1)
			if form&1 != 0 {
				ai, ap = 1, rows
			}
			if form&2 != 0 {
				bp, bj = 1, k
			}
			const batch = 2
			partial := pick(splits > 1 && t != "f64", "f32", t)
			groups := [3]int{int((n + tile - 1) / tile), int((rows + tile - 1) / tile), int(batch * splits)}
			c := m.group(shapeText(append(s[:], int64(form))...), groups, [3]int{16, 16, 1}, 1, out(partial, batch*splits*rows*n),
				m.positive(t, batch*rows*k), m.positive(t, k*n), int32(rows), int32(n), int32(k), ai, ap, bp, bj, rows*k, int64(0), int32(splits))
			c.Rel = sumTolerance(t)
		}
	}
}

// hypers are the numbers of variables and hyperparameters of the optimizers, and the values of the
// latter.
var hypers = map[string]struct {
	vars  int
	hyper []float64
	flags int32
	rows  bool
}{
	"gradientdescent": {1, []float64{0.1}, 1, false}, "momentum": {2, []float64{0.1, 0.9}, 2, true},
	"kerasmomentum": {2, []float64{0.1, 0.9}, 2, true}, "adagrad": {2, []float64{0.1}, 2, true},
	"adagradv2": {2, []float64{0.1, 0.01}, 2, true}, "adadelta": {3, []float64{0.1, 0.9, 0.01}, 1, true},
	"adam":            {3, []float64{0.9, 0.99, 0.1, 0.9, 0.99, 0.01}, 2, false},
	"adamwithamsgrad": {4, []float64{0.9, 0.99, 0.1, 0.9, 0.99, 0.01}, 1, false},
	"adamax":          {3, []float64{0.9, 0.1, 0.9, 0.99, 0.01}, 1, false}, "rmsprop": {3, []float64{0.1, 0.9, 0.5, 0.01}, 1, true},
	"centeredrmsprop": {4, []float64{0.1, 0.9, 0.5, 2}, 1, true}, "addsign": {2, []float64{0.1, 1, 0.5, 0.9}, 1, false},
	"powersign": {2, []float64{0.1, 1, 0.5, 0.9}, 1, false}, "proximalgradientdescent": {1, []float64{0.1, 0.01, 0.02}, 1, true},
	"proximaladagrad": {2, []float64{0.1, 0.01, 0.02}, 1, true}, "ftrl": {3, []float64{0.1, 0.01, 0.02, -0.5}, 2, true},
	"ftrlv2": {3, []float64{0.1, 0.01, 0.02, 0.03, -0.6}, 2, true},
}

func (m *maker) update() {
	t, o := m.t(0), hypers[m.program.Name]
	const rows, width, limit = 40, 7, 20
	n := int64(1001)
	if m.is("_rows") {
		n = limit * width
	}
	for flag := range o.flags {
		var args []any
		for range o.vars {
			args = append(args, inout(m.positive(t, n)))
		}
		var hyper []any
		for _, v := range o.hyper {
			hyper = append(hyper, numbers(t, 1, func(int) float64 { return v }))
		}
		what := pick(flag == 0, "without attribute", "with attribute")
		var c *Case
		if m.is("_rows") {
			args = append(append(args, m.normal(t, rows*width), m.sorted(rows, limit+2)), hyper...)
			c = m.add(what, rows*width, 8, append(args, int64(rows), int64(width), int64(limit), flag)...)
		} else {
			args = append(append(args, m.normal(t, n)), hyper...)
			c = m.add(what, n, 8, append(args, n, flag)...)
		}
		c.Rel, c.Abs = 8*sumTolerance(t), 2*sumTolerance(t)
	}
}

func shapeText(s ...int64) string {
	text := make([]string, len(s))
	for i, d := range s {
		text[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(text, " x ")
}
