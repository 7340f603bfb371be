package nn

import (
	"github.com/weft-ml/weft/internal/numeric/conv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// newConvWindow reads the attributes of a two-dimensional convolution or of one of its gradients.
// unsupported is the error code for strides that TensorFlow does not support.
func newConvWindow(attrs opdef.Attrs, unsupported status.Code) (window, error) {
	w := window{axes: axesOf(attrs, 2), padding: attrs.String("padding"), explicit: attrs.Ints("explicit_paddings")}
	strides, dilations := attrs.Ints("strides"), attrs.Ints("dilations")
	if len(dilations) != 4 {
		return w, status.InvalidArgumentf("Sliding window dilations field must specify 4 dimensions")
	}
	if len(strides) != 4 {
		return w, status.InvalidArgumentf("Sliding window strides field must specify 4 dimensions")
	}
	w.stride, w.dilation = w.pick(strides), w.pick(dilations)
	c := w.channel()
	switch {
	case strides[0] != 1 || strides[c] != 1:
		return w, status.Errorf(unsupported,
			"Current implementation does not yet support strides in the batch and depth dimensions.")
	case w.stride[0] <= 0 || w.stride[1] <= 0:
		return w, status.InvalidArgumentf("Row and column strides should be larger than 0.")
	case dilations[0] != 1 || dilations[c] != 1:
		return w, status.Errorf(unsupported,
			"Current implementation does not yet support dilations in the batch and depth dimensions.")
	case w.dilation[0] <= 0 || w.dilation[1] <= 0:
		return w, status.InvalidArgumentf("Dilated rates should be larger than 0.")
	}
	return w, w.checkPadding()
}

// size checks the shapes of an input and of a filter [rows, columns, channels per group, outputs].
// It returns the convolution and the number of channel groups.
func (w *window) size(in, filter tensor.Shape) (s conv.Shape, groups int, err error) {
	switch {
	case len(in) != 4:
		return s, 0, status.InvalidArgumentf("convolution input must be 4-dimensional: %v", in)
	case len(filter) != 4:
		return s, 0, status.InvalidArgumentf("convolution filter must be 4-dimensional: %v", filter)
	case filter[2] == 0:
		return s, 0, status.InvalidArgumentf("filter depth must be stricly positive, got %d", filter[2])
	case in[w.channel()]%filter[2] != 0:
		return s, 0, status.InvalidArgumentf("input depth must be evenly divisible by filter depth: %d vs %d", in[w.channel()], filter[2])
	}
	rows, err := w.span(0, in[w.space(0)], filter[0])
	if err != nil {
		return s, 0, err
	}
	cols, err := w.span(1, in[w.space(1)], filter[1])
	if err != nil {
		return s, 0, err
	}
	s = convShape(int(in[0]), int(in[w.channel()]), int(filter[3]), rows, cols)
	s.Groups = int(in[w.channel()] / filter[2])
	if s.Groups > 0 && s.OutC%s.Groups != 0 {
		return s, 0, status.InvalidArgumentf("output depth must be evenly divisible by number of groups: %d vs %d", filter[3], s.Groups)
	}
	return s, s.Groups, nil
}

func convShape(batch, inC, outC int, rows, cols span) conv.Shape {
	return conv.Shape{
		Batch: batch, InH: rows.in, InW: cols.in, InC: inC, FilterH: rows.filter, FilterW: cols.filter,
		OutH: rows.out, OutW: cols.out, OutC: outC, StrideH: rows.stride, StrideW: cols.stride,
		DilationH: rows.dilation, DilationW: cols.dilation, PadTop: rows.before, PadLeft: cols.before, Groups: 1,
	}
}

// gradSize is like size for gradients: it also checks the shape of the output gradient. op is the
// name of the operation in errors.
func (w *window) gradSize(op string, in, filter, out tensor.Shape) (s conv.Shape, err error) {
	spans, err := w.checkGradShapes(op, in, filter, out)
	if err != nil {
		return s, err
	}
	c := in[w.channel()]
	s = convShape(int(in[0]), int(c), int(filter[3]), spans[0], spans[1])
	s.Groups = int(c / filter[2])
	if s.Groups > 0 && s.OutC%s.Groups != 0 {
		return s, status.InvalidArgumentf("%s: output depth must be evenly divisible by number of groups: %d vs %d", op, s.OutC, s.Groups)
	}
	return s, nil
}

// checkGradShapes checks the shapes of the inputs of a convolution gradient and returns the span of
// the filter along each spatial dimension.
func (w *window) checkGradShapes(op string, in, filter, out tensor.Shape) ([]span, error) {
	rank, c := w.rank(), w.channel()
	for _, t := range []struct {
		name  string
		shape tensor.Shape
	}{{"input", in}, {"filter", filter}, {"out_backprop", out}} {
		if len(t.shape) != rank {
			return nil, status.InvalidArgumentf("%s: %s must be %d-dimensional", op, t.name, rank)
		}
	}
	switch {
	case in[0] != out[0]:
		return nil, status.InvalidArgumentf("%s: input and out_backprop must have the same batch size. Input batch: %d, outbackprop batch: %d, batch_dim: 0",
			op, in[0], out[0])
	case filter[rank-2] <= 0:
		return nil, status.InvalidArgumentf("%s: filter depth must be strictly greated than zero", op)
	case in[c]%filter[rank-2] != 0:
		return nil, status.InvalidArgumentf("%s: input depth must be evenly divisible by filter depth", op)
	case filter[rank-1] != out[c]:
		return nil, status.InvalidArgumentf("%s: filter and out_backprop must have the same out_depth", op)
	}
	spans := membudget.Make[span](w.spatial)
	for i := range spans {
		d := w.space(i)
		s, err := w.span(i, in[d], filter[i])
		if err != nil {
			return nil, err
		}
		if int64(s.out) != out[d] {
			return nil, status.InvalidArgumentf("%s: Size of out_backprop doesn't match computed: actual = %d, computed = %d spatial_dim: %d input: %d filter: %d output: %d stride: %d dilation: %d",
				op, out[d], s.out, d, in[d], filter[i], out[d], s.stride, s.dilation)
		}
		spans[i] = s
	}
	return spans, nil
}
