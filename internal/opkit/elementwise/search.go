package elementwise

// Ordered is the constraint of Go types with built-in comparison.
type Ordered interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// Both searches run four binary searches in lockstep. All four take the same number of steps, and
// their memory accesses overlap, whereas a single search waits for memory at every step. The next
// position is computed without a branch, because it cannot be predicted.

// LowerBounds sets each element of found to the index of the first element of sorted that is not
// less than the corresponding element of keys.
func LowerBounds[K Ordered, I int32 | int64](found []I, sorted, keys []K) {
	keys = keys[:len(found)]
	for len(found) > 0 {
		w, k := fours(keys)
		a0, a1, a2, a3 := 0, 0, 0, 0
		for n := len(sorted); n > 0; {
			half := (n + 1) / 2
			probe := sorted[half-1:]
			a0 += half & beyond(probe[a0] >= w[0])
			a1 += half & beyond(probe[a1] >= w[1])
			a2 += half & beyond(probe[a2] >= w[2])
			a3 += half & beyond(probe[a3] >= w[3])
			n -= half
		}
		setFours(found, a0, a1, a2, a3)
		found, keys = found[k:], keys[k:]
	}
}

// UpperBounds sets each element of found to the index of the first element of sorted that is
// greater than the corresponding element of keys.
func UpperBounds[K Ordered, I int32 | int64](found []I, sorted, keys []K) {
	keys = keys[:len(found)]
	for len(found) > 0 {
		w, k := fours(keys)
		a0, a1, a2, a3 := 0, 0, 0, 0
		for n := len(sorted); n > 0; {
			half := (n + 1) / 2
			probe := sorted[half-1:]
			a0 += half & beyond(probe[a0] > w[0])
			a1 += half & beyond(probe[a1] > w[1])
			a2 += half & beyond(probe[a2] > w[2])
			a3 += half & beyond(probe[a3] > w[3])
			n -= half
		}
		setFours(found, a0, a1, a2, a3)
		found, keys = found[k:], keys[k:]
	}
}

// beyond returns a mask: 0 if the probed element satisfies the search, and all ones if the answer
// is further right.
func beyond(reached bool) int {
	n := 0
	if reached {
		n = 1
	}
	return n - 1
}

// fours returns the first four elements of x, or all if there are fewer, and their number.
func fours[K any](x []K) (w [4]K, n int) {
	if len(x) >= len(w) {
		return [4]K(x), len(w)
	}
	return w, copy(w[:], x)
}

// setFours sets the first four elements of x, or all if there are fewer.
func setFours[I int32 | int64](x []I, a0, a1, a2, a3 int) {
	if len(x) >= 4 {
		x[0], x[1], x[2], x[3] = I(a0), I(a1), I(a2), I(a3)
		return
	}
	copy(x, []I{I(a0), I(a1), I(a2), I(a3)})
}
