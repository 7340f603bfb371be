package imageops

import (
	"encoding/binary"
	"math"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// bitmap is an uncompressed BMP file. Rows are ordered from the bottom up unless topDown is set,
// and each is padded to a multiple of 4 bytes. Pixels have 1, 3 or 4 bytes in the order blue,
// green, red, alpha.
type bitmap struct {
	height, width, channels int
	topDown                 bool
	pixels                  string
}

func (d *decoder) decodeBMP(ctx *kernel.Context, data string) error {
	switch {
	case d.channels == 1:
		return status.InvalidArgumentf("`channels` must be 0, 3 or 4 for BMP, but got %d", d.channels)
	case d.op == "DecodeAndCropJpeg":
		return d.refuse("BMP", "")
	case d.op != "DecodeBmp" && d.op != "DecodeImage":
		return status.InvalidArgumentf("Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. Op used: %s", d.op)
	}
	b, err := parseBitmap(data)
	if err != nil {
		return err
	}
	channels := b.channels
	if d.channels != 0 {
		channels = d.channels
	}
	return d.output(ctx, tensor.Shape{int64(b.height), int64(b.width), int64(channels)}, b.decode(channels))
}

func parseBitmap(data string) (*bitmap, error) {
	if len(data) < 32 {
		return nil, status.InvalidArgumentf("Incomplete bmp content, requires at least 32 bytes to find the header size, width, height, and bpp, got %d bytes", len(data))
	}
	header := []byte(data[:32])
	field := func(at int) int64 { return int64(int32(binary.LittleEndian.Uint32(header[at:]))) }
	size, width, height := field(10), field(18), field(22)
	channels := int64(int16(binary.LittleEndian.Uint16(header[28:]))) / 8
	switch {
	case channels != 1 && channels != 3 && channels != 4:
		return nil, status.InvalidArgumentf("Number of channels inherent in the image must be 1, 3 or 4, was %d", channels)
	case width <= 0:
		return nil, status.InvalidArgumentf("Width must be positive")
	case height == 0:
		return nil, status.InvalidArgumentf("Height must be nonzero")
	case size < 0:
		return nil, status.InvalidArgumentf("header size must be nonnegative")
	}
	b := &bitmap{height: int(max(height, -height)), width: int(width), channels: int(channels), topDown: height < 0}
	if int64(b.height)*width >= math.MaxInt32/8 {
		return nil, status.InvalidArgumentf("Total possible pixel bytes must be less than 2^30")
	}
	if diff := int64(len(data)) - size - int64(b.stride()*b.height); diff != 0 {
		return nil, status.InvalidArgumentf("Input size should match (header_size + row_size * abs_height) but they differ by %d", diff)
	}
	b.pixels = data[size:]
	return b, nil
}

func (b *bitmap) stride() int { return (b.channels*b.width + 3) / 4 * 4 }

func (b *bitmap) decode(channels int) []uint8 {
	out := membudget.MakeCap[uint8](b.height * b.width * channels)
	for y := range b.height {
		row := b.height - 1 - y
		if b.topDown {
			row = y
		}
		for x := range b.width {
			p := b.pixels[row*b.stride()+x*b.channels:][:b.channels]
			if b.channels == 1 {
				out = append(out, []uint8{p[0], p[0], p[0], math.MaxUint8}[:channels]...)
				continue
			}
			out = append(out, p[2], p[1], p[0])
			switch {
			case channels == 4 && b.channels == 4:
				out = append(out, p[3])
			case channels == 4:
				out = append(out, math.MaxUint8)
			}
		}
	}
	return out
}
