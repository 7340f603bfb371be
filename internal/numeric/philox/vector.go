package philox

import (
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// The vector code of each level, or nil. Its results are bit-identical to those of the Go code.
var (
	wordsAt   [simd.AVX512 + 1]func(dst *uint32, place *[11]uint64, n int)
	unitsAt   [simd.AVX512 + 1]func(dst, src *float32, n int)
	normalsAt [simd.AVX512 + 1]func(dst *float32, words *uint32, n int, logs *[2][16]float64)
)

// wordsAt takes a multiple of batch counters.
const batch = 32

// laneOrder holds the counter of each lane of a vector, chosen such that consecutive words are
// stored consecutively.
var laneOrder = [simd.AVX512 + 1][]uint64{
	simd.AVX2:   {0, 2, 1, 3},
	simd.AVX512: {0, 4, 1, 5, 2, 6, 3, 7},
}

// most is the number of outputs that are computed at once. They stay in the L1 cache.
const most = 256

// scratch is memory that the assembly writes to. It is pooled, because arguments of calls through a
// function variable escape to the heap.
type scratch struct {
	place   [11]uint64
	words   [most][4]uint32
	samples [2][4 * most]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// outputs computes the outputs of the generator at n positions that are step apart.
func (s *scratch) outputs(g Generator, step uint64, n int) [][4]uint32 {
	level, done := simd.Current(), 0
	low, high := g.Counter()
	if whole := n / batch * batch; wordsAt[level] != nil && whole > 0 && step <= 1<<32 && low < 1<<63 {
		order := laneOrder[level]
		for i, lane := range order {
			s.place[i] = low + lane*step
		}
		s.place[8], s.place[9], s.place[10] = step*uint64(len(order)), high, g.Key()
		wordsAt[level](&s.words[0][0], &s.place, whole)
		g.Skip(uint64(whole) * step)
		done = whole
	}
	for i := range s.words[done:n] {
		at := g
		s.words[done+i] = at.Next()
		g.Skip(step)
	}
	return s.words[:n]
}

// flat returns the words of outputs.
func flat(x [][4]uint32) []uint32 { return unsafe.Slice(&x[0][0], 4*len(x)) }

// units sets dst to the numbers in [0, 1) computed from words.
func units(dst []float32, words []uint32) {
	if f := unitsAt[simd.Current()]; f != nil {
		f(&dst[0], (*float32)(unsafe.Pointer(&words[0])), len(dst))
		return
	}
	for i := range dst {
		dst[i] = Unit32(words[i])
	}
}

// normals sets dst to samples of the standard normal distribution, computed from pairs of words.
// Their number must be a multiple of 16.
func normals(dst []float32, words []uint32) {
	if f := normalsAt[simd.Current()]; f != nil {
		f(&dst[0], &words[0], len(dst), &logColumns)
		return
	}
	for i := 0; i < len(dst); i += 2 {
		dst[i], dst[i+1] = Normal32(words[i], words[i+1])
	}
}

// logColumns holds the columns of logTable.
var logColumns = func() (columns [2][16]float64) {
	for i, part := range logTable {
		columns[0][i], columns[1][i] = part[0], part[1]
	}
	return columns
}()
