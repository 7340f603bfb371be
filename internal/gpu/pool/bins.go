package pool

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// binCount is the number of bins. Bin i has free chunks of at least 256<<i bytes, and of less than
// twice that, except for the last.
const binCount = 21

// bins are the free chunks, in each bin by size and then by place.
type bins [binCount][]*chunk

func binOf(size int) int { return min(bits.Len(uint(size/Granule))-1, binCount-1) }

func order(a, b *chunk) int {
	return cmp.Or(cmp.Compare(a.mem.Size, b.mem.Size), cmp.Compare(a.mem.Base, b.mem.Base), cmp.Compare(a.mem.Off, b.mem.Off))
}

func (b *bins) put(c *chunk) {
	bin := &b[binOf(c.mem.Size)]
	i, _ := slices.BinarySearchFunc(*bin, c, order)
	*bin = slices.Insert(*bin, i, c)
}

func (b *bins) remove(c *chunk) {
	bin := &b[binOf(c.mem.Size)]
	i, found := slices.BinarySearchFunc(*bin, c, order)
	if !found {
		panic(fmt.Sprintf("pool: free chunk %+v is in no bin", c.mem))
	}
	*bin = slices.Delete(*bin, i, i+1)
}

// take removes the smallest chunk of at least size bytes, or returns nil.
func (b *bins) take(size int) *chunk {
	for i := binOf(size); i < binCount; i++ {
		at, _ := slices.BinarySearchFunc(b[i], size, func(c *chunk, size int) int {
			if c.mem.Size < size {
				return -1
			}
			return 1
		})
		if at < len(b[i]) {
			c := b[i][at]
			b[i] = slices.Delete(b[i], at, at+1)
			return c
		}
	}
	return nil
}

// largest returns the size of the largest free chunk.
func (b *bins) largest() int {
	for i := binCount - 1; i >= 0; i-- {
		if n := len(b[i]); n > 0 {
			return b[i][n-1].mem.Size
		}
	}
	return 0
}

// Dump describes the pool for a log: a line for each bin that has chunks, and one for the sum.
func (p *Pool) Dump() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	type sum struct{ chunks, used, bytes, usedBytes, asked int }
	var sums [binCount]sum
	for _, first := range p.regions {
		for c := first; c != nil; c = c.next {
			s := &sums[binOf(c.mem.Size)]
			s.chunks++
			s.bytes += c.mem.Size
			if c.asked > 0 {
				s.used++
				s.usedBytes += c.mem.Size
				s.asked += c.asked
			}
		}
	}
	var b strings.Builder
	for i, s := range sums {
		if s.chunks > 0 {
			fmt.Fprintf(&b, "%s: chunks from %d bytes: %d of %d in use, %d of %d bytes, %d asked for\n", p.options.Name, Granule<<i, s.used,
				s.chunks, s.usedBytes, s.bytes, s.asked)
		}
	}
	fmt.Fprintf(&b, "%s: %d regions with %d bytes, of at most %d; %d bytes in use, at most %d\n", p.options.Name, len(p.regions),
		p.stats.Reserved, p.options.Limit, p.stats.InUse, p.stats.PeakInUse)
	return b.String()
}
