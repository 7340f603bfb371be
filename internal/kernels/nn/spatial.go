package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/channelwise"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// axes describes the order of the dimensions of images or volumes. The batch is first. The channels
// come next if first is set, and last otherwise.
type axes struct {
	spatial int // number of spatial dimensions
	first   bool
}

func axesOf(attrs opdef.Attrs, spatial int) axes { return axes{spatial, channelsFirst(attrs)} }

// rank returns the number of dimensions.
func (a axes) rank() int { return a.spatial + 2 }

// channel returns the index of the channel dimension.
func (a axes) channel() int {
	if a.first {
		return 1
	}
	return a.spatial + 1
}

// space returns the index of spatial dimension i.
func (a axes) space(i int) int {
	if a.first {
		return i + 2
	}
	return i + 1
}

// shape returns a shape with the dimensions in order.
func (a axes) shape(batch int64, spatial []int64, channels int64) tensor.Shape {
	s := make(tensor.Shape, a.rank())
	s[0], s[a.channel()] = batch, channels
	for i, d := range spatial {
		s[a.space(i)] = d
	}
	return s
}

// pick returns the spatial elements of an attribute that has one element per dimension.
func (a axes) pick(all []int64) []int64 {
	out := membudget.Make[int64](a.spatial)
	for i := range out {
		out[i] = all[a.space(i)]
	}
	return out
}

// channelsLast returns t with channels in the last dimension. The result is a new reference to t,
// or a transposed copy.
func (a axes) channelsLast(t *tensor.Tensor) (tensor.Tensor, error) {
	if !a.first {
		return t.Retain(), nil
	}
	src := strided.Of(t.Shape()).Permute(a.toLast())
	out, err := alloc(t, t.DType(), shapeOf(src))
	if err == nil {
		strided.Copy(&out, strided.Of(out.Shape()), t, src)
	}
	return out, err
}

// write calls f with a channels-last tensor to fill, and then stores it in out. The tensor is out
// itself where possible.
func (a axes) write(out *tensor.Tensor, f func(y *tensor.Tensor) error) error {
	if !a.first {
		return f(out)
	}
	dst := strided.Of(out.Shape()).Permute(a.toLast())
	y, err := alloc(out, out.DType(), shapeOf(dst))
	if err != nil {
		return err
	}
	defer y.Release()
	if err := f(&y); err != nil {
		return err
	}
	strided.Copy(out, dst, &y, strided.Of(y.Shape()))
	return nil
}

// mapLast calls f to compute the elements z of out from the elements x of in, both with channels
// last.
func mapLast[T tensor.Elem](a axes, out, in *tensor.Tensor, f func(z, x []T)) error {
	x, err := a.channelsLast(in)
	if err != nil {
		return err
	}
	defer x.Release()
	return a.write(out, func(z *tensor.Tensor) error {
		f(tensor.Values[T](z), tensor.Values[T](&x))
		return nil
	})
}

// readLast calls f with the elements of two tensors with channels last.
func readLast[T tensor.Elem](a axes, first, second *tensor.Tensor, f func(x, y []T)) error {
	x, err := a.channelsLast(first)
	if err != nil {
		return err
	}
	defer x.Release()
	y, err := a.channelsLast(second)
	if err != nil {
		return err
	}
	defer y.Release()
	f(tensor.Values[T](&x), tensor.Values[T](&y))
	return nil
}

// toLast returns the permutation that moves the channels to the end.
func (a axes) toLast() []int {
	perm := []int{0}
	for i := range a.spatial {
		//sizedmake:ok dimensions
		perm = append(perm, a.space(i))
	}
	return append(perm, a.channel())
}

func shapeOf(v strided.View) tensor.Shape {
	s := make(tensor.Shape, len(v.Dims))
	for i, d := range v.Dims {
		s[i] = int64(d)
	}
	return s
}

// Kinds of padding.
const (
	paddingSame     = "SAME"
	paddingValid    = "VALID"
	paddingExplicit = "EXPLICIT"
)

// window describes how a filter, or a pooling window, moves over a tensor.
type window struct {
	axes
	stride, dilation []int64 // indexed by spatial dimension
	padding          string
	// explicit padding before and after each dimension of the tensor
	explicit []int64
}

