// Package digits generates training data for the examples: ten coarse patterns of 28x28 pixels in
// place of the digits of MNIST, with random shift, intensity and noise.
package digits

import "math/rand/v2"

// Sizes of the images.
const (
	Side    = 28
	Pixels  = Side * Side
	Classes = 10
)

// cell is the side of the squares in a pattern, in pixels.
const cell = 4

// Batches generates images. The patterns are fixed; the seed determines their order and variation.
type Batches struct {
	patterns [Classes][Pixels]float32
	rng      *rand.Rand
}

// New returns a generator of images with a seed.
func New(seed uint64) *Batches {
	b := &Batches{rng: rand.New(rand.NewPCG(seed, 0))}
	fixed := rand.New(rand.NewPCG(7, 7))
	for d := range b.patterns {
		var squares [Side / cell][Side / cell]float32
		for r := range squares {
			for c := range squares[r] {
				if fixed.Float32() > 0.6 {
					squares[r][c] = 1
				}
			}
		}
		for i := range b.patterns[d] {
			b.patterns[d][i] = squares[i/Side/cell][i%Side/cell]
		}
	}
	return b
}

// Next returns n images with values in [0, 1], of shape [n, Pixels], and their one-hot labels, of
// shape [n, Classes].
func (b *Batches) Next(n int) (images, labels []float32) {
	images, labels = make([]float32, n*Pixels), make([]float32, n*Classes)
	for i := range n {
		digit := b.rng.IntN(Classes)
		labels[i*Classes+digit] = 1
		b.draw(images[i*Pixels:(i+1)*Pixels], digit)
	}
	return images, labels
}

// draw draws a pattern that is shifted by up to 5 pixels in each direction.
func (b *Batches) draw(image []float32, digit int) {
	down, right, strength := b.rng.IntN(11)-5, b.rng.IntN(11)-5, 0.4+0.6*b.rng.Float32()
	for i := range image {
		row, col := (i/Side+down+Side)%Side, (i%Side+right+Side)%Side
		v := strength*b.patterns[digit][row*Side+col] + 0.3*float32(b.rng.NormFloat64())
		image[i] = min(max(v, 0), 1)
	}
}
