package random

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func unchanged(_ context.Context, f func()) error {
	f()
	return nil
}

func allClasses(_ fileio.Files, attrs opdef.Attrs) (*classes, error) {
	return &classes{n: int64(attrs.Int("num_sampled")), probability: func(int64) float32 { return 1 }, session: unchanged}, nil
}

func uniformClasses(_ fileio.Files, attrs opdef.Attrs) (*classes, error) {
	n := int64(attrs.Int("range_max"))
	return &classes{
		n: n, draw: func(w *philox.Words) int64 { return int64(w.Below64(uint64(n))) },
		probability: func(int64) float32 { return float32(1 / float64(n)) }, session: unchanged,
	}, nil
}

func logUniformClasses(_ fileio.Files, attrs opdef.Attrs) (*classes, error) {
	n := int64(attrs.Int("range_max"))
	logRange := math.Log1p(float64(n))
	return &classes{
		n: n, draw: func(w *philox.Words) int64 { return (int64(math.Exp(w.Unit64()*logRange)) - 1) % n },
		probability: func(class int64) float32 { return float32(math.Log((float64(class)+2)/(float64(class)+1)) / logRange) },
		session:     unchanged,
	}, nil
}

// checkRange checks the number of classes with weights.
func checkRange(n int64) error {
	const limit = 1 << 28
	if n > limit {
		return status.InvalidArgumentf("range_max must be at most %d, got %d", limit, n)
	}
	return nil
}

// learnedClasses returns classes with weights that start at 1 and grow with every true class.
func learnedClasses(_ fileio.Files, attrs opdef.Attrs) (*classes, error) {
	n := int64(attrs.Int("range_max"))
	if err := checkRange(n); err != nil {
		return nil, err
	}
	mu := make(chan struct{}, 1) // a lock for which a step waits until it ends
	t := newWeightTree(int(n))   // guarded by mu
	return &classes{
		n: n, draw: func(w *philox.Words) int64 { return int64(t.find(int32(w.Below(uint32(t.total()))))) },
		probability: func(class int64) float32 { return float32(t.weight(int(class))) / float32(t.total()) },
		session: func(ctx context.Context, f func()) error {
			select {
			case mu <- struct{}{}:
			default:
				select {
				case mu <- struct{}{}:
				case <-ctx.Done():
					return status.FromContext(ctx, "waiting for another step that draws classes")
				}
			}
			defer func() { <-mu }()
			f()
			return nil
		},
		learn: func(seen []int64) {
			for _, class := range seen[:min(len(seen), math.MaxInt32-int(t.total()))] {
				t.increment(int(class))
			}
		},
	}, nil
}

// weightTree holds weights as the leaves of a binary tree with sums in its inner nodes. The root is
// sums[1], and the children of sums[i] are sums[2*i] and sums[2*i+1].
type weightTree struct {
	leaves int
	sums   []int32
}

// newWeightTree returns a tree of n weights of 1.
func newWeightTree(n int) *weightTree {
	t := &weightTree{leaves: 1}
	for t.leaves < n {
		t.leaves *= 2
	}
	t.sums = membudget.Make[int32](2 * t.leaves)
	for i := range n {
		t.sums[t.leaves+i] = 1
	}
	for i := t.leaves - 1; i > 0; i-- {
		t.sums[i] = t.sums[2*i] + t.sums[2*i+1]
	}
	return t
}

func (t *weightTree) total() int32       { return t.sums[1] }
func (t *weightTree) weight(i int) int32 { return t.sums[t.leaves+i] }

func (t *weightTree) increment(i int) {
	for i += t.leaves; i > 0; i /= 2 {
		t.sums[i]++
	}
}

// find returns the first leaf at which the prefix sum of the weights exceeds v. v must be less than
// the total.
func (t *weightTree) find(v int32) int {
	i := 1
	for i < t.leaves {
		if i *= 2; v >= t.sums[i] {
			v -= t.sums[i]
			i++
		}
	}
	return i - t.leaves
}

