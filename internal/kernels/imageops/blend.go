package imageops

import (
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// blender interpolates between pixels, first along rows and then between rows. It keeps the last
// two interpolated rows, because consecutive outputs often use the same ones.
type blender struct {
	places   []simd.Between // of the pixels of an output row
	channels int
	rows     [2]blended
}

type blended struct {
	of     *float32 // first element of the source row; identifies it
	pixels []float32
}

// blend interpolates between rows top and bottom. share is the weight of bottom.
func (b *blender) blend(out, top, bottom []float32, share float32) {
	i := 0
	if b.rows[1].of == &top[0] || b.rows[0].of == &bottom[0] && &top[0] != &bottom[0] {
		i = 1
	}
	above := b.row(i, top, len(out))
	below := above
	if &top[0] != &bottom[0] {
		below = b.row(1-i, bottom, len(out))
	}
	simd.Lerp(out, above, below, share)
}

// row returns the n interpolated elements of a row. They are cached in entry i.
func (b *blender) row(i int, row []float32, n int) []float32 {
	r := &b.rows[i]
	if r.of != &row[0] {
		//sizedmake:ok one row of the output
		r.of, r.pixels = &row[0], slices.Grow(r.pixels[:0], n)[:n]
		simd.LerpPixels(r.pixels, row, b.places, b.channels)
	}
	return r.pixels
}

// move sets the positions and drops the cached rows.
func (b *blender) move(places []simd.Between) {
	b.places = places
	b.rows[0].of, b.rows[1].of = nil, nil
}

// blenders is the free list of one operation.
type blenders struct {
	mu   sync.Mutex
	idle []*blender
}

func (b *blenders) get() *blender {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.idle)
	if n == 0 {
		return new(blender)
	}
	last := b.idle[n-1]
	b.idle = b.idle[:n-1]
	return last
}

func (b *blenders) put(last *blender) {
	b.mu.Lock()
	b.idle = append(b.idle, last)
	b.mu.Unlock()
}
