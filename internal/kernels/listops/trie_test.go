package listops

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestTrie changes tries at random and compares every version with a Go map, also after later
// changes.
func TestTrie(t *testing.T) {
	type version struct {
		trie trie[int]
		want map[string]int
	}
	random := rand.New(rand.NewPCG(1, 2))
	versions := []version{{want: map[string]int{}}}
	for i := range 3000 {
		from := versions[max(0, len(versions)-1-random.IntN(5))]
		next := version{from.trie, maps.Clone(from.want)}
		key := strconv.Itoa(random.IntN(400))
		if random.IntN(3) == 0 {
			next.trie = next.trie.remove(key)
			delete(next.want, key)
		} else {
			next.trie = next.trie.set(key, i)
			next.want[key] = i
		}
		versions = append(versions, next)
	}
	for i, v := range versions {
		if v.trie.n != len(v.want) {
			t.Fatalf("version %d has %d keys, want %d", i, v.trie.n, len(v.want))
		}
		for key, want := range v.want {
			if got, ok := v.trie.get(key); !ok || got != want {
				t.Fatalf("version %d has %d under %s, want %d", i, got, key, want)
			}
		}
		got, want := v.trie.values(), slices.Collect(maps.Values(v.want))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("version %d has the values %v, want %v", i, got, want)
		}
	}
}

// TestTrieWithEqualHashes inserts keys with equal hashes.
func TestTrieWithEqualHashes(t *testing.T) {
	var root *branch[int]
	for i, key := range []string{"a", "b", "a", "c"} {
		root = root.set(leaf[int]{hash: 5, key: key, value: i}, 0)
	}
	// This hash differs from the others at the last level.
	root = root.set(leaf[int]{hash: 5 | 1<<60, key: "far", value: 9}, 0)
	root = root.remove(5, "b", 0)
	got := root.values(nil)
	slices.Sort(got)
	if !slices.Equal(got, []int{2, 3, 9}) {
		t.Errorf("values are %v", got)
	}
}
