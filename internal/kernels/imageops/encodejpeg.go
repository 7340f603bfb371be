package imageops

import (
	"encoding/binary"
	"math"

	"github.com/weft-ml/weft/internal/format/jpeg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	shape := func(c *opdef.ShapeContext) error {
		_, err := opdef.WithRank(c.In[0], 3)
		c.Out[0] = shapefn.Of()
		return err
	}
	kernel.RegisterNew(opdef.Def{
		Name: "EncodeJpeg", Doc: "Encodes an image as JPEG, with colors at half the resolution if chroma_downsampling is true.",
		In: []string{"image: uint8"}, Out: []string{"contents: string"},
		Attrs: []string{
			"format: {'', 'grayscale', 'rgb'} = ''", "quality: int = 95", "progressive: bool = false",
			"optimize_size: bool = false", "chroma_downsampling: bool = true", "density_unit: {'in', 'cm'} = 'in'",
			"x_density: int = 300", "y_density: int = 300", "xmp_metadata: string = ''",
		},
		Shape: shape,
	}, newEncodeJPEG)
	kernel.RegisterFunc(opdef.Def{
		Name: "EncodeJpegVariableQuality", Doc: "Encodes an image as JPEG with the given quality.",
		In: []string{"images: uint8", "quality: int32"}, Out: []string{"contents: string"}, Shape: shape,
	}, encodeVariableQuality)
}

func newEncodeJPEG(c *kernel.Construction) (kernel.Kernel, error) {
	format, xmp := c.Attrs.String("format"), c.Attrs.String("xmp_metadata")
	o := jpeg.Options{
		Quality: c.Attrs.Int("quality"), Halve: c.Attrs.Bool("chroma_downsampling"),
		Optimize: c.Attrs.Bool("optimize_size"), Progressive: c.Attrs.Bool("progressive"),
	}
	if err := checkQuality(o.Quality); err != nil {
		return nil, err
	}
	unit := byte(perInch)
	if c.Attrs.String("density_unit") == "cm" {
		unit = perCentimeter
	}
	o.Segments = density(unit, c.Attrs.Int("x_density"), c.Attrs.Int("y_density"))
	tooLong := false
	if xmp != "" {
		body := []byte("http://ns.adobe.com/xap/1.0/\x00" + xmp)
		if tooLong = len(body) > jpeg.MaxBody; !tooLong {
			o.Segments += jpeg.Segment(0xe1, body)
		}
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		if err := checkImage(in); err != nil {
			return err
		}
		channels, want := in.Dim(2), map[string]int{"grayscale": 1, "rgb": 3}[format]
		switch {
		case want == 0:
			if err := checkChannels(in); err != nil {
				return err
			}
		case channels != want:
			return status.InvalidArgumentf("format %s expects %d channels, got %v", format, want, in.Shape())
		}
		if tooLong {
			return errEncoding()
		}
		return encodeJPEG(ctx, o)
	}), nil
}

func encodeVariableQuality(ctx *kernel.Context) error {
	in, quality := ctx.Input(0), ctx.Input(1)
	if err := checkImage(in); err != nil {
		return err
	}
	if quality.Rank() != 0 {
		return status.InvalidArgumentf("quality must be scalar: %v", quality.Shape())
	}
	q := int(tensor.Value[int32](quality))
	if err := checkQuality(q); err != nil {
		return err
	}
	if err := checkChannels(in); err != nil {
		return err
	}
	const usual = 300 // pixels
	return encodeJPEG(ctx, jpeg.Options{Quality: q, Halve: true, Segments: density(perInch, usual, usual)})
}

func checkQuality(q int) error {
	if q < 0 || q > 100 {
		return status.InvalidArgumentf("quality must be in [0,100], got %d", q)
	}
	return nil
}

func checkImage(in *tensor.Tensor) error {
	switch {
	case in.Rank() != 3:
		return status.InvalidArgumentf("image must be 3-dimensional%v", in.Shape())
	case in.NumElements() >= math.MaxInt32:
		return status.InvalidArgumentf("Cannot encode images with >= max int32 elements")
	}
	return nil
}

func checkChannels(in *tensor.Tensor) error {
	if channels := in.Dim(2); channels != 1 && channels != 3 {
		return status.InvalidArgumentf("image must have 1 or 3 channels, got %v", in.Shape())
	}
	return nil
}

func errEncoding() error { return status.Internalf("JPEG encoding failed") }

// encodeJPEG encodes input 0, which has 1 or 3 channels.
func encodeJPEG(ctx *kernel.Context, o jpeg.Options) error {
	in := ctx.Input(0)
	height, width := in.Dim(0), in.Dim(1)
	if height == 0 || width == 0 || max(height, width) > jpeg.MaxSize {
		return errEncoding()
	}
	ctx.SetOutput(0, tensor.Scalar(jpeg.Encode(tensor.Values[uint8](in), height, width, in.Dim(2), o)))
	return nil
}

const perInch, perCentimeter = 1, 2

// density returns the segment with the pixel density (JFIF 1.1).
func density(unit byte, x, y int) string {
	body := append([]byte("JFIF\x00\x01\x01"), unit)
	body = binary.BigEndian.AppendUint16(body, uint16(x))
	body = binary.BigEndian.AppendUint16(body, uint16(y))
	return jpeg.Segment(0xe0, append(body, 0, 0)) // no thumbnail
}
