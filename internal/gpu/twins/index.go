package twins

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

func init() {
	for _, index := range []string{"i32", "i64"} {
		register("keys_"+index, func(a *hostgpu.Args) {
			y, at, n, limit := hostgpu.Slice[uint64](a, 0), indices(a, 1, index), a.Int(2), a.Int(4)
			for i := range a.Int(3) {
				y[i] = math.MaxUint64
				if i < n {
					v := at(i)
					if v < 0 || v >= limit {
						v = limit
					}
					y[i] = uint64(v)<<32 | uint64(i)
				}
			}
		})
		register("flatten_"+index, func(a *hostgpu.Args) {
			y, at, depth, l := hostgpu.Slice[int64](a, 0), indices(a, 1, index), a.Int(3), hostgpu.Struct[loop](a, 4)
			for i := range a.Int(2) {
				y[i] = 0
				good := true
				for d := range depth {
					v := at(i*depth + d)
					good = good && v >= 0 && v < int64(l.Size[d])
					y[i] = y[i]*int64(l.Size[d]) + v
				}
				if !good {
					y[i] = -1
				}
			}
		})
	}
	register("sortblocks", func(a *hostgpu.Args) {
		y, n := hostgpu.Slice[uint64](a, 0), a.Int(1)
		block := min(n, 1024)
		for stage := a.Int(2); stage <= a.Int(3); stage *= 2 {
			for d := min(stage/2, block/2); d > 0; d /= 2 {
				exchange(y[:n], stage, d, a.Int(4))
			}
		}
	})
	register("sortstep", func(a *hostgpu.Args) {
		exchange(hostgpu.Slice[uint64](a, 0)[:a.Int(1)], a.Int(2), a.Int(3), a.Int(4))
	})
	register("counts", func(a *hostgpu.Args) {
		y := hostgpu.Slice[int64](a, 0)
		counted := map[int64]int64{}
		for _, s := range hostgpu.Slice[uint64](a, 1)[:a.Int(2)] {
			if key := int64(s >> 32); key < a.Int(3) {
				counted[key]++
				y[key] = counted[key]
			}
		}
	})
}

// exchange is a step of the bitonic network over rows.
func exchange(y []uint64, stage, d, row int64) {
	for e := range int64(len(y) / 2) {
		i := e/d*2*d + e%d
		if up := i&(row-1)&stage == 0; (y[i] > y[i+d]) == up {
			y[i], y[i+d] = y[i+d], y[i]
		}
	}
}

// topKeys registers the kernels that find the largest elements of rows, for a type of at most 32
// bits.
func topKeys[S, C number](e elem[S, C]) {
	order := func(v S) uint32 {
		c := e.load(v)
		switch {
		case e.float:
			b := math.Float32bits(float32(c) + 0)
			return b ^ (uint32(int32(b)>>31) | 1<<31) //nolint:gosec // the sign bit in all places
		case e.lowest < 0:
			return uint32(int64(c)) ^ 1<<31
		default:
			return uint32(int64(c))
		}
	}
	register("topkeys_"+e.name, func(a *hostgpu.Args) {
		y, x, n, padded := hostgpu.Slice[uint64](a, 0), hostgpu.Slice[S](a, 1), a.Int(3), a.Int(4)
		for r := range a.Int(2) {
			for c := range padded {
				y[r*padded+c] = math.MaxUint64
				if c < n {
					y[r*padded+c] = uint64(^order(x[r*n+c]))<<32 | uint64(c)
				}
			}
		}
	})
	register("topkeys_"+e.name+"_values", func(a *hostgpu.Args) {
		y, at := hostgpu.Slice[S](a, 0), hostgpu.Slice[int32](a, 1)
		keys, x := hostgpu.Slice[uint64](a, 2), hostgpu.Slice[S](a, 3)
		n, padded, k := a.Int(5), a.Int(6), a.Int(7)
		for i := range a.Int(4) * k {
			c := int32(uint32(keys[i/k*padded+i%k])) //nolint:gosec // below n
			y[i], at[i] = x[i/k*n+int64(c)], c
		}
	})
}

// scatters registers the kernels that combine rows into the rows that a sorted list names.
func scatters[S, C number](e elem[S, C]) {
	scatter(e, "scatteradd", func(p, q C) C { return p + q })
	scatter(e, "scattersub", func(p, q C) C { return p - q })
	scatter(e, "scattermul", func(p, q C) C { return p * q })
	scatter(e, "scatterdiv", func(p, q C) C {
		if q == 0 && !e.float {
			return minusOne[C]()
		}
		return p / q
	})
	scatter(e, "scattermin", func(p, q C) C {
		if q < p {
			return q
		}
		return p
	})
	scatter(e, "scattermax", func(p, q C) C {
		if q > p {
			return q
		}
		return p
	})
}

func scatter[S, C number](e elem[S, C], name string, combine func(p, q C) C) {
	register(name+"_"+e.name, func(a *hostgpu.Args) {
		y, x, width, limit, sx := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), a.Int(4), a.Int(5), a.Int(6)
		runs(hostgpu.Slice[uint64](a, 2)[:a.Int(3)], limit, func(key int64, run []uint64) {
			for c := range width {
				at := &y[key*width+c]
				for _, s := range run {
					*at = e.store(combine(e.load(*at), e.load(x[(int64(uint32(s))*width+c)*sx])))
				}
			}
		})
	})
}

// runs calls f for the entries of each index below limit.
func runs(sorted []uint64, limit int64, f func(key int64, run []uint64)) {
	for len(sorted) > 0 {
		key := sorted[0] >> 32
		n := slices.IndexFunc(sorted, func(s uint64) bool { return s>>32 != key })
		if n < 0 {
			n = len(sorted)
		}
		if int64(key) < limit {
			f(int64(key), sorted[:n])
		}
		sorted = sorted[n:]
	}
}

func floatRows[S number](e elem[S, float64]) {
	register("dividerows_"+e.name, func(a *hostgpu.Args) {
		y, count, width := hostgpu.Slice[S](a, 0), hostgpu.Slice[int64](a, 1), a.Int(3)
		for i := range a.Int(2) * width {
			n := float64(count[i/width])
			if n <= 0 {
				continue
			}
			if a.Int(4) != 0 {
				n = math.Sqrt(n)
			}
			y[i] = e.store(e.load(y[i]) / n)
		}
	})
}

// minusOne is -1, or the largest number of an unsigned type.
func minusOne[C number]() C {
	var zero C
	return zero - 1
}
