// Package digits draws the data that the examples train on: ten coarse patterns of 28x28 pixels,
// which stand for the digits of MNIST, shifted, fainter or stronger, and in noise.
package digits

import "math/rand/v2"

// What the images look like.
const (
	Side    = 28
	Pixels  = Side * Side
	Classes = 10
)

// cell is the width of the squares that patterns are made of, in pixels.
const cell = 4

// Batches draws images. The patterns are always the same; the seed decides which of them come, and
// how.
type Batches struct {
	patterns [Classes][Pixels]float32
	rng      *rand.Rand
}

// New returns a source of images that follows from the seed.
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

// Next returns n images, one after the other, with values between 0 and 1, and the one-hot labels
// of each.
func (b *Batches) Next(n int) (images, labels []float32) {
	images, labels = make([]float32, n*Pixels), make([]float32, n*Classes)
	for i := range n {
		digit := b.rng.IntN(Classes)
		labels[i*Classes+digit] = 1
		b.draw(images[i*Pixels:(i+1)*Pixels], digit)
	}
	return images, labels
}

// draw draws a pattern that is shifted by up to 5 pixels either way.
func (b *Batches) draw(image []float32, digit int) {
	down, right, strength := b.rng.IntN(11)-5, b.rng.IntN(11)-5, 0.4+0.6*b.rng.Float32()
	for i := range image {
		row, col := (i/Side+down+Side)%Side, (i%Side+right+Side)%Side
		v := strength*b.patterns[digit][row*Side+col] + 0.3*float32(b.rng.NormFloat64())
		image[i] = min(max(v, 0), 1)
	}
}
