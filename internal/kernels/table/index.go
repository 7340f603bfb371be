package table

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// index assigns consecutive numbers to keys, starting at 0.
type index interface {
	len() int
	// find sets numbers[i] to the number of key i, or to -1 if it is absent.
	find(keys *tensor.Tensor, numbers []int64)
	// add is like find, but assigns the next number to an absent key.
	add(keys *tensor.Tensor, numbers []int64)
	// remove removes keys. After each removal the key with the last number receives the freed
	// number, and dropped is called with it.
	remove(keys *tensor.Tensor, dropped func(number int))
	// export returns a vector of the keys in the order of their numbers.
	export() tensor.Tensor
}

// key is the constraint for key types.
type key interface{ int32 | int64 | string }

// newIndex returns an empty index of keys of a type.
func newIndex(dtype tensor.DType) (index, error) {
	switch dtype {
	case tensor.Int32:
		return newIndexOf[int32](), nil
	case tensor.Int64:
		return newIndexOf[int64](), nil
	case tensor.String:
		return newIndexOf[string](), nil
	}
	return nil, wrongKeyType(dtype)
}

func wrongKeyType(dtype tensor.DType) error {
	return status.InvalidArgumentf("keys of a table cannot be %v", dtype)
}

type indexOf[K key] struct {
	numbers map[K]int64
	keys    []K // by number
}

func newIndexOf[K key]() *indexOf[K] { return &indexOf[K]{numbers: map[K]int64{}} }

func (x *indexOf[K]) len() int { return len(x.keys) }

// findGrain is the minimum number of keys per parallel block: a look-up in a large table costs
// about 50 ns.
const findGrain = 512

func (x *indexOf[K]) find(keys *tensor.Tensor, numbers []int64) {
	all := tensor.Values[K](keys)
	parallel.For(len(all), findGrain, func(lo, hi int) {
		for i, k := range all[lo:hi] {
			n, ok := x.numbers[k]
			if !ok {
				n = -1
			}
			numbers[lo+i] = n
		}
	})
}

func (x *indexOf[K]) add(keys *tensor.Tensor, numbers []int64) {
	for i, k := range tensor.Values[K](keys) {
		n, ok := x.numbers[k]
		if !ok {
			n = int64(len(x.keys))
			x.numbers[k] = n
			x.keys = append(x.keys, k)
		}
		numbers[i] = n
	}
}

func (x *indexOf[K]) remove(keys *tensor.Tensor, dropped func(int)) {
	for _, k := range tensor.Values[K](keys) {
		n, ok := x.numbers[k]
		if !ok {
			continue
		}
		last := len(x.keys) - 1
		moved := x.keys[last]
		x.keys[n], x.numbers[moved] = moved, n
		x.keys[last] = *new(K)
		x.keys = x.keys[:last]
		delete(x.numbers, k)
		dropped(int(n))
	}
}

func (x *indexOf[K]) export() tensor.Tensor { return tensor.Vector(slices.Clone(x.keys)...) }
