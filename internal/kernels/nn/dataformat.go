package nn

import (
	"strings"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"T: {int32, int64} = int32", "src_format: string = 'NHWC'", "dst_format: string = 'NCHW'"}
	for _, op := range []struct {
		name, doc string
		new       kernel.New
	}{
		{"DataFormatDimMap", "Returns the dimension indices in the destination data format given those in the source data format.", newDimMap},
		{"DataFormatVecPermute", "Permutes a vector with one element or one pair per dimension from the source data format to the destination data format.", newVecPermute},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: op.name, Doc: op.doc, In: []string{"x: T"}, Out: []string{"y: T"}, Attrs: attrs, Shape: opdef.SameShape,
			},
			Kernels: kernel.ForTypes("T", op.new, tensor.Int32, tensor.Int64),
		})
	}
}

// formats returns the source and destination data formats, which must be permutations of each
// other.
func formats(attrs opdef.Attrs) (src, dst string, err error) {
	src, dst = attrs.String("src_format"), attrs.String("dst_format")
	if len(src) != 4 && len(src) != 5 {
		return "", "", status.InvalidArgumentf("Source format must be of length 4 or 5, received src_format = %s", src)
	}
	if len(dst) != 4 && len(dst) != 5 {
		return "", "", status.InvalidArgumentf("Destination format must be of length 4 or 5, received dst_format = %s", dst)
	}
	ok := len(src) == len(dst)
	for i := range len(src) {
		ok = ok && strings.Count(src, src[i:i+1]) == 1 && strings.Count(dst, src[i:i+1]) == 1
	}
	if !ok {
		return "", "", status.InvalidArgumentf("Destination and source format must determine a permutation, got %s and %s", src, dst)
	}
	return src, dst, nil
}

func newDimMap(c *kernel.Construction) (kernel.Kernel, error) {
	src, dst, err := formats(c.Attrs)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		out, err := ctx.AllocateLike(0, in)
		if err != nil {
			return err
		}
		n := int64(len(src))
		dims := membudget.Make[int64](in.NumElements())
		for i, d := range intarg.Values(in) {
			if d += n; in.DType() == tensor.Int32 {
				d = int64(int32(d)) // wrap around as a sum of type int32 does
			}
			if d %= n; d < 0 {
				d = n - 1 // TensorFlow maps all values below -n to the last dimension
			}
			dims[i] = int64(strings.IndexByte(dst, src[d]))
		}
		intarg.Set(out, dims)
		return nil
	}), nil
}

func newVecPermute(c *kernel.Construction) (kernel.Kernel, error) {
	src, dst, err := formats(c.Attrs)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		from, to := src, dst
		if err := checkVecPermute(in.Shape(), len(src)); err != nil {
			return err
		}
		if in.Dim(0) == len(src)-2 {
			from, to = spatialOnly(src), spatialOnly(dst)
			if len(from) != in.Dim(0) || len(to) != in.Dim(0) {
				names := "H and W"
				if len(src) == 5 {
					names = "D, H and W"
				}
				return status.InvalidArgumentf("Format specifier must contain %s for 2D case", names)
			}
		}
		out, err := ctx.AllocateLike(0, in)
		if err != nil {
			return err
		}
		x, width := intarg.Values(in), in.NumElements()/len(from)
		y := membudget.Make[int64](len(x))
		for i := range len(from) {
			at := strings.IndexByte(to, from[i])
			copy(y[at*width:(at+1)*width], x[i*width:])
		}
		intarg.Set(out, y)
		return nil
	}), nil
}

func checkVecPermute(s tensor.Shape, full int) error {
	spatial := full - 2
	switch {
	case len(s) != 1 && len(s) != 2:
		return status.InvalidArgumentf("input must be a vector or 2D tensor, but got shape %v", s)
	case s[0] != int64(full) && s[0] != int64(spatial):
		what := "1D input"
		if len(s) == 2 {
			what = "First dimension of 2D input"
		}
		return status.InvalidArgumentf("%s must be of size %d or %d, but got shape %v", what, spatial, full, s)
	case len(s) == 2 && s[1] != 2:
		return status.InvalidArgumentf("Second dimension of 2D input must be of size 2, but got shape %v", s)
	}
	return nil
}

// spatialOnly drops the batch and the channels from a data format.
func spatialOnly(format string) string {
	return strings.Map(func(r rune) rune {
		if r == 'H' || r == 'W' || r == 'D' && len(format) == 5 {
			return r
		}
		return -1
	}, format)
}
