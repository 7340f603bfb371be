package twins

import (
	"encoding/binary"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

// wide is an element of 16 bytes.
type wide struct{ lo, hi uint64 }

func init() {
	copies[uint8]("u8")
	copies[uint16]("u16")
	copies[uint32]("u32")
	copies[uint64]("u64")
	copies[wide]("c128")
	fillBits("u8", func(v uint64) uint8 { return uint8(v) })
	fillBits("u16", func(v uint64) uint16 { return uint16(v) })
	fillBits("u32", func(v uint64) uint32 { return uint32(v) })
	fillBits("u64", func(v uint64) uint64 { return v })
	register("fillbits_c128", func(a *hostgpu.Args) {
		y := hostgpu.Slice[wide](a, 0)
		for i := range a.Int(1) {
			y[i] = wide{uint64(a.Int(2)), uint64(a.Int(3))}
		}
	})
	register("range_f32", func(a *hostgpu.Args) {
		y := hostgpu.Slice[float32](a, 0)
		for i := range a.Int(1) {
			y[i] = a.Float32(2) + float32(i)*a.Float32(3)
		}
	})
	register("range_f64", func(a *hostgpu.Args) {
		y := hostgpu.Slice[float64](a, 0)
		for i := range a.Int(1) {
			y[i] = a.Float64(2) + float64(i)*a.Float64(3)
		}
	})
	register("range_i32", func(a *hostgpu.Args) {
		y := hostgpu.Slice[int32](a, 0)
		for i := range a.Int(1) {
			y[i] = int32(a.Int(2) + i*a.Int(3))
		}
	})
	register("range_i64", func(a *hostgpu.Args) {
		y := hostgpu.Slice[int64](a, 0)
		for i := range a.Int(1) {
			y[i] = a.Int(2) + i*a.Int(3)
		}
	})
}

func fillBits[T any](size string, f func(uint64) T) {
	register("fillbits_"+size, func(a *hostgpu.Args) {
		y, v := hostgpu.Slice[T](a, 0), f(uint64(a.Int(2)))
		for i := range a.Int(1) {
			y[i] = v
		}
	})
}

// copies registers the kernels of copy.cl and index.cl that move elements of a size.
func copies[T any](size string) {
	register("strided_"+size, func(a *hostgpu.Args) {
		y, x, l := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1), hostgpu.Struct[loop](a, 5)
		for i := range a.Int(2) {
			y[a.Int(3)+l.offset(0, i)] = x[a.Int(4)+l.offset(1, i)]
		}
	})
	register("rows_"+size, func(a *hostgpu.Args) {
		y, x, n := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1), a.Int(3)
		for r := range a.Int(2) {
			to, from := a.Int(4)+r*a.Int(5), a.Int(6)+r*a.Int(7)
			copy(y[to:to+n], x[from:from+n])
		}
	})
	register("transpose_"+size, func(a *hostgpu.Args) {
		y, x, rows, cols := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1), a.Int(3), a.Int(4)
		for b := range a.Int(2) {
			for r := range rows {
				for c := range cols {
					y[(b*cols+c)*rows+r] = x[(b*rows+r)*cols+c]
				}
			}
		}
	})
	register("fill_"+size, func(a *hostgpu.Args) {
		y, x := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1)
		for i := range a.Int(2) {
			y[i] = x[0]
		}
	})
	register("mirror_"+size, mirror[T])
	for _, index := range []string{"u8", "i32", "i64"} {
		register("onehot_"+size+"_"+index, func(a *hostgpu.Args) { oneHot[T](a, index) })
		register("reverseseq_"+size+"_"+index, func(a *hostgpu.Args) {
			y, x, length := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1), indices(a, 2, index)
			n, steps, stride, batch, step := a.Int(3), a.Int(4), a.Int(5), a.Int(6), a.Int(7)
			copy(y[:n], x)
			for i := range n {
				if t, l := i/stride%steps, min(steps, length(i/step%batch)); t < l {
					y[i] = x[i-t*stride+(l-1-t)*stride]
				}
			}
		})
	}
	register("band_"+size, band[T])
	for _, index := range []string{"i32", "i64"} {
		register("gather_"+size+"_"+index, func(a *hostgpu.Args) {
			gather[T](a, index, 1, a.Int(3), a.Int(4), a.Int(5), a.Int(6))
		})
		register("gatherb_"+size+"_"+index, func(a *hostgpu.Args) {
			gather[T](a, index, a.Int(3), a.Int(4), a.Int(5), a.Int(6), a.Int(7))
		})
	}
	register("scatter_"+size, func(a *hostgpu.Args) {
		y, x, width, sx := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1), a.Int(4), a.Int(6)
		for _, s := range hostgpu.Slice[uint64](a, 2)[:a.Int(3)] {
			if key := int64(s >> 32); key < a.Int(5) {
				for c := range width {
					y[key*width+c] = x[(int64(uint32(s))*width+c)*sx]
				}
			}
		}
	})
}

// indices returns the elements of an argument of type u8, i32 or i64.
func indices(a *hostgpu.Args, i int, name string) func(int64) int64 {
	b := a.Bytes(i)
	switch name {
	case "u8":
		return func(k int64) int64 { return int64(b[k]) }
	case "i32":
		return func(k int64) int64 { return int64(int32(binary.NativeEndian.Uint32(b[4*k:]))) }
	default:
		return func(k int64) int64 { return int64(binary.NativeEndian.Uint64(b[8*k:])) }
	}
}

func mirror[T any](a *hostgpu.Args) {
	y, x, edge, l := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1), a.Int(3), hostgpu.Struct[loop](a, 4)
	for i := range a.Int(2) {
		from, r := int64(0), i
		for d := int(l.Rank) - 1; d >= 0; d-- {
			n, size := int64(l.Size[d]), l.Stride[1][d]
			c := r%n - l.Stride[2][d]
			r /= n
			if c < 0 {
				c = -c - edge
			}
			if c >= size {
				c = 2*size - 2 - c + edge
			}
			from += c * l.Stride[0][d]
		}
		y[i] = x[from]
	}
}

func oneHot[T any](a *hostgpu.Args, index string) {
	y, at := hostgpu.Slice[T](a, 0), indices(a, 1, index)
	on, off, depth, inner := hostgpu.Slice[T](a, 2)[0], hostgpu.Slice[T](a, 3)[0], a.Int(5), a.Int(6)
	for i := range a.Int(4) {
		q := i / inner
		if y[i] = off; at(q/depth*inner+i%inner) == q%depth {
			y[i] = on
		}
	}
}

func band[T any](a *hostgpu.Args) {
	y, x, rows, cols, lower, upper := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1), a.Int(3), a.Int(4), a.Int(5), a.Int(6)
	for i := range a.Int(2) {
		c, r := i%cols, i/cols%rows
		var v T
		if (lower < 0 || r-c <= lower) && (upper < 0 || c-r <= upper) {
			v = x[i]
		}
		y[i] = v
	}
}

func gather[T any](a *hostgpu.Args, index string, batch, outer, limit, count, width int64) {
	y, x, at := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1), indices(a, 2, index)
	for e := range batch * outer * count * width {
		q, c := e/width, e%width
		bo, i := q/count, q%count
		var v T
		if row := at(bo/outer*count + i); row >= 0 && row < limit {
			v = x[(bo*limit+row)*width+c]
		}
		y[e] = v
	}
}
