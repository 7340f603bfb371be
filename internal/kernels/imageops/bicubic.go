package imageops

import (
	"math"
	"sync"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	attrs := []string{anyPixel, "align_corners: bool = false", "half_pixel_centers: bool = false"}
	kernel.RegisterNew(opdef.Def{
		Name: "ResizeBicubic", Doc: "Resizes images to size using bicubic interpolation of the sixteen nearest pixels.",
		In: []string{"images: T", "size: int32"}, Out: []string{"resized_images: float32"}, Attrs: attrs, Shape: resizeShape,
	}, resize(bicubic, nil))
	kernel.RegisterNew(opdef.Def{
		Name: "ResizeBicubicGrad", Doc: "Computes the gradient of ResizeBicubic.",
		In: []string{"grads: float32", "original_image: T"}, Out: []string{"output: T"},
		Attrs: append([]string{"T: {float32, float64}"}, attrs[1:]...), Shape: secondShape,
	}, resizeGradient(gradientFuncs{add: addBicubic[float32], add64: addBicubic[float64]}))
}

// cubicSteps is the number of positions between two pixels in the table of weights.
const cubicSteps = 1 << 10

// cubicTable returns, for each position between two pixels, the weights of the nearer and the
// farther pixel on one side, alternately (Keys, "Cubic Convolution Interpolation for Digital Image
// Processing", 1981, with parameter a).
func cubicTable(a float64) []float32 {
	table := membudget.Make[float32](2 * (cubicSteps + 1))
	for i := range cubicSteps + 1 {
		x := float32(float64(i) / cubicSteps)
		table[2*i] = float32(((a+2)*float64(x)-(a+3))*float64(x)*float64(x) + 1)
		x++
		table[2*i+1] = float32(((a*float64(x)-5*a)*float64(x)+8*a)*float64(x) - 4*a)
	}
	return table
}

var (
	keysCubic   = sync.OnceValue(func() []float32 { return cubicTable(-0.5) })
	legacyCubic = sync.OnceValue(func() []float32 { return cubicTable(-0.75) })
)

// four is a position among four pixels, with their weights.
type four struct {
	at     [4]int
	weight [4]float32
}

// among returns the four pixels around each output pixel. With half-pixel centers, pixels outside
// of the image have no weight, and the remaining weights are normalized. Otherwise border pixels
// are repeated.
func (a axis) among() []four {
	table := legacyCubic()
	if a.centers {
		table = keysCubic()
	}
	out := membudget.Make[four](a.out)
	for i := range out {
		p := a.at(i)
		low := int(floor(p))
		step := int(math.RoundToEven(float64((p - float32(low)) * cubicSteps)))
		f := four{weight: [4]float32{
			table[2*step+1], table[2*step], table[2*(cubicSteps-step)], table[2*(cubicSteps-step)+1],
		}}
		for k := range f.at {
			f.at[k] = a.clamp(low - 1 + k)
			if a.centers && f.at[k] != low-1+k {
				f.weight[k] = 0
			}
		}
		if a.centers {
			f.normalize()
		}
		out[i] = f
	}
	return out
}

// smallestNormal is the smallest normal float32.
const smallestNormal = 0x1p-126

// normalize scales the weights to the sum 1.
func (f *four) normalize() {
	sum := f.weight[0] + f.weight[1] + f.weight[2] + f.weight[3]
	if float32(math.Abs(float64(sum))) < 1000*smallestNormal {
		return
	}
	for k := range f.weight {
		f.weight[k] *= 1 / sum
	}
}

func (f *four) mix(a, b, c, d float32) float32 {
	return a*f.weight[0] + b*f.weight[1] + c*f.weight[2] + d*f.weight[3]
}

func bicubic(r *resizing) func(y int, in, out []float32) {
	ys, xs, width, n := r.y.among(), r.x.among(), r.inRow(), r.channels
	return func(y int, in, out []float32) {
		py := &ys[y]
		var rows [4][]float32
		for k, at := range py.at {
			rows[k] = in[at*width:][:width]
		}
		for x := range xs {
			px, to := &xs[x], out[x*n:(x+1)*n]
			for c := range to {
				var column [4]float32
				for k, at := range px.at {
					i := at*n + c
					column[k] = py.mix(rows[0][i], rows[1][i], rows[2][i], rows[3][i])
				}
				to[c] = px.mix(column[0], column[1], column[2], column[3])
			}
		}
	}
}

func addBicubic[T float32 | float64](r *resizing, original []T, resized []float32) {
	ys, xs, width, n := r.y.among(), r.x.among(), r.inRow(), r.channels
	for y, py := range ys {
		for x, px := range xs {
			for c, g := range resized[(y*r.x.out+x)*n:][:n] {
				for i, row := range py.at {
					for j, column := range px.at {
						original[row*width+column*n+c] += T(g) * T(py.weight[i]) * T(px.weight[j])
					}
				}
			}
		}
	}
}
