package imageops

import (
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"math"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "EncodePng", Doc: "Encodes images with 8 or 16 bits per sample as PNG.",
		In: []string{"image: T"}, Out: []string{"contents: string"},
		Attrs: []string{"compression: int = -1", "T: {uint8, uint16} = uint8"},
		Shape: func(c *opdef.ShapeContext) error {
			in, err := opdef.WithRankAtLeast(c.In[0], 3)
			c.Out[0] = shapefn.Sub(in, 0, -3)
			return err
		},
	}, newEncodePNG)
}

func newEncodePNG(c *kernel.Construction) (kernel.Kernel, error) {
	level := c.Attrs.Int("compression")
	if level < -1 || level > 9 {
		return nil, status.InvalidArgumentf("compression should be in [-1,9], got %d", level)
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		if in.Rank() < 3 {
			return status.InvalidArgumentf("images must be at least rank 3%v", in.Shape())
		}
		batch := in.Rank() - 3
		height, width, channels := in.Dim(batch), in.Dim(batch+1), in.Dim(batch+2)
		switch {
		case in.NumElements() >= math.MaxInt32:
			return status.InvalidArgumentf("image cannot have >= int32 max elements")
		case width*channels >= math.MaxInt32/2:
			return status.InvalidArgumentf("image too wide to encode")
		case channels < 1 || channels > 4:
			return status.InvalidArgumentf("image must have 1, 2, 3, or 4 channels, got %d", channels)
		}
		out, err := ctx.Allocate(0, in.Shape()[:batch])
		if err != nil {
			return err
		}
		var bad []string
		const named = 1000 // in an error; there is any number of images without pixels
		size := height * width * channels * in.DType().Size()
		for i := range out.NumElements() {
			if size == 0 {
				//sizedmake:ok at most named
				if bad = append(bad, strconv.Itoa(i)); len(bad) == named {
					break
				}
				continue
			}
			text, err := encodePNG(in.Bytes()[i*size:(i+1)*size], height, width, channels, in.DType().Size(), level)
			if err != nil {
				return err
			}
			tensor.Values[string](out)[i] = text
		}
		if bad != nil {
			return status.Internalf("PNG encoding failed at the following flattened batch indices: %s", strings.Join(bad, ", "))
		}
		return nil
	}), nil
}

// encodePNG encodes an image with samples of bytesPer bytes, one or two.
func encodePNG(pix []byte, height, width, channels, bytesPer, level int) (string, error) {
	head := binary.BigEndian.AppendUint32(nil, uint32(width))
	head = binary.BigEndian.AppendUint32(head, uint32(height))
	head = append(head, byte(8*bytesPer), []byte{0, 0, 4, 2, 6}[channels], 0, 0, 0)
	data := counted(appendChunk([]byte("\x89PNG\r\n\x1a\n"), "IHDR", head))
	start := len(data)
	data = append(data, 0, 0, 0, 0, 'I', 'D', 'A', 'T') // the length is set below
	z, err := zlib.NewWriterLevel(&data, level)
	if err != nil {
		return "", err
	}
	size := width * channels * bytesPer
	above, row, filter := membudget.Make[byte](size), membudget.Make[byte](size), newPNGFilter(size, channels*bytesPer)
	for y := range height {
		copy(row, pix[y*size:])
		for i := 0; bytesPer == 2 && i < size; i += 2 {
			row[i], row[i+1] = row[i+1], row[i] // samples are big-endian
		}
		_, _ = z.Write(filter.line(row, above)) // writing to memory cannot fail
		above, row = row, above
	}
	z.Close()
	const header = 8 // of a chunk: length and name
	binary.BigEndian.PutUint32(data[start:], uint32(len(data)-start-header))
	data = binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data[start+4:]))
	data = appendChunk(data, "IEND", nil)
	membudget.MustTake(int64(len(data)))
	return string(data), nil
}

// counted is memory that a writer appends to. It panics with a *membudget.Exceeded if there is no
// memory to grow.
type counted []byte

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	*c = membudget.AppendAll(*c, p...)
	return len(p), nil
}

// pngFilter computes the filtered lines of a PNG file: the differences of a row from a prediction.
// As libpng does, it chooses for each row the prediction with the smallest differences.
type pngFilter struct {
	step int // bytes per pixel
	// indexed by prediction: none, left pixel, row above, average of both, Paeth
	lines [5][]byte
}

func newPNGFilter(size, step int) *pngFilter {
	f := &pngFilter{step: step}
	for i := range f.lines {
		f.lines[i] = membudget.Make[byte](1 + size)
		f.lines[i][0] = byte(i)
	}
	return f
}

func (f *pngFilter) line(row, above []byte) []byte {
	var sums [len(f.lines)]int
	for i, v := range row {
		var left, corner byte
		if i >= f.step {
			left, corner = row[i-f.step], above[i-f.step]
		}
		up := above[i]
		for k, d := range [len(f.lines)]byte{v, v - left, v - up, v - byte((int(left)+int(up))/2), v - paeth(left, up, corner)} {
			f.lines[k][1+i] = d
			sums[k] += int(min(d, -d)) // absolute value of the difference as a signed number
		}
	}
	best := 0
	for k, sum := range sums {
		if sum < sums[best] {
			best = k
		}
	}
	return f.lines[best]
}

// paeth returns the neighbour that is nearest to left + up - corner.
func paeth(left, up, corner byte) byte {
	p := int(left) + int(up) - int(corner)
	a, b, c := distance(p, int(left)), distance(p, int(up)), distance(p, int(corner))
	switch {
	case a <= b && a <= c:
		return left
	case b <= c:
		return up
	}
	return corner
}

func distance(a, b int) int { return max(a-b, b-a) }

func appendChunk(out []byte, name string, body []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	start := len(out)
	out = append(append(out, name...), body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[start:]))
}
