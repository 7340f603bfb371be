package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Sizes of the images of CIFAR-10.
const (
	side     = 32
	channels = 3
	classes  = 10
	pixels   = side * side
	record   = 1 + channels*pixels // a label, then the red, green and blue planes
)

// images reads or generates images.
type images struct {
	records []byte // contents of the files; nil to generate images
	rng     *rand.Rand
}

// newImages reads the training files in a folder. If dir is empty, images are generated.
func newImages(dir string) (*images, error) {
	d := &images{rng: rand.New(rand.NewPCG(1, 0))}
	if dir == "" {
		return d, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "data_batch_*.bin"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there is no data_batch_*.bin in %s", dir)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if len(b) == 0 || len(b)%record != 0 {
			return nil, fmt.Errorf("%s: %d bytes is not a multiple of the record size %d", file, len(b), record)
		}
		d.records = append(d.records, b...)
	}
	for i := 0; i < len(d.records); i += record {
		if d.records[i] >= classes {
			return nil, fmt.Errorf("%s: record %d has label %d", dir, i/record, d.records[i])
		}
	}
	return d, nil
}

// next returns n standardized images of shape [side, side, channels], and their labels.
func (d *images) next(n int) (out []float32, labels []int32) {
	out, labels = make([]float32, n*pixels*channels), make([]int32, n)
	for i := range n {
		image := out[i*pixels*channels : (i+1)*pixels*channels]
		if d.records == nil {
			labels[i] = d.draw(image)
		} else {
			labels[i] = d.read(image)
		}
		standardize(image)
	}
	return out, labels
}

// read sets image to a random image of the files, mirrored with probability 1/2.
func (d *images) read(image []float32) int32 {
	r := d.records[d.rng.IntN(len(d.records)/record)*record:][:record]
	mirrored := d.rng.IntN(2) == 1
	for p := range pixels {
		from := p
		if mirrored {
			from = p/side*side + side - 1 - p%side
		}
		for c := range channels {
			image[p*channels+c] = float32(r[1+c*pixels+from])
		}
	}
	return int32(r[0])
}

// draw sets image to waves whose direction, width and color depend on a random label.
func (d *images) draw(image []float32) int32 {
	label := d.rng.IntN(classes)
	angle, shift := float64(label%5)*math.Pi/5, d.rng.Float64()*2*math.Pi
	sin, cos := math.Sincos(angle)
	for p := range pixels {
		x, y := float64(p%side), float64(p/side)
		wave := math.Sin((x*cos+y*sin)*(0.5+0.4*float64(label/5)) + shift)
		for c := range channels {
			image[p*channels+c] = float32(wave*(0.5+0.5*float64((label+c)%3)) + 0.5*d.rng.NormFloat64())
		}
	}
	return int32(label)
}

// standardize scales an image to mean 0 and standard deviation 1.
func standardize(image []float32) {
	sum, squares := 0.0, 0.0
	for _, v := range image {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(image))
	mean := sum / n
	// the lower bound is for an image of a single color
	deviation := max(math.Sqrt(max(squares/n-mean*mean, 0)), 1/math.Sqrt(n))
	for i, v := range image {
		image[i] = float32((float64(v) - mean) / deviation)
	}
}
