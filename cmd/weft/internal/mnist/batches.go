package mnist

import "math/rand/v2"

// Batches returns the images of a split in random order, each once per epoch. It must not be used
// concurrently.
type Batches struct {
	split *Split
	rng   *rand.Rand
	order []int
	next  int // position in order
}

// Batches returns an endless sequence of the images. The seed determines the order.
func (s *Split) Batches(seed uint64) *Batches {
	order := make([]int, s.Len())
	for i := range order {
		order[i] = i
	}
	return &Batches{split: s, rng: rand.New(rand.NewPCG(seed, 0)), order: order, next: len(order)}
}

// Next fills x, of shape [n, Pixels], with images scaled to [0, 1] and y, of shape [n, Classes],
// with one-hot labels. The length of y determines the number n of images.
func (b *Batches) Next(x, y []float32) {
	for i := range len(y) / Classes {
		if b.next == len(b.order) {
			b.rng.Shuffle(len(b.order), func(i, j int) { b.order[i], b.order[j] = b.order[j], b.order[i] })
			b.next = 0
		}
		b.split.fill(b.order[b.next], x[i*Pixels:(i+1)*Pixels], y[i*Classes:(i+1)*Classes])
		b.next++
	}
}

// All returns every image in order, of shape [Len(), Pixels] and scaled to [0, 1], and the one-hot
// labels, [Len(), Classes].
func (s *Split) All() (x, y []float32) {
	x, y = make([]float32, s.Len()*Pixels), make([]float32, s.Len()*Classes)
	for i := range s.Len() {
		s.fill(i, x[i*Pixels:(i+1)*Pixels], y[i*Classes:(i+1)*Classes])
	}
	return x, y
}

func (s *Split) fill(i int, x, y []float32) {
	for j, ink := range s.Image(i) {
		x[j] = float32(ink) / 255
	}
	clear(y)
	y[s.Label(i)] = 1
}
