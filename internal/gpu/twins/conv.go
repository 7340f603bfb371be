package twins

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

// window is the structure of the same name in conv.cl.
type window struct {
	Batch, Channels                   int32
	In, K, Out, Stride, Dilation, Pad [3]int32
	NCHW, Multiplier                  int32
}

func volume(v [3]int32) int64 { return int64(v[0]) * int64(v[1]) * int64(v[2]) }

// spread returns the coordinates of a position.
func spread(p int64, size [3]int32) (c [3]int64) {
	for d := 2; d >= 0; d-- {
		c[d] = p % int64(size[d])
		p /= int64(size[d])
	}
	return c
}

// input returns the input position for an output position and a kernel position, and whether it is
// inside.
func (w *window) input(o, k [3]int64) (p int64, inside bool) {
	for d := range 3 {
		i := o[d]*int64(w.Stride[d]) + k[d]*int64(w.Dilation[d]) - int64(w.Pad[d])
		if i < 0 || i >= int64(w.In[d]) {
			return 0, false
		}
		p = p*int64(w.In[d]) + i
	}
	return p, true
}

// visit calls f for all pairs of an output position and a kernel position whose input position is
// inside.
func (w *window) visit(f func(out, kernel, in int64)) {
	for o := range volume(w.Out) {
		for k := range volume(w.K) {
			if in, ok := w.input(spread(o, w.Out), spread(k, w.K)); ok {
				f(o, k, in)
			}
		}
	}
}

// place returns the place of an element of images with a number of positions and channels.
func (w *window) place(b, p, positions, c, channels int64) int64 {
	if w.NCHW != 0 {
		return (b*channels+c)*positions + p
	}
	return (b*positions+p)*channels + c
}

// position returns the position in its image of an element of the input.
func (w *window) position(place int64) int32 {
	if w.NCHW != 0 {
		return int32(place % volume(w.In)) //nolint:gosec // the kernels have the same type
	}
	return int32(place / int64(w.Channels) % volume(w.In)) //nolint:gosec // the kernels have the same type
}

func init() {
	im2col[uint16]("u16")
	im2col[uint32]("u32")
	im2col[uint64]("u64")
	register("imageplaces", func(a *hostgpu.Args) {
		y, at := hostgpu.Slice[int64](a, 0), hostgpu.Slice[int64](a, 1)
		for i := range a.Int(2) {
			y[i] = at[i] + i/a.Int(3)*a.Int(4)
		}
	})
}

func im2col[T uint16 | uint32 | uint64](size string) {
	register("im2col_"+size, func(a *hostgpu.Args) {
		y, x, first, w := hostgpu.Slice[T](a, 0), hostgpu.Slice[T](a, 1), a.Int(3), hostgpu.Struct[window](a, 4)
		channels, kernels, outs := int64(w.Channels), volume(w.K), volume(w.Out)
		for e := range a.Int(2) {
			q, c := e/channels, e%channels
			pixel := q/kernels + first
			y[e] = 0
			if in, ok := w.input(spread(pixel%outs, w.Out), spread(q%kernels, w.K)); ok {
				y[e] = x[(pixel/outs*volume(w.In)+in)*channels+c]
			}
		}
	})
}

// convolutions registers the kernels of conv.cl for a type.
func convolutions[S number](e elem[S, float64]) {
	// accumulate sums float64 values into a zeroed buffer and stores them.
	accumulate := func(a *hostgpu.Args, n int64, f func(s []float64)) {
		s := make([]float64, n)
		f(s)
		y := hostgpu.Slice[S](a, 0)
		for i, v := range s {
			y[i] = e.store(v)
		}
	}
	register("col2im_"+e.name, func(a *hostgpu.Args) {
		x, w := hostgpu.Slice[S](a, 1), hostgpu.Struct[window](a, 3)
		channels := int64(w.Channels)
		accumulate(a, a.Int(2), func(s []float64) {
			images := a.Int(2) / volume(w.In) / channels
			w.visit(func(o, k, in int64) {
				for b := range images {
					for c := range channels {
						s[(b*volume(w.In)+in)*channels+c] += e.load(x[((b*volume(w.Out)+o)*volume(w.K)+k)*channels+c])
					}
				}
			})
		})
	})
	// depthwise visits the places of the elements of input, filter and output that belong together.
	depthwise := func(w *window, f func(x, filter, y int64)) {
		channels, wide := int64(w.Channels), int64(w.Channels)*int64(w.Multiplier)
		w.visit(func(o, k, in int64) {
			for b := range int64(w.Batch) {
				for m := range wide {
					f((b*volume(w.In)+in)*channels+m/int64(w.Multiplier), k*wide+m, (b*volume(w.Out)+o)*wide+m)
				}
			}
		})
	}
	for form, pick := range map[string]func(x, filter, y int64) (to, first, second int64){
		"":        func(x, filter, y int64) (to, first, second int64) { return y, x, filter },
		"_input":  func(x, filter, y int64) (to, first, second int64) { return x, y, filter },
		"_filter": func(x, filter, y int64) (to, first, second int64) { return filter, x, y },
	} {
		register("depthwise_"+e.name+form, func(a *hostgpu.Args) {
			p, q, w := hostgpu.Slice[S](a, 1), hostgpu.Slice[S](a, 2), hostgpu.Struct[window](a, 4)
			accumulate(a, a.Int(3), func(s []float64) {
				depthwise(&w, func(x, filter, y int64) {
					to, first, second := pick(x, filter, y)
					s[to] += e.load(p[first]) * e.load(q[second])
				})
			})
		})
	}
	pools(e, accumulate)
}

