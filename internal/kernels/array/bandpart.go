package array

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "MatrixBandPart",
			Doc: "Copies the band of each matrix with num_lower subdiagonals and num_upper " +
				"superdiagonals, all of them if the number is negative, and sets the other elements " +
				"to zero.",
			In:    []string{"input: T", "num_lower: Tindex", "num_upper: Tindex"},
			Out:   []string{"band: T"},
			Attrs: []string{"T: type", "Tindex: {int32, int64} = int64"},
			Shape: opdef.SameShape,
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(bandPart), typeset.Plain...),
	})
}

func bandPart(ctx *kernel.Context) error {
	in, lower, upper := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	if in.Rank() < 2 {
		return status.InvalidArgumentf("input must be at least 2-dim, received shape: %v", in.Shape())
	}
	rows, cols := in.Dim(in.Rank()-2), in.Dim(in.Rank()-1)
	if lower.Rank() != 0 {
		return status.InvalidArgumentf("num_lower must be scalar, got shape %v", lower.Shape())
	}
	below := int(intarg.Scalar(lower))
	if below > rows {
		return status.InvalidArgumentf("num_lower must be negative or less or equal to number of rows (%d) got: %d", rows, below)
	}
	if upper.Rank() != 0 {
		return status.InvalidArgumentf("num_upper must be scalar, got shape %v", upper.Shape())
	}
	above := int(intarg.Scalar(upper))
	if above > cols {
		return status.InvalidArgumentf("num_upper must be negative or less or equal to number of columns (%d) got: %d", cols, above)
	}
	if in.NumElements() == 0 || (below < 0 || below == rows) && (above < 0 || above == cols) {
		return ctx.PassInput(0, 0)
	}
	x, s := *in, in.Bytes()
	out, err := ctx.Forward(0, 0)
	if err != nil {
		return err
	}
	if d := device.Of(out); d != nil {
		n := int64(out.NumElements())
		return d.LaunchLine("band_"+source.SizeName(out.DType().Size()), n, out, &x, n, int64(rows), int64(cols), int64(below), int64(above))
	}
	keepBand(out.Bytes(), s, out.DType().Size(), rows, cols, below, above)
	return nil
}

// keepBand copies the elements, of size bytes each, inside a band of matrices and clears the
// others. d may alias s.
func keepBand(d, s []byte, size, rows, cols, below, above int) {
	parallel.For(len(d)/(cols*size), max(1, 65536/(cols*size)), func(from, to int) {
		for k := from; k < to; k++ {
			row, out, in := k%rows, d[k*cols*size:(k+1)*cols*size], s[k*cols*size:(k+1)*cols*size]
			lo, hi := 0, cols
			if below >= 0 {
				lo = min(max(row-below, 0), cols)
			}
			if above >= 0 {
				hi = max(min(row+above+1, cols), lo)
			}
			bulk.Clear(out[:lo*size])
			bulk.Copy(out[lo*size:hi*size], in[lo*size:hi*size])
			bulk.Clear(out[hi*size:])
		}
	})
}
