package table

import (
	"context"
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// index assigns consecutive numbers to keys, starting at 0.
type index interface {
	len() int
	// find sets numbers[i] to the number of key i, or to -1 if it is absent. It ends with the
	// context, as do add and remove.
	find(ctx context.Context, keys *tensor.Tensor, numbers []int64) error
	// add is like find, but assigns the next number to an absent key. It changes nothing if there
	// is no memory or if the context ends.
	add(ctx context.Context, a *membudget.Account, keys *tensor.Tensor, numbers []int64) error
	// remove removes keys. After each removal the key with the last number receives the freed
	// number, and dropped is called with it.
	remove(ctx context.Context, a *membudget.Account, keys *tensor.Tensor, dropped func(number int)) error
	// truncate removes the keys from number n on.
	truncate(n int)
	// export returns a vector of the keys in the order of their numbers.
	export() (tensor.Tensor, error)
	// release frees the memory. The index must not be used afterwards.
	release()
}

// key is the constraint for key types.
type key interface{ int32 | int64 | string }

// newIndex returns an empty index of keys of a type. Accounts pay for their text in text.
func newIndex(dtype tensor.DType, text *membudget.Holding) (index, error) {
	switch dtype {
	case tensor.Int32:
		return newIndexOf[int32](dtype, text)
	case tensor.Int64:
		return newIndexOf[int64](dtype, text)
	case tensor.String:
		return newIndexOf[string](dtype, text)
	}
	return nil, wrongKeyType(dtype)
}

func wrongKeyType(dtype tensor.DType) error {
	return status.InvalidArgumentf("keys of a table cannot be %v", dtype)
}

// indexOf is a hash table with linear probing. The simple design is a Go map, which grows without
// asking for memory and does not say how much it takes. All that an index holds is in two tensors,
// so it is charged before it is taken, and what it has is known.
type indexOf[K key] struct {
	seed maphash.Seed       // of strings
	salt uint64             // of integers
	keys column             // by number
	text *membudget.Holding // of strings
	// The number of slots is a power of two, and at most half of them are used. A used slot holds
	// the number of a key plus 1 in its low bits and the high bits of its hash above them. An empty
	// one is 0.
	slots tensor.Tensor // [n] of uint64
}

const (
	numberBits = 40 // 10^12 keys, more than the largest tensor has
	numberMask = 1<<numberBits - 1
	// minSlots is the number of slots of a small index: 128 bytes.
	minSlots = 16
)

func newIndexOf[K key](dtype tensor.DType, text *membudget.Holding) (*indexOf[K], error) {
	x := &indexOf[K]{seed: maphash.MakeSeed(), text: text}
	x.salt = maphash.String(x.seed, "")
	var err error
	x.keys, err = newColumn(nil, dtype, 0, 1)
	if err == nil {
		x.slots, err = resource.Zeros(nil, tensor.Uint64, tensor.Shape{minSlots})
	}
	return x, err
}

func (x *indexOf[K]) len() int { return x.keys.n }

// hash returns the hash of a key. It differs from table to table, so that no client can choose keys
// that collide.
func (x *indexOf[K]) hash(k K) uint64 {
	switch k := any(k).(type) {
	case int32:
		return mix(uint64(k), x.salt)
	case int64:
		return mix(uint64(k), x.salt)
	default:
		return maphash.String(x.seed, k.(string)) //nolint:forcetypeassert // the third key type
	}
}

// mix hashes an integer: the multiplication of wyhash.
func mix(k, salt uint64) uint64 {
	hi, lo := bits.Mul64(k^salt^0xa0761d6478bd642f, k^bits.RotateLeft64(salt, 32)^0xe7037ed1a0b428db)
	hi, lo = bits.Mul64(hi^lo^salt, 0x8ebc6af09c88c6e3)
	return hi ^ lo
}

// lookup returns the slot of a key and its number. If the key is absent, the slot is an empty one,
// and the number is -1.
func lookup[K key](slots []uint64, keys []K, k K, hash uint64) (slot int, number int64) {
	mask := uint64(len(slots) - 1)
	tag := hash &^ numberMask
	for at := hash & mask; ; at = (at + 1) & mask {
		s := slots[at]
		if s == 0 {
			return int(at), -1
		}
		if s&^numberMask == tag {
			if n := s&numberMask - 1; keys[n] == k {
				return int(at), int64(n)
			}
		}
	}
}

// findGrain is the minimum number of keys per parallel block: a look-up in a large table costs
// about 50 ns.
const findGrain = 512

func (x *indexOf[K]) find(ctx context.Context, keys *tensor.Tensor, numbers []int64) error {
	all, slots, known := tensor.Values[K](keys), tensor.Values[uint64](&x.slots), tensor.Values[K](&x.keys.t)
	var ended atomic.Bool
	parallel.For(len(all), findGrain, func(lo, hi int) {
		at := progress(ctx)
		for i, k := range all[lo:hi] {
			if at.Pass(textSize(k)) != nil {
				ended.Store(true)
				return
			}
			_, numbers[lo+i] = lookup(slots, known, k, x.hash(k))
		}
	})
	if ended.Load() {
		return ctx.Err()
	}
	return nil
}

func (x *indexOf[K]) add(ctx context.Context, a *membudget.Account, keys *tensor.Tensor, numbers []int64) error {
	all := tensor.Values[K](keys)
	asked := textOf(keys)
	if err := resource.Hold(x.text, a, asked); err != nil {
		return err
	}
	if err := x.reserve(ctx, a, keys, numbers); err != nil {
		x.text.Shrink(asked)
		return err
	}
	var added int64
	slots, known := tensor.Values[uint64](&x.slots), tensor.Values[K](&x.keys.t)
	at, before := progress(ctx), x.keys.n
	for i, k := range all {
		if err := at.Pass(textSize(k)); err != nil {
			x.text.Shrink(asked - added)
			x.truncate(before)
			return err
		}
		hash := x.hash(k)
		slot, n := lookup(slots, known, k, hash)
		if n < 0 {
			n = int64(x.keys.n)
			known[n] = k
			slots[slot] = hash&^numberMask | uint64(n+1)
			x.keys.n++
			if asked > 0 {
				added += textIn(known[n : n+1])
			}
		}
		numbers[i] = n
	}
	x.text.Shrink(asked - added)
	return nil
}

// reserve ensures capacity for keys. numbers is scratch memory.
func (x *indexOf[K]) reserve(ctx context.Context, a *membudget.Account, keys *tensor.Tensor, numbers []int64) error {
	more := keys.NumElements()
	if x.keys.n+more > min(x.keys.t.Dim(0), x.slots.Dim(0)/2) { // count those that are absent
		if err := x.find(ctx, keys, numbers); err != nil {
			return err
		}
		more = 0
		for _, n := range numbers {
			if n < 0 {
				more++
			}
		}
	}
	if more == 0 {
		return nil
	}
	n := x.keys.n + more
	if err := x.rehash(ctx, a, n); err != nil {
		return err
	}
	if err := x.keys.reserve(a, n); err != nil {
		return err
	}
	return x.keys.own(a)
}

// rehash ensures that at most half of the slots are used by n keys, and at least an eighth of them.
func (x *indexOf[K]) rehash(ctx context.Context, a *membudget.Account, n int) error {
	size := x.slots.Dim(0)
	for size < 2*n {
		size *= 2
	}
	for size > minSlots && size > 8*n {
		size /= 2
	}
	if size == x.slots.Dim(0) {
		return nil
	}
	fresh, err := resource.Zeros(a, tensor.Uint64, tensor.Shape{int64(size)})
	if err != nil {
		return err
	}
	slots, mask := tensor.Values[uint64](&fresh), uint64(size-1)
	passed := progress(ctx)
	for n, k := range tensor.Values[K](&x.keys.t)[:x.keys.n] {
		if err := passed.Pass(textSize(k)); err != nil {
			fresh.Release()
			return err
		}
		hash := x.hash(k)
		at := hash & mask
		for slots[at] != 0 {
			at = (at + 1) & mask
		}
		slots[at] = hash&^numberMask | uint64(n+1)
	}
	x.slots.Release()
	x.slots = fresh
	return nil
}

func (x *indexOf[K]) remove(ctx context.Context, a *membudget.Account, keys *tensor.Tensor, dropped func(int)) error {
	if err := x.keys.own(a); err != nil {
		return err
	}
	slots, known := tensor.Values[uint64](&x.slots), tensor.Values[K](&x.keys.t)
	passed := progress(ctx)
	for _, k := range tensor.Values[K](keys) {
		if err := passed.Pass(textSize(k)); err != nil {
			return err
		}
		slot, n := lookup(slots, known, k, x.hash(k))
		if n < 0 {
			continue
		}
		if last := x.keys.n - 1; int(n) != last {
			moved := known[last]
			at, _ := lookup(slots, known, moved, x.hash(moved))
			slots[at] = slots[at]&^numberMask | uint64(n+1)
		}
		x.text.Shrink(x.keys.drop(int(n)))
		x.free(slots, known, slot) // which needs the moved key at its number
		dropped(int(n))
	}
	if x.keys.isSparse() {
		// without memory for smaller tensors the larger ones stay
		_ = x.keys.resize(a, 2*x.keys.n)
		_ = x.rehash(ctx, a, max(1, x.keys.n))
	}
	return nil
}

func (x *indexOf[K]) truncate(n int) {
	slots, known := tensor.Values[uint64](&x.slots), tensor.Values[K](&x.keys.t)
	for x.keys.n > n {
		last := known[x.keys.n-1]
		slot, _ := lookup(slots, known, last, x.hash(last))
		x.free(slots, known, slot)
		x.text.Shrink(x.keys.drop(x.keys.n - 1))
	}
}

// free empties a slot, and moves those after it that a search would not find otherwise.
func (x *indexOf[K]) free(slots []uint64, known []K, slot int) {
	mask := uint64(len(slots) - 1)
	hole := uint64(slot)
	for at := (hole + 1) & mask; slots[at] != 0; at = (at + 1) & mask {
		home := x.hash(known[slots[at]&numberMask-1]) & mask
		if (at-home)&mask >= (at-hole)&mask {
			slots[hole] = slots[at]
			hole = at
		}
	}
	slots[hole] = 0
}

// textOf returns the number of bytes of strings; 0 for numbers.
func textOf(t *tensor.Tensor) int64 {
	if t.DType() != tensor.String {
		return 0
	}
	return textIn(tensor.Values[string](t))
}

// textIn returns the number of bytes of strings; 0 for numbers.
func textIn[K key](keys []K) (n int64) {
	if all, ok := any(keys).([]string); ok {
		for _, s := range all {
			n += int64(len(s))
		}
	}
	return n
}

func (x *indexOf[K]) export() (tensor.Tensor, error) {
	return x.keys.export(tensor.Shape{int64(x.keys.n)})
}

func (x *indexOf[K]) release() {
	x.keys.t.Release()
	x.slots.Release()
}