// checkPadding checks explicit padding.
func (w *window) checkPadding() error {
	if w.padding != paddingExplicit {
		if len(w.explicit) > 0 {
			return status.InvalidArgumentf("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT")
		}
		return nil
	}
	if len(w.explicit) != 2*w.rank() {
		return status.InvalidArgumentf("explicit_paddings attribute must contain %d values, but got: %d", 2*w.rank(), len(w.explicit))
	}
	for _, v := range w.explicit {
		if v < 0 {
			return status.InvalidArgumentf("All elements of explicit_paddings must be nonnegative")
		}
		if v > math.MaxInt32 { // the padded size could exceed an int64
			return status.InvalidArgumentf("explicit_paddings has value %d out of range for an int32", v)
		}
	}
	c := w.channel()
	if w.explicit[0] != 0 || w.explicit[1] != 0 || w.explicit[2*c] != 0 || w.explicit[2*c+1] != 0 {
		return status.InvalidArgumentf("Nonzero explicit padding in the batch or depth dimensions is not supported")
	}
	return nil
}

// span describes the movement of a window along one dimension.
type span struct {
	in, filter, out  int
	stride, dilation int
	before           int // padding before the first element
}

// span returns the span along spatial dimension i.
func (w *window) span(i int, in, filter int64) (span, error) {
	stride, dilation := w.stride[i], w.dilation[i]
	if stride <= 0 {
		return span{}, status.InvalidArgumentf("Stride must be > 0, but got %d", stride)
	}
	if dilation < 1 {
		return span{}, status.InvalidArgumentf("Dilation rate must be >= 1, but got %d", dilation)
	}
	if max(stride, dilation, filter) > math.MaxInt32 { // their products would exceed an int64
		return span{}, status.InvalidArgumentf("The stride %d, the dilation rate %d or the window size %d is out of range for an int32",
			stride, dilation, filter)
	}
	reach := (filter-1)*dilation + 1
	var out, before int64
	switch w.padding {
	case paddingSame:
		out = (in + stride - 1) / stride
		before = max(0, (out-1)*stride+reach-in) / 2
	case paddingExplicit:
		at := 2 * w.space(i)
		before = w.explicit[at]
		out = (in + before + w.explicit[at+1] - reach + stride) / stride
	default:
		out = (in - reach + stride) / stride
	}
	if out < 0 {
		return span{}, status.InvalidArgumentf(
			"Computed output size would be negative: %d [input_size: %d, effective_filter_size: %d, stride: %d]", out, in, reach, stride)
	}
	return span{int(in), int(filter), int(out), int(stride), int(dilation), int(before)}, nil
}

// motion converts s to the type of the vector code.
func (s *span) motion() channelwise.Span {
	return channelwise.Span{In: s.in, Window: s.filter, Out: s.out, Stride: s.stride, Dilation: s.dilation, Before: s.before}
}

// clip returns the range of window elements that fall into the input at output position o, and the
// input position of the first one.
func (s *span) clip(o int) (lo, hi, at int) {
	m := s.motion()
	return m.Clip(o)
}

// outDim returns the output size along spatial dimension i. Unknown sizes are negative.
func (w *window) outDim(i int, in, filter int64) (int64, error) {
	stride, dilation := w.stride[i], w.dilation[i]
	if stride <= 0 {
		return 0, status.InvalidArgumentf("Stride must be > 0, but got %d", stride)
	}
	if dilation < 1 {
		return 0, status.InvalidArgumentf("Dilation rate must be >= 1, but got %d", dilation)
	}
	if w.padding == paddingSame {
		if in < 0 {
			return shapefn.Unknown, nil
		}
		return (in + stride - 1) / stride, nil
	}
	if w.padding == paddingExplicit {
		at := 2 * w.space(i)
		in = shapefn.Add(in, w.explicit[at]+w.explicit[at+1])
	}
	if dilation > 1 {
		less, err := shapefn.Minus(filter, 1)
		if err != nil {
			return 0, err
		}
		filter = shapefn.Add(shapefn.Times(less, dilation), 1)
	}
	out, err := shapefn.Minus(in, filter)
	if err != nil || out < 0 {
		return shapefn.Unknown, err
	}
	return (out + stride) / stride, nil
}
