package listops

import (
	"hash/maphash"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// trie is a persistent map with string keys. A change returns a new trie, which shares most nodes
// with the old one. Each level branches by four bits of the hash of the key (Bagwell, Ideal Hash
// Trees).
type trie[V any] struct {
	root *branch[V]
	n    int
}

const trieBits = 4

var trieSeed = maphash.MakeSeed()

// branch is an inner node of a trie. Nodes are immutable once they are part of a trie.
type branch[V any] struct {
	branches [1 << trieBits]*branch[V]
	leaves   [1 << trieBits][]leaf[V] // more than one only for equal hashes
}

type leaf[V any] struct {
	hash  uint64
	key   string
	value V
}

func slot(hash uint64, level int) int { return int(hash >> (trieBits * level) & (1<<trieBits - 1)) }

// get returns the value of a key.
func (t trie[V]) get(key string) (v V, ok bool) {
	hash := maphash.String(trieSeed, key)
	b := t.root
	for level := 0; b != nil; level++ {
		i := slot(hash, level)
		for _, l := range b.leaves[i] {
			if l.hash == hash && l.key == key {
				return l.value, true
			}
		}
		b = b.branches[i]
	}
	return v, false
}

// set returns the trie with the value of key set.
func (t trie[V]) set(key string, v V) trie[V] {
	_, had := t.get(key)
	if !had {
		t.n++
	}
	t.root = t.root.set(leaf[V]{maphash.String(trieSeed, key), key, v}, 0)
	return t
}

func (b *branch[V]) copy() *branch[V] {
	if b == nil {
		return &branch[V]{}
	}
	out := *b
	return &out
}

func (b *branch[V]) set(l leaf[V], level int) *branch[V] {
	out, i := b.copy(), slot(l.hash, level)
	have := out.leaves[i]
	switch {
	case out.branches[i] != nil:
		out.branches[i] = out.branches[i].set(l, level+1)
	case len(have) == 0:
		out.leaves[i] = []leaf[V]{l}
	case have[0].hash == l.hash:
		//sizedmake:ok keys whose hash is the same
		others := slices.DeleteFunc(slices.Clone(have), func(o leaf[V]) bool { return o.key == l.key })
		out.leaves[i] = append(others, l)
	default: // the leaves differ at a deeper level
		var below *branch[V]
		//sizedmake:ok keys whose hash is the same
		for _, o := range append(slices.Clone(have), l) {
			below = below.set(o, level+1)
		}
		out.branches[i], out.leaves[i] = below, nil
	}
	return out
}

// remove returns the trie without key.
func (t trie[V]) remove(key string) trie[V] {
	if _, had := t.get(key); had {
		t.root = t.root.remove(maphash.String(trieSeed, key), key, 0)
		t.n--
	}
	return t
}

func (b *branch[V]) remove(hash uint64, key string, level int) *branch[V] {
	out, i := b.copy(), slot(hash, level)
	if out.branches[i] != nil {
		out.branches[i] = out.branches[i].remove(hash, key, level+1)
	} else {
		//sizedmake:ok keys whose hash is the same
		out.leaves[i] = slices.DeleteFunc(slices.Clone(out.leaves[i]), func(l leaf[V]) bool { return l.key == key })
	}
	return out
}

// values returns all values in unspecified order.
func (t trie[V]) values() []V { return t.root.values(membudget.MakeCap[V](t.n)) }

func (b *branch[V]) values(all []V) []V {
	if b == nil {
		return all
	}
	for i := range b.leaves {
		for _, l := range b.leaves[i] {
			all = membudget.Append(all, l.value)
		}
		all = b.branches[i].values(all)
	}
	return all
}
