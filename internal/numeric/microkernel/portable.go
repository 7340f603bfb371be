package microkernel

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// The kernels, indexed by level. asm_amd64.go adds those of the vector levels.
var (
	kernels32 = [3]Kernel[float32]{portable[float32]()}
	kernels64 = [3]Kernel[float64]{portable[float64]()}
)

// portable returns kernels in Go, with vectors of four elements and tiles of four rows and one
// vector.
func portable[T simd.Float]() Kernel[T] {
	k := Kernel[T]{Rows: 4, Vecs: 1, Lanes: 4, packColumns: packColumnsGo[T]}
	for rows := 1; rows <= 3; rows++ {
		k.run[rows][1] = eachTile(func(args *Args) { tileGo[T](args, rows) })
	}
	k.run[4][1] = eachTile(tile4Go[T])
	for _, vecs := range []int{1, 2, 3, 4} {
		k.packRows[vecs] = func(dst, src *T, dstRow, srcRow, rows, last int) {
			packRowsGo(dst, src, dstRow, srcRow, rows, 4*(vecs-1)+last, 4*vecs)
		}
	}
	return k
}

// eachTile converts a function that computes the first tile to a micro-kernel.
func eachTile(f func(*Args)) func(args *byte) {
	return func(args *byte) {
		g := *(*Args)(unsafe.Pointer(args))
		for t := range g.Tiles {
			if t > 0 {
				g.A, g.B, g.C = unsafe.Add(g.A, g.TileA), unsafe.Add(g.B, g.TileB), unsafe.Add(g.C, g.TileC)
				if g.Bias != nil {
					g.Bias = unsafe.Add(g.Bias, g.TileBias)
				}
			}
			f(&g)
		}
	}
}

// vectorAt returns the vector at offset bytes from p.
func vectorAt[T simd.Float](p unsafe.Pointer, offset int) *[4]T {
	return (*[4]T)(unsafe.Add(p, offset))
}

func at[T simd.Float](p unsafe.Pointer, offset int) *T { return (*T)(unsafe.Add(p, offset)) }

// tileGo computes a tile of up to three rows.
func tileGo[T simd.Float](g *Args, rows int) {
	var acc [4][4]T
	a, b := 0, 0
	for range g.Outer {
		for range g.K {
			v := vectorAt[T](g.B, b)
			for i := range rows {
				x := *at[T](g.A, a+i*g.RowA)
				for j := range v {
					acc[i][j] += x * v[j]
				}
			}
			a += g.StepA
			b += g.StepB
		}
		a += g.NextA
		b += g.NextB
	}
	storeGo(g, &acc, rows)
}

// tile4Go computes a tile of four rows as two halves of two rows, whose sums stay in registers.
func tile4Go[T simd.Float](g *Args) {
	var acc [4][4]T
	for i := 0; i < 4; i += 2 {
		var c00, c01, c02, c03, c10, c11, c12, c13 T
		a, b := i*g.RowA, 0
		for range g.Outer {
			for range g.K {
				v := vectorAt[T](g.B, b)
				x, y := *at[T](g.A, a), *at[T](g.A, a+g.RowA)
				c00 += x * v[0]
				c01 += x * v[1]
				c02 += x * v[2]
				c03 += x * v[3]
				c10 += y * v[0]
				c11 += y * v[1]
				c12 += y * v[2]
				c13 += y * v[3]
				a += g.StepA
				b += g.StepB
			}
			a += g.NextA
			b += g.NextB
		}
		acc[i] = [4]T{c00, c01, c02, c03}
		acc[i+1] = [4]T{c10, c11, c12, c13}
	}
	storeGo(g, &acc, 4)
}

// storeGo finishes a tile.
func storeGo[T simd.Float](g *Args, acc *[4][4]T, rows int) {
	size := int(unsafe.Sizeof(T(0)))
	for i := range rows {
		for j := range g.Last {
			c, x := at[T](g.C, i*g.RowC+j*size), acc[i][j]
			if g.Flags&Add != 0 {
				x += *c
			}
			if g.Flags&Bias != 0 {
				x += *at[T](g.Bias, j*size)
			}
			if g.Flags&Relu != 0 && x < 0 {
				x = 0
			}
			*c = x
		}
	}
}

func packRowsGo[T simd.Float](dst, src *T, dstRow, srcRow, rows, cols, width int) {
	for r := range rows {
		d := unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(dst), r*dstRow)), width)
		n := copy(d, unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(src), r*srcRow)), cols))
		clear(d[n:])
	}
}

func packColumnsGo[T simd.Float](dst, src *T, dstRow, srcRow, rows, n int) {
	size := int(unsafe.Sizeof(T(0)))
	for j := range n {
		d := vectorAt[T](unsafe.Pointer(dst), j*dstRow)
		*d = [4]T{}
		for i := range rows {
			d[i] = *at[T](unsafe.Pointer(src), i*srcRow+j*size)
		}
	}
}
