package boosted

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// entry is a value of a summary with its weight and the bounds of its rank: the weight of all
// smaller values is at least minRank, and with its own weight it is at most maxRank.
type entry struct{ value, weight, minRank, maxRank float32 }

func (e *entry) previousMax() float32 { return e.maxRank - e.weight }
func (e *entry) nextMin() float32     { return e.minRank + e.weight }

// summary is an approximation of the distribution of weighted values: entries in order of their
// values.
type summary []entry

// summarize returns the exact summary of weighted values, which it sorts.
func summarize(values []entry) summary {
	slices.SortStableFunc(values, func(a, b entry) int { return cmp.Compare(a.value, b.value) })
	var s summary
	for _, v := range values {
		if n := len(s); n > 0 && s[n-1].value == v.value {
			s[n-1].weight += v.weight
		} else {
			s = membudget.Append(s, entry{value: v.value, weight: v.weight})
		}
	}
	var rank float32
	for i := range s {
		s[i].minRank, s[i].maxRank = rank, rank+s[i].weight
		rank += s[i].weight
	}
	return s
}

// weight returns the weight of all values.
func (s summary) weight() float32 {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1].maxRank
}

// merge returns the summary of the values of both. Its error is not larger than theirs.
func (s summary) merge(t summary) summary {
	if len(s) == 0 {
		return membudget.AppendAll(nil, t...)
	}
	if len(t) == 0 {
		return s
	}
	out := summary(membudget.MakeCap[entry](len(s) + len(t)))
	var minS, minT float32 // ranks that the values taken so far give to the next
	i, j := 0, 0
	for i < len(s) && j < len(t) {
		a, b := &s[i], &t[j]
		switch {
		case a.value < b.value:
			out = membudget.Append(out, entry{a.value, a.weight, a.minRank + minT, a.maxRank + b.previousMax()})
			minS = a.nextMin()
			i++
		case b.value < a.value:
			out = membudget.Append(out, entry{b.value, b.weight, b.minRank + minS, b.maxRank + a.previousMax()})
			minT = b.nextMin()
			j++
		default:
			out = membudget.Append(out, entry{a.value, a.weight + b.weight, a.minRank + b.minRank, a.maxRank + b.maxRank})
			minS, minT = a.nextMin(), b.nextMin()
			i, j = i+1, j+1
		}
	}
	for _, a := range s[i:] {
		out = membudget.Append(out, entry{a.value, a.weight, a.minRank + minT, a.maxRank + t.weight()})
	}
	for _, b := range t[j:] {
		out = membudget.Append(out, entry{b.value, b.weight, b.minRank + minS, b.maxRank + s.weight()})
	}
	return out
}

// compress returns a summary of about size entries. It keeps the first and the last one. Its error
// grows by at most 1/size or epsilon, whichever is larger.
func (s summary) compress(size int64, epsilon float64) summary {
	size = max(size, 2)
	if int64(len(s)) <= size {
		return s
	}
	delta := float64(s.weight()) * max(1/float64(size), epsilon)
	step, credit := int64(len(s)), int64(0)
	out := summary{s[0]}
	last := 0
	for at := 0; at+1 < len(s); {
		next := at + 1
		for next < len(s) && credit < step && float64(s[next].previousMax()-s[at].nextMin()) <= delta {
			credit += size
			next++
		}
		at = max(at+1, next-1)
		out = membudget.Append(out, s[at])
		last = at
		credit -= step
	}
	if last+1 != len(s) {
		out = append(out, s[len(s)-1])
	}
	return out
}

// err returns the relative error of ranks.
func (s summary) err() float64 {
	if len(s) == 0 {
		return 0
	}
	var gap float32
	for i := range s[1:] {
		a, b := &s[i], &s[i+1]
		gap = max(gap, b.maxRank-b.minRank-b.weight, b.previousMax()-a.nextMin())
	}
	return float64(gap) / float64(s.weight())
}

// boundaries returns about n different values that divide the distribution.
func (s summary) boundaries(n int64) []float32 {
	epsilon := float32(s.err() + 1/float64(n))
	var out []float32
	for _, e := range s.compress(n, float64(epsilon)) {
		out = membudget.Append(out, e.value)
	}
	return slices.Compact(out)
}

// quantiles returns the n+1 values that divide the distribution into n parts of equal weight.
func (s summary) quantiles(n int64) []float32 {
	out := membudget.MakeCap[float32](n + 1)
	at := 0
	for rank := range n + 1 {
		twice := 2 * (float32(rank) * s.weight() / float32(n))
		next := at + 1
		for next < len(s) && twice >= s[next].minRank+s[next].maxRank {
			next++
		}
		at = next - 1
		if next == len(s) || twice < s[at].nextMin()+s[next].previousMax() {
			out = membudget.Append(out, s[at].value)
		} else {
			out = membudget.Append(out, s[next].value)
		}
	}
	return out
}

// stream summarizes a stream of weighted values with a bounded error. Summaries of equal numbers of
// values are merged in pairs, like the digits of a binary counter.
type stream struct {
	epsilon  float64
	block    int64 // entries of a summary
	capacity int64 // values in the buffer
	buffer   []entry
	levels   []summary
}

func newStream(epsilon float32, elements int64) *stream {
	s := &stream{epsilon: float64(epsilon), block: 2}
	if s.epsilon <= math.Nextafter(1, 2)-1 {
		s.block = max(elements, 2)
	} else {
		for level := 1; level < 62 && (int64(1)<<level)*s.block < elements; level++ {
			s.block = int64(math.Ceil(float64(level)/s.epsilon)) + 1
		}
	}
	s.block = max(s.block, 2)
	s.capacity = min(2*s.block, elements)
	return s
}

// checkStream checks the parameters of a stream.
func checkStream(epsilon float32, elements int64) error {
	switch {
	case epsilon <= 0:
		return status.InvalidArgumentf("An epsilon value of zero is not allowed.")
	case !(epsilon < 1):
		return status.InvalidArgumentf("epsilon must be less than 1, got %v", epsilon)
	case elements <= 0:
		return status.InvalidArgumentf("max_elements must be positive, got %d", elements)
	}
	return nil
}

// push adds a value. Values without weight do not count.
func (s *stream) push(value, weight float32) {
	if weight > 0 {
		s.buffer = membudget.Append(s.buffer, entry{value: value, weight: weight})
	}
	if int64(len(s.buffer)) >= s.capacity {
		s.flush()
	}
}

// flush summarizes the buffer.
func (s *stream) flush() {
	s.add(summarize(s.buffer))
	s.buffer = s.buffer[:0]
}

// add adds a summary of values.
func (s *stream) add(more summary) {
	more = more.compress(s.block, s.epsilon)
	if len(more) == 0 {
		return
	}
	for level := 0; ; level++ {
		if level == len(s.levels) {
			//sizedmake:ok as many as the logarithm of the values
			s.levels = append(s.levels, nil)
		}
		empty := len(s.levels[level]) == 0
		more = more.merge(s.levels[level])
		if empty || int64(len(more)) <= s.block+1 {
			s.levels[level] = more
			return
		}
		more = more.compress(s.block, s.epsilon)
		s.levels[level] = nil
	}
}

// finish returns the summary of all values, and empties the stream.
func (s *stream) finish() summary {
	s.flush()
	var all summary
	for _, level := range s.levels {
		all = all.merge(level)
	}
	s.levels = nil
	return all
}
