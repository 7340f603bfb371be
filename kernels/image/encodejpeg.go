package image

import (
	"encoding/binary"
	"math"

	"github.com/weft-ml/weft/internal/shapes"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerNew(opdef.Def{
		Name: "EncodeJpeg", Doc: "Encodes an image as JPEG: baseline, colors at half the resolution.",
		In: []string{"image: uint8"}, Out: []string{"contents: string"},
		Attrs: []string{
			"format: {'', 'grayscale', 'rgb'} = ''", "quality: int = 95", "progressive: bool = false",
			"optimize_size: bool = false", "chroma_downsampling: bool = true", "density_unit: {'in', 'cm'} = 'in'",
			"x_density: int = 300", "y_density: int = 300", "xmp_metadata: string = ''",
		},
		Shape: func(c *opdef.ShapeContext) error {
			_, err := opdef.WithRank(c.In[0], 3)
			c.Out[0] = shapes.Of()
			return err
		},
	}, newEncodeJPEG)
}

func newEncodeJPEG(c *kernel.Construction) (kernel.Kernel, error) {
	quality, format := c.Attrs.Int("quality"), c.Attrs.String("format")
	if quality < 0 || quality > 100 {
		return nil, status.InvalidArgumentf("quality must be in [0,100], got %d", quality)
	}
	segments := jpegSegments(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		switch {
		case in.Rank() != 3:
			return status.InvalidArgumentf("image must be 3-dimensional%v", in.Shape())
		case in.NumElements() >= math.MaxInt32:
			return status.InvalidArgumentf("Cannot encode images with >= max int32 elements")
		}
		channels := in.Dim(2)
		want := map[string]int{"grayscale": 1, "rgb": 3}[format]
		switch {
		case want == 0 && channels != 1 && channels != 3:
			return status.InvalidArgumentf("image must have 1 or 3 channels, got %v", in.Shape())
		case want != 0 && channels != want:
			return status.InvalidArgumentf("format %s expects %d channels, got %v", format, want, in.Shape())
		}
		text, err := jpegOf(tensor.Values[uint8](in), in.Dim(0), in.Dim(1), channels, quality)
		if err != nil {
			return status.Internalf("JPEG encoding failed")
		}
		const start = 2 // the marker that every file begins with
		ctx.SetOutput(0, tensor.Scalar(text[:start]+segments+text[start:]))
		return nil
	}), nil
}

// jpegSegments returns the segments that tell the density of pixels (JFIF 1.1) and carry metadata (XMP, if it fits in one).
func jpegSegments(attrs opdef.Attrs) string {
	unit := byte(1)
	if attrs.String("density_unit") == "cm" {
		unit = 2
	}
	body := append([]byte("JFIF\x00\x01\x01"), unit)
	body = binary.BigEndian.AppendUint16(body, uint16(attrs.Int("x_density")))
	body = binary.BigEndian.AppendUint16(body, uint16(attrs.Int("y_density")))
	out := segment(0xe0, string(body)+"\x00\x00")
	if xmp := attrs.String("xmp_metadata"); xmp != "" {
		out += segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00"+xmp)
	}
	return out
}

// segment returns a marker with its body, or nothing if the body is too long for one.
func segment(marker byte, body string) string {
	if len(body)+2 > math.MaxUint16 {
		return ""
	}
	head := binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(body)+2))
	return string(head) + body
}
