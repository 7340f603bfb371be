package twins

import (
	"math"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

// axis is the structure Axis of image.cl.
type axis struct {
	In, Out int32
	Scale   float32
	Centers int32
}

func (a axis) clamp(i float64) int64 {
	return int64(max(0, min(i, float64(a.In-1))))
}

// between returns the two pixels of the input that output pixel o lies between, and their weights.
func (a axis) between(o int64) (pixels [2]int64, weights [2]float32) {
	p := float32(o) * a.Scale
	if a.Centers != 0 {
		p = float32((float32(o)+0.5)*a.Scale) - 0.5
	}
	low := math.Floor(float64(p))
	share := p - float32(low)
	return [2]int64{a.clamp(low), a.clamp(math.Ceil(float64(p)))}, [2]float32{1 - share, share}
}

func (a axis) nearest(o, corners int64) int64 {
	p := float32(o) * a.Scale
	if a.Centers != 0 {
		p = (float32(o) + 0.5) * a.Scale
	}
	if corners != 0 {
		p = float32(math.Round(float64(p)))
	}
	return a.clamp(math.Floor(float64(p)))
}

// eachPixel calls f for each element of images that have n pixels of the given axes together: with
// its place, the number of the image, the row, the column and the channel.
func eachPixel(n, channels, rows, cols int64, f func(e, b, y, x, c int64)) {
	for e := range n {
		q := e / channels
		f(e, q/cols/rows, q/cols%rows, q%cols, e%channels)
	}
}

func init() {
	nearest[uint16]("u16")
	nearest[uint32]("u32")
	nearest[uint64]("u64")
}

func nearest[T uint16 | uint32 | uint64](size string) {
	register("nearest_"+size, func(a *hostgpu.Args) {
		y, x, channels := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1), a.Int(3)
		ay, ax := hostgpu.Struct[axis](a, 5), hostgpu.Struct[axis](a, 6)
		eachPixel(a.Int(2), channels, int64(ay.Out), int64(ax.Out), func(e, b, py, px, c int64) {
			y[e] = x[((b*int64(ay.In)+ay.nearest(py, a.Int(4)))*int64(ax.In)+ax.nearest(px, a.Int(4)))*channels+c]
		})
	})
}

// images registers the kernels of image.cl for a type. The gradients go over the outputs, and the
// devices' over the inputs.
func images[S number](e elem[S, float64]) {
	register("bilinear_"+e.name, func(a *hostgpu.Args) {
		y, x, channels := hostgpu.Slice[float32](a, 0), hostgpu.Slice[S](a, 1), a.Int(3)
		ay, ax := hostgpu.Struct[axis](a, 4), hostgpu.Struct[axis](a, 5)
		eachPixel(a.Int(2), channels, int64(ay.Out), int64(ax.Out), func(i, b, py, px, c int64) {
			ys, down := ay.between(py)
			xs, across := ax.between(px)
			var rows [2]float32
			for k, row := range ys {
				at := func(col int64) float32 { return float32(e.load(x[((b*int64(ay.In)+row)*int64(ax.In)+col)*channels+c])) }
				left, right := at(xs[0]), at(xs[1])
				rows[k] = left + float32((right-left)*across[1])
			}
			y[i] = rows[0] + float32((rows[1]-rows[0])*down[1])
		})
	})
	register("bilinear_"+e.name+"_grad", func(a *hostgpu.Args) {
		y, g, n, channels := hostgpu.Slice[S](a, 0), hostgpu.Slice[float32](a, 1), a.Int(2), a.Int(3)
		ay, ax := hostgpu.Struct[axis](a, 4), hostgpu.Struct[axis](a, 5)
		s := make([]float64, n)
		outs := n / int64(ay.In) / int64(ax.In) * int64(ay.Out) * int64(ax.Out)
		eachPixel(outs, channels, int64(ay.Out), int64(ax.Out), func(i, b, py, px, c int64) {
			ys, down := ay.between(py)
			xs, across := ax.between(px)
			for k, row := range ys {
				for l, col := range xs {
					s[((b*int64(ay.In)+row)*int64(ax.In)+col)*channels+c] += float64(g[i]) * float64(down[k]) * float64(across[l])
				}
			}
		})
		for i, v := range s {
			y[i] = e.store(v)
		}
	})
	register("nearestgrad_"+e.name, func(a *hostgpu.Args) {
		y, g, n, channels := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), a.Int(2), a.Int(3)
		ay, ax := hostgpu.Struct[axis](a, 5), hostgpu.Struct[axis](a, 6)
		s := make([]float64, n)
		outs := n / int64(ay.In) / int64(ax.In) * int64(ay.Out) * int64(ax.Out)
		eachPixel(outs, channels, int64(ay.Out), int64(ax.Out), func(i, b, py, px, c int64) {
			s[((b*int64(ay.In)+ay.nearest(py, a.Int(4)))*int64(ax.In)+ax.nearest(px, a.Int(4)))*channels+c] += e.load(g[i])
		})
		for i, v := range s {
			y[i] = e.store(v)
		}
	})
}
