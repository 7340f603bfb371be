package elementwise

// Ordered is the constraint of Go types whose elements compare by themselves.
type Ordered interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// Four searches take their steps together: one by itself waits for memory at every step, and all
// take as many. Where they go is computed, as nobody can foresee it: only the loop branches.

// LowerBounds finds, for each one wanted, the first element of line, which is sorted, that is not
// less.
func LowerBounds[K Ordered, I int32 | int64](found []I, line, wanted []K) {
	wanted = wanted[:len(found)]
	for len(found) > 0 {
		w, k := fours(wanted)
		a0, a1, a2, a3 := 0, 0, 0, 0
		for n := len(line); n > 0; {
			half := (n + 1) / 2
			probe := line[half-1:]
			a0 += half & beyond(probe[a0] >= w[0])
			a1 += half & beyond(probe[a1] >= w[1])
			a2 += half & beyond(probe[a2] >= w[2])
			a3 += half & beyond(probe[a3] >= w[3])
			n -= half
		}
		setFours(found, a0, a1, a2, a3)
		found, wanted = found[k:], wanted[k:]
	}
}

// UpperBounds finds, for each one wanted, the first element of line, which is sorted, that is
// greater.
func UpperBounds[K Ordered, I int32 | int64](found []I, line, wanted []K) {
	wanted = wanted[:len(found)]
	for len(found) > 0 {
		w, k := fours(wanted)
		a0, a1, a2, a3 := 0, 0, 0, 0
		for n := len(line); n > 0; {
			half := (n + 1) / 2
			probe := line[half-1:]
			a0 += half & beyond(probe[a0] > w[0])
			a1 += half & beyond(probe[a1] > w[1])
			a2 += half & beyond(probe[a2] > w[2])
			a3 += half & beyond(probe[a3] > w[3])
			n -= half
		}
		setFours(found, a0, a1, a2, a3)
		found, wanted = found[k:], wanted[k:]
	}
}

// beyond returns all bits where the place is behind an element that was looked at, none where it is
// reached.
func beyond(reached bool) int {
	n := 0
	if reached {
		n = 1
	}
	return n - 1
}

// fours returns the first four elements, or what there is of them, and their number.
func fours[K any](x []K) (w [4]K, n int) {
	if len(x) >= len(w) {
		return [4]K(x), len(w)
	}
	return w, copy(w[:], x)
}

// setFours sets the first four elements, or what there is of them.
func setFours[I int32 | int64](x []I, a0, a1, a2, a3 int) {
	if len(x) >= 4 {
		x[0], x[1], x[2], x[3] = I(a0), I(a1), I(a2), I(a3)
		return
	}
	copy(x, []I{I(a0), I(a1), I(a2), I(a3)})
}