// weightedClasses returns classes with weights from attributes or from a file.
func weightedClasses(files fileio.Files, attrs opdef.Attrs) (*classes, error) {
	file, given := attrs.String("vocab_file"), attrs.Floats("unigrams")
	switch {
	case file == "" && len(given) == 0:
		return nil, status.InvalidArgumentf("Must provide either vocab_file or unigrams.")
	case file != "" && len(given) > 0:
		return nil, status.InvalidArgumentf("Must only provide one of vocab_file and unigrams.")
	}
	s := shardOfWords{
		count: int64(attrs.Int("num_shards")), shard: int64(attrs.Int("shard")), distortion: attrs.Float("distortion"),
		n: int64(attrs.Int("range_max")),
	}
	if err := checkRange(s.n); err != nil {
		return nil, err
	}
	s.reserve(int64(attrs.Int("num_reserved_ids")))
	if file != "" {
		if err := s.read(files, file); err != nil {
			return nil, err
		}
	}
	for _, w := range given {
		s.add(w)
	}
	if s.size != s.n {
		return nil, status.InvalidArgumentf("range is %d must be equal to weights size  %d", s.n, s.size)
	}
	a := newAliasTable(s.weights)
	positive := 0
	for _, w := range s.weights {
		if w > 0 {
			positive++
		}
	}
	if attrs.Bool("unique") && attrs.Int("num_sampled") > positive {
		return nil, status.InvalidArgumentf("only %d of the weights are positive, which cannot give %d unique classes", positive, attrs.Int("num_sampled"))
	}
	return &classes{
		n: s.n, draw: a.draw, probability: func(class int64) float32 { return s.weights[class] / s.total }, session: unchanged,
	}, nil
}

// shardOfWords collects the weights of the words of one shard. Words are assigned to shards
// round-robin.
type shardOfWords struct {
	count, shard int64
	distortion   float32
	n            int64 // required number of weights
	next         int64 // index of the next word
	size         int64 // words in the shard so far
	weights      []float32
	total        float32
}

// put adds the weight of the shard's next word. It only counts words beyond the first n.
func (s *shardOfWords) put(w float32) {
	if s.size++; s.size <= s.n {
		s.weights = membudget.Append(s.weights, w)
	}
}

// reserve adds words with zero weight.
func (s *shardOfWords) reserve(words int64) {
	if words <= 0 || s.shard >= s.count {
		return
	}
	n := (words - s.shard + s.count - 1) / s.count
	s.weights = append(membudget.MakeCap[float32](min(n, s.n)), s.weights...)[:min(n, s.n)]
	s.size = n
	s.next = n // as TensorFlow counts
}

// ours reports whether the next word belongs to the shard, and advances to the word after it.
func (s *shardOfWords) ours() bool {
	ours := s.next%s.count == s.shard
	s.next++
	return ours
}

func (s *shardOfWords) add(w float32) {
	if s.ours() {
		w = float32(math.Pow(float64(w), float64(s.distortion)))
		s.total += w
		s.put(w)
	}
}

// maxNamed is the number of bytes of a line that an error names.
const maxNamed = 1000

// read adds the weights in the last column of a file.
func (s *shardOfWords) read(files fileio.Files, file string) error {
	text, err := files.Read(file)
	if err != nil {
		return err
	}
	const copies = 2
	membudget.MustTake(copies * int64(len(text)))
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\r", "")) {
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			continue
		}
		if s.next%s.count != s.shard {
			s.next++
			continue
		}
		w, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ',')+1:]), 32)
		if err != nil && !math.IsInf(w, 0) {
			return status.InvalidArgumentf("Wrong vocabulary format at line: %s", line[:min(len(line), maxNamed)])
		}
		s.add(float32(w))
	}
	return nil
}

// aliasTable draws numbers with given probabilities by Vose's alias method. Row i is shared by
// number i, with probability share[i], and by number alias[i].
type aliasTable struct {
	share []float32
	alias []int64
}

func newAliasTable(weights []float32) *aliasTable {
	n := len(weights)
	a := &aliasTable{membudget.Make[float32](n), membudget.Make[int64](n)}
	sum := 0.0
	for _, w := range weights {
		sum += float64(w)
	}
	p := membudget.Make[float64](n) // indexed by number; 1 is the size of a row
	var high, low []int
	sort := func(i int) {
		if p[i] < 1 {
			low = membudget.Append(low, i)
		} else {
			high = membudget.Append(high, i)
		}
	}
	for i, w := range weights {
		p[i] = float64(w*float32(n)) / sum
		sort(i)
	}
	for len(high) > 0 && len(low) > 0 {
		l, h := low[len(low)-1], high[len(high)-1]
		low, high = low[:len(low)-1], high[:len(high)-1]
		a.alias[l] = int64(h)
		p[h] -= 1 - p[l]
		sort(h)
	}
	for i := range p {
		a.share[i] = float32(p[i])
	}
	for _, i := range membudget.AppendAll(high, low...) {
		a.share[i], a.alias[i] = 1, int64(i)
	}
	return a
}

func (a *aliasTable) draw(w *philox.Words) int64 {
	v := w.Unit32()
	i := int64(w.Below(uint32(len(a.share))))
	if v < a.share[i] {
		return i
	}
	return a.alias[i]
}