// pools registers pooling for a type.
func pools[S number](e elem[S, float64], accumulate func(*hostgpu.Args, int64, func([]float64))) {
	// windows calls f for each output element with the places of the elements of its window.
	windows := func(w *window, f func(out int64, ins []int64)) {
		members := make([][]int64, volume(w.Out))
		w.visit(func(o, _, in int64) { members[o] = append(members[o], in) })
		var places []int64
		for b := range int64(w.Batch) {
			for c := range int64(w.Channels) {
				for o, list := range members {
					places = places[:0]
					for _, in := range list {
						places = append(places, w.place(b, in, volume(w.In), c, int64(w.Channels)))
					}
					f(w.place(b, int64(o), volume(w.Out), c, int64(w.Channels)), places)
				}
			}
		}
	}
	// largest returns the place of the first largest element, or -1.
	largest := func(x []S, places []int64) (at int64, v float64) {
		at, v = -1, math.Inf(-1)
		for _, p := range places {
			if w := e.load(x[p]); at < 0 || w > v {
				at, v = p, w
			}
		}
		return at, v
	}
	// Nothing is less than the lowest finite number, and NaN does not count.
	lowest := map[string]float64{"f16": -65504, "bf16": -0x1.fep127, "f32": -math.MaxFloat32, "f64": -math.MaxFloat64}[e.name]
	register("maxpool_"+e.name, func(a *hostgpu.Args) {
		y, x, w := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), hostgpu.Struct[window](a, 3)
		windows(&w, func(out int64, ins []int64) {
			v := lowest
			for _, p := range ins {
				if u := e.load(x[p]); u > v {
					v = u
				}
			}
			y[out] = e.store(v)
		})
	})
	register("maxpool_"+e.name+"_at", func(a *hostgpu.Args) {
		y, at, x, w := hostgpu.Slice[S](a, 0), hostgpu.Slice[int64](a, 1), hostgpu.Slice[S](a, 2), hostgpu.Struct[window](a, 5)
		windows(&w, func(out int64, ins []int64) {
			p, v := largest(x, ins)
			y[out], at[out] = e.store(v), p
			if a.Int(4) == 0 {
				at[out] = p % (volume(w.In) * int64(w.Channels))
			}
		})
	})
	register("maxpool_"+e.name+"_first", func(a *hostgpu.Args) {
		at, x, w := hostgpu.Slice[int32](a, 0), hostgpu.Slice[S](a, 1), hostgpu.Struct[window](a, 3)
		windows(&w, func(out int64, ins []int64) {
			at[out] = -1
			if p, _ := largest(x, ins); p >= 0 {
				at[out] = w.position(p)
			}
		})
	})
	register("maxpool_"+e.name+"_grad", func(a *hostgpu.Args) {
		at, g, w := hostgpu.Slice[int32](a, 1), hostgpu.Slice[S](a, 2), hostgpu.Struct[window](a, 4)
		accumulate(a, a.Int(3), func(s []float64) {
			windows(&w, func(out int64, ins []int64) {
				for _, p := range ins {
					if w.position(p) == at[out] {
						s[p] += e.load(g[out])
					}
				}
			})
		})
	})
	register("maxpool_"+e.name+"_pick", func(a *hostgpu.Args) {
		y, x, most, g := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), hostgpu.Slice[S](a, 2), hostgpu.Slice[S](a, 3)
		w := hostgpu.Struct[window](a, 5)
		windows(&w, func(out int64, ins []int64) {
			y[out] = e.store(0)
			at := slices.IndexFunc(ins, func(p int64) bool { return e.load(x[p]) == e.load(most[out]) })
			if at >= 0 {
				y[out] = g[ins[at]]
			}
		})
	})
	register("avgpool_"+e.name, func(a *hostgpu.Args) {
		x, w := hostgpu.Slice[S](a, 1), hostgpu.Struct[window](a, 3)
		accumulate(a, a.Int(2), func(s []float64) {
			windows(&w, func(out int64, ins []int64) {
				for _, p := range ins {
					s[out] += e.load(x[p]) / float64(len(ins))
				}
			})
		})
	})
	register("avgpool_"+e.name+"_grad", func(a *hostgpu.Args) {
		g, w := hostgpu.Slice[S](a, 1), hostgpu.Struct[window](a, 3)
		accumulate(a, a.Int(2), func(s []float64) {
			windows(&w, func(out int64, ins []int64) {
				for _, p := range ins {
					s[p] += e.load(g[out]) / float64(len(ins))
				}
			})
		})
	})
}
