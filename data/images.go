package data

import (
	"bytes"
	"context"
	"image"
	"image/color"
	_ "image/jpeg" // a format of ImageFolder
	_ "image/png"  // a format of ImageFolder
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/jpeg"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxPixels bounds the size of an image, so that a small file cannot take all memory.
const maxPixels = 64 << 20

// ImageFolder returns the images of a folder with one subfolder for each class: PNG and JPEG files,
// scaled to the given size. Elements are a float32 tensor [height, width, 3] of values from 0 to
// 255, and the class as an int32 scalar. It also returns the classes, the sorted names of the
// subfolders. Images are decoded on up to workers goroutines, in each epoch; [Dataset.Cache] keeps
// them in memory. They are in the order of the classes: shuffle all of them.
func ImageFolder(dir string, height, width, workers int) (d *Dataset, classes []string, err error) {
	if height < 1 || width < 1 {
		return nil, nil, status.InvalidArgumentf("data: images of %d x %d pixels", height, width)
	}
	entries, err := fileio.Files{}.ReadDir(dir)
	if err != nil {
		return nil, nil, fileError(dir, err)
	}
	var paths []string
	var labels []int32
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		files, err := fileio.Files{}.ReadDir(fileio.Join(dir, e.Name()))
		if err != nil {
			return nil, nil, fileError(dir, err)
		}
		for _, f := range files {
			if slices.Contains([]string{".png", ".jpg", ".jpeg"}, strings.ToLower(filepath.Ext(f.Name()))) {
				paths, labels = append(paths, fileio.Join(dir, e.Name(), f.Name())), append(labels, int32(len(classes)))
			}
		}
		classes = append(classes, e.Name())
	}
	if len(paths) == 0 {
		return nil, nil, status.NotFoundf("data: there are no images in subfolders of %s", dir)
	}
	names, err := FromSlices(paths, labels)
	if err != nil {
		return nil, nil, err
	}
	spec := []Spec{{tensor.Float32, tensor.MakePartial(int64(height), int64(width), 3)}, {tensor.Int32, tensor.MakePartial()}}
	return names.mapWith("ImageFolder", workers, spec, func(e Element) (Element, error) {
		pixels, err := ReadImage(tensor.Value[string](&e[0]), height, width)
		return Element{pixels, e[1]}, err
	}, func(s *op.Scope, e []op.Output) []op.Output {
		return []op.Output{readImage(s, e[0], height, width), e[1]}
	}), classes, nil
}

// readImage adds the operations that do what [ReadImage] does.
func readImage(s *op.Scope, path op.Output, height, width int) op.Output {
	img := op.DecodeImage(s, op.ReadFile(s, path), op.DecodeImageChannels(3), op.DecodeImageExpandAnimations(false))
	one := op.ExpandDims(s, img, op.Const(s, int32(0)))
	scaled := op.ResizeBilinear(s, one, op.Const(s, []int32{int32(height), int32(width)}), op.ResizeBilinearHalfPixelCenters(true))
	return op.Squeeze(s, scaled, op.SqueezeSqueezeDims([]int64{0}))
}

// ReadImage reads a PNG or JPEG file and scales it to a size, as [ImageFolder] does: a float32
// tensor [height, width, 3] of values from 0 to 255. Transparency is left out. The values are those
// of the operations DecodeImage and, with half_pixel_centers, ResizeBilinear.
func ReadImage(path string, height, width int) (tensor.Tensor, error) {
	file, err := fileio.Files{}.Read(path)
	if err != nil {
		return tensor.Tensor{}, fileError(path, err)
	}
	img, err := decodeImage(file)
	if err != nil {
		return tensor.Tensor{}, status.Errorf(status.CodeOf(err), "data: %s: %w", path, err)
	}
	return tensor.FromSlice(tensor.Shape{int64(height), int64(width), 3}, img.scale(height, width))
}

// picture is a decoded image. at returns red, green and blue of a pixel.
type picture struct {
	height, width int
	at            func(x, y int) [3]uint8
}

// decodeImage returns the pixels of a file.
func decodeImage(file []byte) (*picture, error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(file))
	switch {
	case err != nil:
		return nil, status.Errorf(status.DataLoss, "%w", err)
	case config.Width*config.Height > maxPixels:
		return nil, status.InvalidArgumentf("%d x %d pixels, at most %d are read", config.Width, config.Height, maxPixels)
	case format == "jpeg":
		p, err := jpeg.Decode(context.Background(), string(file), jpeg.DecodeOptions{Channels: 3, Ratio: 1, Smooth: true, Fast: true})
		if err != nil {
			return nil, status.Errorf(status.DataLoss, "%w", err)
		}
		return &picture{p.Height, p.Width, func(x, y int) [3]uint8 { return [3]uint8(p.Pix[(y*p.Width+x)*3:]) }}, nil
	}
	img, _, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, status.Errorf(status.DataLoss, "%w", err)
	}
	b := img.Bounds()
	return &picture{b.Dy(), b.Dx(), func(x, y int) [3]uint8 { return rgb(img.At(b.Min.X+x, b.Min.Y+y)) }}, nil
}

// rgb returns a color without its transparency. Of samples of 16 bits the lower 8 are left out.
func rgb(c color.Color) [3]uint8 {
	switch c := c.(type) {
	case color.NRGBA:
		return [3]uint8{c.R, c.G, c.B}
	case color.NRGBA64:
		return [3]uint8{uint8(c.R >> 8), uint8(c.G >> 8), uint8(c.B >> 8)}
	}
	r, g, b, _ := c.RGBA()
	return [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}
}

// scale interpolates linearly between the centers of the pixels.
func (p *picture) scale(height, width int) []float32 {
	out := make([]float32, 0, height*width*3)
	columns := make([]position, width)
	for x := range columns {
		columns[x] = between(x, width, p.width)
	}
	for y := range height {
		row := between(y, height, p.height)
		for _, x := range columns {
			above, below := [2][3]uint8{p.at(x.lo, row.lo), p.at(x.hi, row.lo)}, [2][3]uint8{p.at(x.lo, row.hi), p.at(x.hi, row.hi)}
			for c := range 3 {
				top := mix(float32(above[0][c]), float32(above[1][c]), x.fraction)
				bottom := mix(float32(below[0][c]), float32(below[1][c]), x.fraction)
				out = append(out, mix(top, bottom, row.fraction))
			}
		}
	}
	return out
}

// mix rounds the product, as the operation does: it is not fused with the sum.
func mix(a, b, fraction float32) float32 { return a + float32((b-a)*fraction) }

// position is a place between two pixels of a side, and the fraction of the way between them.
type position struct {
	lo, hi   int
	fraction float32
}

// between returns the position of pixel i of size pixels in a side of n pixels.
func between(i, size, n int) position {
	at := float32((float32(i)+0.5)*(float32(n)/float32(size))) - 0.5
	at = min(max(at, 0), float32(n-1))
	lo := int(at)
	return position{lo, min(lo+1, n-1), at - float32(lo)}
}
