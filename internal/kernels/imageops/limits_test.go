package imageops

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// The frames of a GIF file are found behind extensions whose first block has no size, or size 0.
func TestFramesBehindExtensions(t *testing.T) {
	const header, frame = "GIF89a\xff\xff\xff\xff\x80\x00\x00" + "\x00\x00\x00\xff\xff\xff", "\x2c\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x00"
	for name, extension := range map[string]string{
		"application": "\x21\xff\x00\x3b" + strings.Repeat("\x3b", 59) + "\x00",
		"text":        "\x21\x01\x00\x3b" + strings.Repeat("\x3b", 11) + "\x00",
		"comment":     "\x21\xfe\x01\x00\x00",
		"usual":       "\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00",
		"none":        "",
	} {
		if got := gifPixels(header + extension + frame + "\x3b"); got != (gifSize{1, 65535 * 65535, 65535 * 65535}) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// What a decoder takes for a few bytes of a file is counted.
func TestMemoryOfDecoders(t *testing.T) {
	const limit = 128 << 20
	// a palette of 256 colors for each frame of one pixel: the transparent color is the last one
	frame := "\x21\xf9\x04\x01\x00\x00\xff\x00" + "\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00"
	kerneltest.WantExhausted(t, limit, "DecodeGif", nil,
		tensor.Scalar("GIF89a\x01\x00\x01\x00\x80\x00\x00"+"\x00\x00\x00\xff\xff\xff"+strings.Repeat(frame, 60_000)+"\x3b"))

	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8192), 8192)
	file := appendChunk([]byte("\x89PNG\r\n\x1a\n"), "IHDR", append(head, 16, 6, 0, 0, 0))
	file = appendChunk(file, "IDAT", make([]byte, 10_000))
	kerneltest.WantExhausted(t, limit, "DecodePng", nil, tensor.Scalar(string(file)))

	body := binary.LittleEndian.AppendUint32([]byte{0x2f}, 4999|4999<<14)
	picture := chunk{id: "VP8L", body: string(body)}.String()
	kerneltest.WantExhausted(t, limit, "DecodeWebP", nil, tensor.Scalar(chunk{id: riffMagic, body: webpMagic + picture}.String()))
}

// Classes without boxes take no time.
func TestClassesWithoutBoxes(t *testing.T) {
	boxes, err := tensor.FromSlice(tensor.Shape{1, 0, 1, 4}, []float32{})
	if err != nil {
		t.Fatal(err)
	}
	scores, err := tensor.FromSlice(tensor.Shape{1, 0, 1 << 40}, []float32{})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Quickly(t, func() error {
		_, err := kerneltest.Try("CombinedNonMaxSuppression", nil, boxes, scores, tensor.Scalar[int32](1), tensor.Scalar[int32](1),
			tensor.Scalar[float32](0), tensor.Scalar[float32](0))
		return err
	})
}

// Images without channels, and images that are not there, take no time and no memory.
func TestSizesOfNoPixels(t *testing.T) {
	none := func(dims ...int64) tensor.Tensor {
		out, err := tensor.FromSlice(tensor.Shape(dims), []float32{})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	box, err := tensor.FromSlice(tensor.Shape{1, 4}, []float32{0, 0, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	const large = 1 << 20
	for op, in := range map[string][]tensor.Tensor{
		"CropAndResizeGradImage": {none(1, large, large, 0), box, tensor.Vector[int32](0), tensor.Vector[int32](1, 1, 1, 0)},
		"CropAndResizeGradBoxes": {none(1, large, large, 0), none(1, 1, 1, 0), box, tensor.Vector[int32](0)},
		"ResizeBilinearGrad":     {none(1, large, large, 0), none(1, 1, 1, 0)},
		"ResizeBicubicGrad":      {none(1, large, large, 0), none(1, 1, 1, 0)},
		"ResizeArea":             {none(0, 1<<31-2, 1, 1), tensor.Vector[int32](large, 1)},
	} {
		attrs := opdef.Attrs{"T": tensor.Float32}
		t.Run(op, func(t *testing.T) {
			kerneltest.Quickly(t, func() error {
				_, err := kerneltest.TryWithin(1<<30, op, attrs, in...)
				return err
			})
		})
	}
	kerneltest.WantExhausted(t, 128<<20, "ScaleAndTranslate", opdef.Attrs{"T": tensor.Float32, "kernel_type": "lanczos1"},
		none(0, 1<<31-2, 1, 1), tensor.Vector[int32](large, 1), tensor.Vector[float32](1.0/1024, 1), tensor.Vector[float32](0, 0))
}

// Outlines of many boxes end with their step.
func TestOutlinesEndWithStep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := kerneltest.NewEnv()
	env.Step.Context = ctx
	node, err := env.Make("DrawBoundingBoxes", nil)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tensor.FromSlice(tensor.Shape{1, 1, 1, 1}, []float32{0})
	if err != nil {
		t.Fatal(err)
	}
	box, err := tensor.FromSlice(tensor.Shape{1, 1, 4}, []float32{0, 0, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Run(image, box); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// An error names some of the images that have no pixels.
func TestTextOfEmptyImages(t *testing.T) {
	images, err := tensor.FromSlice(tensor.Shape{1 << 20, 0, 1, 1}, []uint8{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = kerneltest.Try("EncodePng", opdef.Attrs{}, images)
	if err == nil || len(err.Error()) > 10_000 {
		t.Errorf("got %d bytes", len(err.Error()))
	}
}
