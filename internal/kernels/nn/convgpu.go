package nn

import (
	"errors"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/linalg"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/numeric/conv"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/tensor"
)

// convOnDevice queues a convolution or a gradient of it, by the driver's library if it has one. The
// result is x, filter or y by the kind.
func convOnDevice(d *device.Device, kind driver.ConvKind, a axes, s *conv.Shape, x, filter, y *tensor.Tensor) error {
	if library, err := d.Driver().DNN(); err == nil {
		err := libraryConv(d, library, kind, a, s, x, filter, y)
		if !errors.Is(err, driver.ErrUnsupported) {
			return err
		}
	}
	c := gpuConv{d: d, kind: kind}
	switch kind {
	case driver.ConvForward:
		return a.onDevice(y, x, func(y, x *tensor.Tensor) error { return c.grouped(s, x, filter, y) })
	case driver.ConvBackwardData:
		return a.onDevice(x, y, func(x, y *tensor.Tensor) error { return c.grouped(s, x, filter, y) })
	default:
		last, err := a.channelsLast(x)
		if err != nil {
			return err
		}
		defer last.Release()
		grad, err := a.channelsLast(y)
		if err != nil {
			return err
		}
		defer grad.Release()
		return c.grouped(s, &last, filter, &grad)
	}
}

func libraryConv(d *device.Device, library driver.DNN, kind driver.ConvKind, a axes, s *conv.Shape, x, filter, y *tensor.Tensor) error {
	p := driver.Conv{
		Type: x.DType(), Batch: s.Batch, InH: s.InH, InW: s.InW, InC: s.InC, OutH: s.OutH, OutW: s.OutW, OutC: s.OutC,
		KernelH: s.FilterH, KernelW: s.FilterW, StrideH: s.StrideH, StrideW: s.StrideW, DilationH: s.DilationH, DilationW: s.DilationW,
		PadTop: s.PadTop, PadLeft: s.PadLeft, Groups: max(1, s.Groups),
		TF32:      x.DType() == tensor.Float32, // see linalg.Product
		PadBottom: max(0, (s.OutH-1)*s.StrideH+(s.FilterH-1)*s.DilationH+1-s.InH-s.PadTop),
		PadRight:  max(0, (s.OutW-1)*s.StrideW+(s.FilterW-1)*s.DilationW+1-s.InW-s.PadLeft),
	}
	if a.first {
		p.Channels = driver.NCHW
	}
	var held []tensor.Tensor
	defer func() {
		for i := range held {
			held[i].Release()
		}
	}()
	xm, wm, ym := d.Mem(x), d.Mem(filter), d.Mem(y)
	return d.Do("convolution", func(stream driver.Stream) error {
		return library.Conv(stream, kind, xm, wm, ym, p, func(size int) (driver.Mem, bool) {
			t, err := d.Scratch(size)
			if err != nil {
				return driver.Mem{}, false
			}
			held = append(held, t)
			return d.Mem(&t), true
		})
	})
}

// gpuConv is a convolution by im2col and a product of matrices. All tensors have channels last.
type gpuConv struct {
	d    *device.Device
	kind driver.ConvKind
}

// grouped computes the groups of channels one after the other.
func (c *gpuConv) grouped(s *conv.Shape, x, filter, y *tensor.Tensor) error {
	if s.Groups <= 1 {
		return c.run(s, x, filter, y)
	}
	one := *s
	one.Groups, one.InC, one.OutC = 1, s.InC/s.Groups, s.OutC/s.Groups
	shapes := [3]tensor.Shape{
		{int64(s.Batch), int64(s.InH), int64(s.InW), int64(one.InC)},
		{int64(s.FilterH), int64(s.FilterW), int64(one.InC), int64(one.OutC)},
		{int64(s.Batch), int64(s.OutH), int64(s.OutW), int64(one.OutC)},
	}
	whole := [3]*tensor.Tensor{x, filter, y}
	result := map[driver.ConvKind]int{driver.ConvForward: 2, driver.ConvBackwardData: 0, driver.ConvBackwardFilter: 1}[c.kind]
	for g := range s.Groups {
		var parts [3]tensor.Tensor
		var views [3]strided.View
		for i, t := range whole {
			var err error
			if parts[i], err = c.d.Alloc(t.DType(), shapes[i]); err != nil {
				return err
			}
			defer parts[i].Release()
			n := int(shapes[i][3])
			views[i] = strided.Of(t.Shape())
			views[i].Slice(len(views[i].Dims)-1, g*n, n, 1)
			if i != result {
				strided.Copy(&parts[i], strided.Of(shapes[i]), t, views[i])
			}
		}
		if err := c.run(&one, &parts[0], &parts[1], &parts[2]); err != nil {
			return err
		}
		strided.Copy(whole[result], views[result], &parts[result], strided.Of(shapes[result]))
	}
	return nil
}

