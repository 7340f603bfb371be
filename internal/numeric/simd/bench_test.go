package simd

import (
	"fmt"
	"testing"
)

func benchUnary(b *testing.B, f func(dst, src []float32)) {
	for _, n := range []int{10, 1 << 10, 1 << 16, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, y := random[float32](n, -4, 4), make([]float32, n)
			b.SetBytes(int64(4 * n))
			for b.Loop() {
				f(y, x)
			}
		})
	}
}

func BenchmarkExp(b *testing.B)     { benchUnary(b, Exp[float32]) }
func BenchmarkLog(b *testing.B)     { benchUnary(b, Log[float32]) }
func BenchmarkTanh(b *testing.B)    { benchUnary(b, Tanh[float32]) }
func BenchmarkSigmoid(b *testing.B) { benchUnary(b, Sigmoid[float32]) }
func BenchmarkRelu(b *testing.B)    { benchUnary(b, Relu[float32]) }
func BenchmarkAdd(b *testing.B) {
	benchUnary(b, func(dst, src []float32) { Add(dst, src, src) })
}

func BenchmarkSum(b *testing.B) {
	for _, n := range []int{10, 1 << 10, 1 << 16, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := random[float32](n, -4, 4)
			b.SetBytes(int64(4 * n))
			for b.Loop() {
				Sum(x)
			}
		})
	}
}

func BenchmarkAdam(b *testing.B) {
	n := 78400
	w, m, v, g := random[float32](n, -1, 1), random[float32](n, 0, 1), random[float32](n, 0, 1), random[float32](n, -1, 1)
	for b.Loop() {
		Adam(w, m, v, g, AdamRates[float32]{0.001, 0.9, 0.999, 1e-8, false})
	}
}

func BenchmarkSoftmax(b *testing.B) {
	for _, shape := range [][2]int{{1024, 1000}, {128, 10}} {
		b.Run(fmt.Sprintf("%dx%d", shape[0], shape[1]), func(b *testing.B) {
			rows, cols := shape[0], shape[1]
			x, y := random[float32](rows*cols, -4, 4), make([]float32, rows*cols)
			largest, sum := make([]float32, rows), make([]float32, rows)
			for b.Loop() {
				SoftmaxRows(y, x, cols, largest, sum)
			}
		})
	}
}

func BenchmarkColumns(b *testing.B) {
	for _, shape := range [][2]int{{1024, 1024}, {128, 512}, {25088, 32}, {128, 10}} {
		rows, cols := shape[0], shape[1]
		x, y, v := random[float32](rows*cols, -4, 4), make([]float32, rows*cols), random[float32](cols, -1, 1)
		b.Run(fmt.Sprintf("Sum/%dx%d", rows, cols), func(b *testing.B) {
			for b.Loop() {
				SumColumns(v, x)
			}
		})
		b.Run(fmt.Sprintf("AddRow/%dx%d", rows, cols), func(b *testing.B) {
			for b.Loop() {
				AddRow(y, x, v)
			}
		})
	}
}
