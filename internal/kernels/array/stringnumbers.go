package array

import (
	"context"
	"hash/maphash"
	"math/bits"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// stringNumbers is a numbering of strings. It is an open-addressing hash table that is at most half
// full.
//
// The simple design is a map from strings to numbers. It was not enough: the garbage collector
// reads each of its keys, so a step near the limit of memory spent its time in collections. The
// slots hold no pointers. They refer to elements of the numbered tensor.
type stringNumbers struct {
	vals  []string // of the numbered tensor
	ids   []int64  // their numbers
	slots []stringSlot
	next  int64
}

// stringSlot refers to the first element with a value.
type stringSlot struct {
	hash  uint32
	first uint32 // its index plus one; 0 if the slot is free
}

// stringSeed randomizes the hash function, so that inputs cannot be chosen to collide.
var stringSeed = maphash.MakeSeed()

// checkEvery is the number of strings between two looks at the context of the step. Many strings
// may share a long text.
const checkEvery = 16

// number numbers the elements of a tensor with fewer than 2^32 elements. It is called once.
func (m *stringNumbers) number(ctx context.Context, t *tensor.Tensor) ([]int64, error) {
	m.vals = tensor.Values[string](t)
	m.ids = membudget.Make[int64](len(m.vals))
	// The table is sized for elements that are all distinct, up to a limit.
	m.slots = membudget.Make[stringSlot](2 << bits.Len(uint(min(len(m.vals), 4096))))
	for i, v := range m.vals {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		hash := uint32(maphash.String(stringSeed, v))
		s := m.slot(hash, v)
		if s.first == 0 {
			if 2*(m.next+1) > int64(len(m.slots)) {
				m.grow()
				s = m.slot(hash, v)
			}
			*s = stringSlot{hash, uint32(i) + 1}
			m.ids[i] = m.next
			m.next++
			continue
		}
		m.ids[i] = m.ids[s.first-1]
	}
	return m.ids, nil
}

func (m *stringNumbers) find(ctx context.Context, t *tensor.Tensor) ([]bool, error) {
	vals := tensor.Values[string](t)
	out := membudget.Make[bool](len(vals))
	for i, v := range vals {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out[i] = m.slot(uint32(maphash.String(stringSeed, v)), v).first != 0
	}
	return out, nil
}

// slot returns the slot of a value with a hash, or the free slot for it.
func (m *stringNumbers) slot(hash uint32, v string) *stringSlot {
	mask := uint64(len(m.slots) - 1)
	for i := uint64(hash); ; i++ {
		s := &m.slots[i&mask]
		if s.first == 0 || s.hash == hash && m.vals[s.first-1] == v {
			return s
		}
	}
}

func (m *stringNumbers) grow() {
	old := m.slots
	m.slots = membudget.Make[stringSlot](2 * len(old))
	mask := uint64(len(m.slots) - 1)
	for _, s := range old {
		if s.first == 0 {
			continue
		}
		i := uint64(s.hash)
		for m.slots[i&mask].first != 0 {
			i++
		}
		m.slots[i&mask] = s
	}
}