// mostColumns is the number of elements of the matrix of im2col from which the images are divided
// into several parts: 256 MiB of float32.
const mostColumns = 64 << 20

// run computes a convolution of one group.
func (c *gpuConv) run(s *conv.Shape, x, filter, y *tensor.Tensor) error {
	outs, depth := s.OutH*s.OutW, s.FilterH*s.FilterW*s.InC
	plain := s.FilterH == 1 && s.FilterW == 1 && s.StrideH == 1 && s.StrideW == 1 && s.PadTop == 0 && s.PadLeft == 0 &&
		s.OutH == s.InH && s.OutW == s.InW
	images := max(1, min(s.Batch, mostColumns/max(1, outs*depth)))
	if plain {
		images = s.Batch
	}
	for first := 0; first < s.Batch; first += images {
		n := min(images, s.Batch-first)
		part := *s
		part.Batch = n
		xs, ys := x.Rows(first, first+n), y.Rows(first, first+n)
		columns := xs
		if !plain {
			var err error
			if columns, err = c.d.Alloc(x.DType(), tensor.Shape{int64(n * outs), int64(depth)}); err != nil {
				return err
			}
			defer columns.Release()
		}
		if err := c.images(&part, &xs, filter, &ys, &columns, plain, first > 0); err != nil {
			return err
		}
	}
	return nil
}

// images computes some images. columns is their matrix of im2col, or the images themselves if they
// are that matrix. A gradient of the filter is added to the result if more is set.
func (c *gpuConv) images(s *conv.Shape, x, filter, y, columns *tensor.Tensor, plain, more bool) error {
	w, size := windowOf(s), int64(columns.NumElements())
	p := driver.MatMul{Type: x.DType(), M: s.Batch * s.OutH * s.OutW, N: s.OutC, K: s.FilterH * s.FilterW * s.InC, Batch: 1}
	unfold := func() error {
		if plain {
			return nil
		}
		return c.d.LaunchLine("im2col_"+source.SizeName(x.DType().Size()), size, columns, x, size, int64(0), w.arg())
	}
	switch c.kind {
	case driver.ConvBackwardFilter: // below
	case driver.ConvForward:
		if err := unfold(); err != nil {
			return err
		}
		return linalg.Product(c.d, y, columns, filter, p)
	case driver.ConvBackwardData:
		p.N, p.K, p.TransB = p.K, p.N, true
		if err := linalg.Product(c.d, columns, y, filter, p); err != nil || plain {
			return err
		}
		n := int64(x.NumElements())
		return c.d.LaunchLine("col2im_"+source.TypeName(x.DType()), n, x, columns, n, w.arg())
	}
	if err := unfold(); err != nil {
		return err
	}
	p.M, p.K, p.TransA = p.K, p.M, true
	if !more {
		return linalg.Product(c.d, filter, columns, y, p)
	}
	sum, err := c.d.Alloc(filter.DType(), filter.Shape())
	if err != nil {
		return err
	}
	defer sum.Release()
	if err := linalg.Product(c.d, &sum, columns, y, p); err != nil {
		return err
	}
	n := int64(sum.NumElements())
	return c.d.LaunchLine("add_"+source.TypeName(sum.DType()), n, filter, filter, &sum, n, int32(1), int32(1))
}
