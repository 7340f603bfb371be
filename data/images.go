package data

import (
	"context"
	"image"
	_ "image/jpeg" // a format of ImageFolder
	_ "image/png"  // a format of ImageFolder
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/format/fileio"
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
	names := New([]Spec{{tensor.String, tensor.MakePartial()}, {tensor.Int32, tensor.MakePartial()}}, len(paths),
		func(context.Context, int) iter.Seq2[Element, error] {
			return func(yield func(Element, error) bool) {
				for i, path := range paths {
					if !yield(Element{tensor.Scalar(path), tensor.Scalar(labels[i])}, nil) {
						return
					}
				}
			}
		})
	spec := []Spec{{tensor.Float32, tensor.MakePartial(int64(height), int64(width), 3)}, {tensor.Int32, tensor.MakePartial()}}
	return names.Map(workers, spec, func(e Element) (Element, error) {
		pixels, err := ReadImage(tensor.Value[string](&e[0]), height, width)
		return Element{pixels, e[1]}, err
	}), classes, nil
}

// ReadImage reads a PNG or JPEG file and scales it to a size, as [ImageFolder] does: a float32
// tensor [height, width, 3] of values from 0 to 255.
func ReadImage(path string, height, width int) (tensor.Tensor, error) {
	f, err := fileio.Files{}.Open(path)
	if err != nil {
		return tensor.Tensor{}, fileError(path, err)
	}
	defer f.Close()
	config, _, err := image.DecodeConfig(f)
	if err == nil && config.Width*config.Height > maxPixels {
		return tensor.Tensor{}, status.InvalidArgumentf("data: %s has %d x %d pixels, at most %d are read", path, config.Width, config.Height, maxPixels)
	}
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	var img image.Image
	if err == nil {
		img, _, err = image.Decode(f)
	}
	if err != nil {
		return tensor.Tensor{}, status.Errorf(status.DataLoss, "data: %s: %w", path, err)
	}
	return tensor.FromSlice(tensor.Shape{int64(height), int64(width), 3}, scale(img, height, width))
}

// scale interpolates linearly between the centers of the pixels.
func scale(img image.Image, height, width int) []float32 {
	b := img.Bounds()
	out := make([]float32, 0, height*width*3)
	for y := range height {
		y0, y1, fy := between(y, height, b.Dy())
		for x := range width {
			x0, x1, fx := between(x, width, b.Dx())
			corners := [4][3]float32{
				rgb(img, b.Min.X+x0, b.Min.Y+y0), rgb(img, b.Min.X+x1, b.Min.Y+y0),
				rgb(img, b.Min.X+x0, b.Min.Y+y1), rgb(img, b.Min.X+x1, b.Min.Y+y1),
			}
			for c := range 3 {
				top := corners[0][c] + (corners[1][c]-corners[0][c])*fx
				bottom := corners[2][c] + (corners[3][c]-corners[2][c])*fx
				out = append(out, top+(bottom-top)*fy)
			}
		}
	}
	return out
}

// between returns the two pixels of a side of n pixels between which pixel i of size pixels lies,
// and the fraction of the way from the first to the second.
func between(i, size, n int) (lo, hi int, fraction float32) {
	at := (float32(i)+0.5)*float32(n)/float32(size) - 0.5
	at = min(max(at, 0), float32(n-1))
	lo = int(at)
	return lo, min(lo+1, n-1), at - float32(lo)
}

// rgb returns the color of a pixel, from 0 to 255.
func rgb(img image.Image, x, y int) [3]float32 {
	r, g, b, _ := img.At(x, y).RGBA()
	return [3]float32{float32(r) / 257, float32(g) / 257, float32(b) / 257}
}
