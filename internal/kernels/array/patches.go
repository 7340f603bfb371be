package array

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "ExtractImagePatches", Doc: "Extracts patches of images into the depth dimension of the output.",
		In:  []string{"images: T"},
		Out: []string{"patches: T"},
		Attrs: []string{
			"ksizes: list(int) >= 4",
			"strides: list(int) >= 4",
			"rates: list(int) >= 4",
			"T: {bfloat16, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, bool}",
			"padding: {'SAME', 'VALID'}",
		},
		Shape: func(c *opdef.ShapeContext) error { return patchesShape(c, 2) },
	}, newPatches)
	kernel.RegisterNew(opdef.Def{
		Name: "ExtractVolumePatches", Doc: "Extracts patches of volumes into the depth dimension of the output.",
		In:  []string{"input: T"},
		Out: []string{"patches: T"},
		Attrs: []string{
			"ksizes: list(int) >= 5",
			"strides: list(int) >= 5",
			"T: realnumbertype",
			"padding: {'SAME', 'VALID'}",
		},
		Shape: func(c *opdef.ShapeContext) error { return patchesShape(c, 3) },
	}, newPatches)
}

// window is one dimension of a patch.
type window struct{ size, stride, rate int }

// extent returns the number of input positions that the window spans.
func (w window) extent() int { return w.size + (w.size-1)*(w.rate-1) }

// patches returns the number of patches in a dimension of n elements and the distance by which the
// first patch begins before the input. The distance is negative if centered patches skip elements
// at the start.
func (w window) patches(n int, padding string) (count, before int, err error) {
	if padding == "VALID" {
		count = (n - w.extent() + w.stride) / w.stride
	} else {
		count = (n + w.stride - 1) / w.stride
		before = ((count-1)*w.stride + w.extent() - n) / 2
	}
	if count < 0 {
		return 0, 0, status.InvalidArgumentf(
			"Computed output size would be negative: %d [input_size: %d, effective_filter_size: %d, stride: %d]",
			count, n, w.extent(), w.stride)
	}
	return count, before, nil
}

func windows(op string, attrs opdef.Attrs) ([]window, error) {
	sizes, strides, rates := attrs.Ints("ksizes"), attrs.Ints("strides"), attrs.Ints("rates")
	for _, a := range []struct {
		name string
		vals []int64
	}{{"ksizes", sizes}, {"stride", strides}, {"rates", rates}} {
		want := 4
		if op == "ExtractVolumePatches" {
			want = 5
		}
		if a.vals != nil && len(a.vals) != want {
			return nil, status.InvalidArgumentf("%s requires the %s attribute to contain %d values, but got: %d", op, a.name, want, len(a.vals))
		}
		for _, v := range a.vals {
			if v > math.MaxInt32 { // the sizes of windows would exceed an int
				return nil, status.InvalidArgumentf("Attr %s has value %d out of range for an int32", a.name, v)
			}
		}
	}
	out := membudget.Make[window](len(sizes) - 2)
	for i := range out {
		out[i] = window{size: int(sizes[i+1]), stride: int(strides[i+1]), rate: 1}
		if rates != nil {
			out[i].rate = int(rates[i+1])
		}
		if out[i].size < 1 || out[i].stride < 1 || out[i].rate < 1 {
			return nil, status.InvalidArgumentf("%s needs sizes, strides and rates of at least 1", op)
		}
	}
	return out, nil
}

func patchesShape(c *opdef.ShapeContext, spatial int) error {
	in, err := opdef.WithRank(c.In[0], spatial+2)
	if err != nil {
		return err
	}
	ws, err := windows(c.Op.Name, c.Attrs)
	if err != nil {
		return err
	}
	dims := in.Dims()
	known := true
	for i, w := range ws {
		dims[spatial+1] = shapefn.Times(dims[spatial+1], int64(w.size))
		known = known && dims[i+1] >= 0
	}
	for i, w := range ws {
		if !known {
			dims[i+1] = shapefn.Unknown
			continue
		}
		n, _, err := w.patches(int(dims[i+1]), c.Attrs.String("padding"))
		if err != nil {
			return err
		}
		dims[i+1] = int64(n)
	}
	c.Out[0] = shapefn.Of(dims...)
	return nil
}

func newPatches(c *kernel.Construction) (kernel.Kernel, error) {
	ws, err := windows(c.Op.Name, c.Attrs)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"ksizes", "strides", "rates"} {
		if a := c.Attrs.Ints(name); a != nil && (a[0] != 1 || a[len(a)-1] != 1) {
			return nil, status.Unimplementedf("Only support %s across space.", name)
		}
	}
	padding := c.Attrs.String("padding")
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		if in.Rank() != len(ws)+2 {
			return status.InvalidArgumentf("input must be %d-dimensional%v", len(ws)+2, in.Shape())
		}
		shape := append(tensor.Shape{}, in.Shape()...)
		before := membudget.Make[int](len(ws))
		last := len(shape) - 1
		for i, w := range ws {
			n, b, err := w.patches(in.Dim(i+1), padding)
			if err != nil {
				return err
			}
			if len(ws) == 2 { // the first patch of an image never begins after its first element
				b = max(0, b)
			}
			shape[i+1], before[i] = int64(n), b
			if shape[last] > math.MaxInt64/int64(w.size) {
				return status.InvalidArgumentf("a patch of %v is too large", in.Shape())
			}
			shape[last] *= int64(w.size)
		}
		out, err := ctx.AllocateZeros(0, shape)
		if err != nil || out.NumElements() == 0 {
			return err
		}
		p := patches{out: out, in: in, windows: ws, before: before}
		dv := strided.Of(shape)
		dv.Slice(last, 0, in.Dim(last), 1)
		p.copy(dv, strided.Of(in.Shape()), 0, 0)
		return nil
	}), nil
}

// patches extracts patches with one strided copy per position in the window: it copies all input
// elements that are at that position of some patch.
type patches struct {
	out, in *tensor.Tensor
	windows []window
	before  []int
}

// copy iterates over the window positions of dimension i. channel is the linear index of the
// positions in the dimensions before.
func (p *patches) copy(dv, sv strided.View, i, channel int) {
	if i == len(p.windows) {
		dv.Offset += channel * p.in.Dim(p.in.Rank()-1)
		strided.Copy(p.out, dv, p.in, sv)
		return
	}
	w, axis := p.windows[i], i+1
	n, size := dv.Dims[axis], sv.Dims[axis]
	for k := range w.size {
		// Patch t reads source element t*stride + k*rate - before, which must be in [0, size).
		at := k*w.rate - p.before[i]
		lo := 0
		if at < 0 {
			lo = (-at + w.stride - 1) / w.stride
		}
		hi := min(n, (size-1-at)/w.stride+1)
		if size-1-at < 0 || hi <= lo {
			continue
		}
		d, s := dv.Clone(), sv.Clone()
		d.Slice(axis, lo, hi-lo, 1)
		s.Slice(axis, lo*w.stride+at, hi-lo, w.stride)
		p.copy(d, s, i+1, channel*w.size+k)
	}
}
