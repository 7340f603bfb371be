package nn

import (
	"errors"
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/linalg"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/numeric/conv"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/tensor"
)

// convOnDevice queues a convolution of images or a gradient of it, by the driver's library if it
// has one. The result is x, filter or y by the kind.
func convOnDevice(d *device.Device, kind driver.ConvKind, a axes, s *conv.Shape, x, filter, y *tensor.Tensor) error {
	if library, err := d.Driver().DNN(); err == nil {
		err := libraryConv(d, library, kind, a, s, x, filter, y)
		if !errors.Is(err, driver.ErrUnsupported) {
			return err
		}
	}
	v := imageVolume(s)
	return volumeOnDevice(d, kind, a, &v, max(1, s.Groups), x, filter, y)
}

// volumeOnDevice queues a convolution or a gradient of it, with a number of groups of channels. The
// result is x, filter or y by the kind.
func volumeOnDevice(d *device.Device, kind driver.ConvKind, a axes, v *volume, groups int, x, filter, y *tensor.Tensor) error {
	c := gpuConv{d: d, kind: kind}
	switch kind {
	case driver.ConvForward:
		return a.onDevice(y, x, func(y, x *tensor.Tensor) error { return c.grouped(v, groups, x, filter, y) })
	case driver.ConvBackwardData:
		return a.onDevice(x, y, func(x, y *tensor.Tensor) error { return c.grouped(v, groups, x, filter, y) })
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
		return c.grouped(v, groups, &last, filter, &grad)
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
func (c *gpuConv) grouped(v *volume, groups int, x, filter, y *tensor.Tensor) error {
	if groups == 1 {
		return c.run(v, x, filter, y)
	}
	one := *v
	one.inC, one.outC = v.inC/groups, v.outC/groups
	whole, channels := [3]*tensor.Tensor{x, filter, y}, [3]int{one.inC, one.outC, one.outC}
	result := map[driver.ConvKind]int{driver.ConvForward: 2, driver.ConvBackwardData: 0, driver.ConvBackwardFilter: 1}[c.kind]
	for g := range groups {
		var parts [3]tensor.Tensor
		var views [3]strided.View
		for i, t := range whole {
			n, last := channels[i], t.Rank()-1
			shape := slices.Clone(t.Shape())
			shape[last] = int64(n)
			var err error
			if parts[i], err = c.d.Alloc(t.DType(), shape); err != nil {
				return err
			}
			defer parts[i].Release()
			views[i] = strided.Of(t.Shape())
			views[i].Slice(last, g*n, n, 1)
			if i != result {
				strided.Copy(&parts[i], strided.Of(shape), t, views[i])
			}
		}
		if err := c.run(&one, &parts[0], &parts[1], &parts[2]); err != nil {
			return err
		}
		strided.Copy(whole[result], views[result], &parts[result], strided.Of(parts[result].Shape()))
	}
	return nil
}

// mostColumns is the number of elements of the matrix of im2col from which the images are divided
// into several parts: 256 MiB of float32.
const mostColumns = 64 << 20

// run computes a convolution of one group.
func (c *gpuConv) run(v *volume, x, filter, y *tensor.Tensor) error {
	outs, depth, plain := 1, v.inC, true
	for _, s := range v.spans {
		outs, depth = outs*s.out, depth*s.filter
		plain = plain && s.filter == 1 && s.stride == 1 && s.before == 0 && s.out == s.in
	}
	images := max(1, min(v.batch, mostColumns/max(1, outs*depth)))
	if plain {
		images = v.batch
	}
	for first := 0; first < v.batch; first += images {
		n := min(images, v.batch-first)
		part := *v
		part.batch = n
		xs, ys := x.Rows(first, first+n), y.Rows(first, first+n)
		columns := xs
		if !plain {
			var err error
			if columns, err = c.d.Alloc(x.DType(), tensor.Shape{int64(n * outs), int64(depth)}); err != nil {
				return err
			}
			defer columns.Release()
		}
		p := driver.MatMul{Type: x.DType(), M: n * outs, N: v.outC, K: depth, Batch: 1}
		if err := c.images(&part, p, &xs, filter, &ys, &columns, plain, first > 0); err != nil {
			return err
		}
	}
	return nil
}

// images computes some images. p is the product of the forward convolution. columns is the matrix
// of im2col of the images, or the images themselves if they are that matrix. A gradient of the
// filter is added to the result if more is set.
func (c *gpuConv) images(v *volume, p driver.MatMul, x, filter, y, columns *tensor.Tensor, plain, more bool) error {
	w, size := windowOf(v), int64(columns.NumElements())
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
