package array

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// identities numbers the distinct elements of a tensor in order of appearance and returns the
// number of each element. Zeros of either sign are equal, and a NaN equals nothing, as in
// arithmetic.
func identities(ctx context.Context, in *tensor.Tensor) ([]int64, error) {
	table := identityTable(in.DType())
	if table == nil {
		return nil, status.InvalidArgumentf("elements of type %v cannot be compared", in.DType())
	}
	return table.number(ctx, in)
}

// numbering numbers the distinct elements of tensors. Elements of different tensors share the
// numbers of one numbering.
type numbering interface {
	number(ctx context.Context, t *tensor.Tensor) ([]int64, error)
	// find reports which elements have a number. It is called after number.
	find(ctx context.Context, t *tensor.Tensor) ([]bool, error)
}

func identityTable(dtype tensor.DType) numbering {
	switch dtype {
	case tensor.String:
		return &stringNumbers{}
	case tensor.Complex64:
		return newNumbers[complex64]()
	case tensor.Complex128:
		return newNumbers[complex128]()
	case tensor.Bool:
		return newWords(boolWord)
	case tensor.Int8:
		return newWords(intWord[int8])
	case tensor.Int16:
		return newWords(intWord[int16])
	case tensor.Int32:
		return newWords(intWord[int32])
	case tensor.Int64:
		return newWords(intWord[int64])
	case tensor.Uint8:
		return newWords(intWord[uint8])
	case tensor.Uint16:
		return newWords(intWord[uint16])
	case tensor.Uint32:
		return newWords(intWord[uint32])
	case tensor.Uint64:
		return newWords(intWord[uint64])
	case tensor.Float16:
		return newWords(func(v tensor.Float16Elem) (uint64, bool) { return floatWord(v.Float32()) })
	case tensor.BFloat16:
		return newWords(func(v tensor.BFloat16Elem) (uint64, bool) { return floatWord(v.Float32()) })
	case tensor.Float32:
		return newWords(floatWord[float32])
	case tensor.Float64:
		return newWords(floatWord[float64])
	}
	return nil
}

// numbers is a numbering that uses a Go map.
type numbers[T mapped] struct {
	known map[T]int64
	next  int64
	meter membudget.Meter // of known
}

type mapped interface {
	complex64 | complex128
}

func newNumbers[T mapped]() *numbers[T] { return &numbers[T]{known: map[T]int64{}} }

func (m *numbers[T]) number(_ context.Context, t *tensor.Tensor) ([]int64, error) {
	vals := tensor.Values[T](t)
	out := membudget.Make[int64](len(vals))
	for i, v := range vals {
		id, ok := m.known[v]
		if !ok {
			id = m.next
			m.meter.MustTakeEntry(0)
			m.next++
			m.known[v] = id
		}
		out[i] = id
	}
	return out, nil
}

func (m *numbers[T]) find(_ context.Context, t *tensor.Tensor) ([]bool, error) {
	vals := tensor.Values[T](t)
	out := membudget.Make[bool](len(vals))
	for i, v := range vals {
		_, out[i] = m.known[v]
	}
	return out, nil
}

func boolWord(v bool) (uint64, bool) {
	if v {
		return 1, true
	}
	return 0, true
}

func intWord[T intarg.Integer](v T) (uint64, bool) { return uint64(v), true }

// floatWord returns the bits of v, with one value for zeros of either sign. ok is false for NaN.
func floatWord[T float32 | float64](v T) (uint64, bool) {
	if v == 0 { // positive or negative
		return 0, true
	}
	return math.Float64bits(float64(v)), v == v
}

// words is a numbering for elements that are equal if their 64-bit words are. It is an
// open-addressing hash table that is at most half full.
type words[T tensor.Elem] struct {
	word  func(T) (w uint64, ok bool) // ok is false for elements that equal nothing
	slots []wordSlot                  // length is a power of two
	known int                         // number of used slots
	next  int64
}

type wordSlot struct {
	word uint64
	id   int64 // number plus one; 0 if the slot is free
}

func newWords[T tensor.Elem](word func(T) (uint64, bool)) *words[T] {
	return &words[T]{word: word, slots: make([]wordSlot, 128)}
}

// wordSeed randomizes the hash function, so that inputs cannot be chosen to collide.
var wordSeed = [2]uint64{rand.Uint64(), rand.Uint64() | 1}

// slot returns the slot of a word, or the free slot for it.
func (m *words[T]) slot(w uint64) *wordSlot {
	high, low := bits.Mul64(w^wordSeed[0], wordSeed[1])
	mask := uint64(len(m.slots) - 1)
	for i := high ^ low; ; i++ {
		if s := &m.slots[i&mask]; s.id == 0 || s.word == w {
			return s
		}
	}
}

func (m *words[T]) grow() {
	old := m.slots
	m.slots = membudget.Make[wordSlot](4 * len(old))
	for _, s := range old {
		if s.id != 0 {
			*m.slot(s.word) = s
		}
	}
}

func (m *words[T]) number(_ context.Context, t *tensor.Tensor) ([]int64, error) {
	vals := tensor.Values[T](t)
	out := membudget.Make[int64](len(vals))
	if m.known == 0 && len(vals) > 64 { // sized for all-distinct elements, up to a limit
		m.slots = membudget.Make[wordSlot](2 << bits.Len(uint(min(len(vals), 4096)-1)))
	}
	for i, v := range vals {
		w, ok := m.word(v)
		if !ok {
			out[i] = m.next
			m.next++
			continue
		}
		s := m.slot(w)
		if s.id == 0 {
			if m.known++; 2*m.known > len(m.slots) {
				m.grow()
				s = m.slot(w)
			}
			m.next++
			*s = wordSlot{w, m.next}
		}
		out[i] = s.id - 1
	}
	return out, nil
}

func (m *words[T]) find(_ context.Context, t *tensor.Tensor) ([]bool, error) {
	vals := tensor.Values[T](t)
	out := membudget.Make[bool](len(vals))
	for i, v := range vals {
		w, ok := m.word(v)
		out[i] = ok && m.slot(w).id != 0
	}
	return out, nil
}
