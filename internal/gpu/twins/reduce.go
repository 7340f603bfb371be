package twins

import (
	"math"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

// reductions registers the reductions of reduce.cl for a type.
func reductions[S, C number](e elem[S, C]) {
	zero := func(*elem[S, C]) C { return 0 }
	reduction(e, "sum", zero, same[C], func(p, q C) C { return p + q })
	reduction(e, "prod", func(*elem[S, C]) C { return 1 }, same[C], func(p, q C) C { return p * q })
	reduction(e, "max", func(e *elem[S, C]) C { return e.lowest }, same[C], func(p, q C) C {
		if q != q || q > p {
			return q
		}
		return p
	})
	reduction(e, "min", func(e *elem[S, C]) C { return e.highest }, same[C], func(p, q C) C {
		if q != q || q < p {
			return q
		}
		return p
	})
}

func floatReductions[S number](e elem[S, float64]) {
	reduction(e, "sumsquares", func(*elem[S, float64]) float64 { return 0 }, func(v float64) float64 { return v * v },
		func(p, q float64) float64 { return p + q })
}

func reduction[S, C number](e elem[S, C], name string, start func(*elem[S, C]) C, term func(C) C, combine func(p, q C) C) {
	run := func(a *hostgpu.Args, rows, r, b int64, splits, count int64) {
		x, y := hostgpu.Slice[S](a, 1), a.Bytes(0)
		chunk := (r + splits - 1) / splits
		for i := range rows * splits {
			row, lo := i/splits, i%splits*chunk
			for c := range b {
				s := start(&e)
				for k := lo; k < min(lo+chunk, r); k++ {
					s = combine(s, term(e.load(x[(row*r+k)*b+c])))
				}
				if splits > 1 {
					storePartial(e, y, int(i*b+c), s)
					continue
				}
				if count > 0 || count == 0 && e.float {
					s /= C(count)
				}
				storeAt(y, int(i*b+c), e.store(s))
			}
		}
	}
	register(name+"_"+e.name+"_rows", func(a *hostgpu.Args) { run(a, a.Int(2), a.Int(3), 1, a.Int(4), a.Int(5)) })
	register(name+"_"+e.name+"_cols", func(a *hostgpu.Args) { run(a, a.Int(2), a.Int(3), a.Int(4), a.Int(5), a.Int(6)) })
}

// storeAt stores element i of memory.
func storeAt[T number](mem []byte, i int, v T) {
	unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/int(unsafe.Sizeof(v)))[i] = v
}

// storePartial stores a partial result, which is float32 for floating-point types of less than 64
// bits.
func storePartial[S, C number](e elem[S, C], mem []byte, i int, v C) {
	if e.float && e.name != "f64" {
		storeAt(mem, i, math.Float32bits(float32(v)))
		return
	}
	storeAt(mem, i, v)
}

// positions registers the positions of extremes for a type.
func positions[S, C number](e elem[S, C]) {
	position(e, "argmax", func(p, q C) bool { return q > p })
	position(e, "argmin", func(p, q C) bool { return q < p })
}

func position[S, C number](e elem[S, C], name string, better func(p, q C) bool) {
	run := func(a *hostgpu.Args, store func(y []byte, i int, at int64)) {
		y, x, r, b := a.Bytes(0), hostgpu.Slice[S](a, 1), a.Int(3), a.Int(4)
		for g := range a.Int(2) * b {
			base, at := g/b*r*b+g%b, int64(0)
			p := e.load(x[base])
			for k := int64(1); k < r; k++ {
				if q := e.load(x[base+k*b]); better(p, q) || p != p && q == q {
					p, at = q, k
				}
			}
			store(y, int(g), at)
		}
	}
	for _, form := range []string{"_rows", "_cols"} {
		register(name+"_"+e.name+"_i32"+form, func(a *hostgpu.Args) {
			run(a, func(y []byte, i int, at int64) { storeAt(y, i, int32(at)) })
		})
		register(name+"_"+e.name+"_i64"+form, func(a *hostgpu.Args) { run(a, func(y []byte, i int, at int64) { storeAt(y, i, at) }) })
	}
}

func scans[S, C number](e elem[S, C]) {
	scan(e, "cumsum", 0, func(p, q C) C { return p + q })
	scan(e, "cumprod", 1, func(p, q C) C { return p * q })
}

func scan[S, C number](e elem[S, C], name string, start C, combine func(p, q C) C) {
	run := func(a *hostgpu.Args) {
		y, x := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1)
		r, b, exclusive, reverse := a.Int(3), a.Int(4), a.Int(5) != 0, a.Int(6) != 0
		for g := range a.Int(2) * b {
			base, p := g/b*r*b+g%b, start
			for k := range r {
				at := base + k*b
				if reverse {
					at = base + (r-1-k)*b
				}
				next := combine(p, e.load(x[at]))
				if exclusive {
					y[at] = e.store(p)
				} else {
					y[at] = e.store(next)
				}
				p = next
			}
		}
	}
	register(name+"_"+e.name+"_rows", run)
	register(name+"_"+e.name+"_cols", run)
}
