package random

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Skipgram",
		Doc:  "Reads words from a text file and returns pairs of a word and a word near it. Also returns the vocabulary, ordered by frequency, and the progress. Deprecated.",
		Out: []string{
			"vocab_word: string", "vocab_freq: int32", "words_per_epoch: int64", "current_epoch: int32", "total_words_processed: int64",
			"examples: int32", "labels: int32",
		},
		Attrs: []string{
			"filename: string", "batch_size: int", "window_size: int = 5", "min_count: int = 5", "subsample: float = 0.0010000000474974513",
		},
		Stateful: true, Class: opdef.FilesRead, Shape: opdef.UnknownShape,
	}, newSkipgram)
}

const (
	sentenceSize   = 1000 // words that share a window
	computedAhead  = 3000 // pairs that are computed at a time
	contextChecked = 1 << 16
)

// skipgram is a kernel with a position in a text.
type skipgram struct {
	batch, window int
	subsample     float32
	words         []string // the vocabulary; word 0 stands for all rare words
	counts        []int32
	corpus        []int32

	mu       sync.Mutex
	random   *philox.Words // guarded by mu, like all fields below
	pairs    [][2]int32    // pairs computed ahead
	used     int           // pairs that have been returned
	sentence []int32
	center   int // index of the word whose neighbors are returned
	neighbor int
	limit    int // the neighbors end here
	position int // in corpus
	epoch    int32
	total    int64
}

func newSkipgram(c *kernel.Construction) (kernel.Kernel, error) {
	s := &skipgram{
		batch: c.Attrs.Int("batch_size"), window: c.Attrs.Int("window_size"), subsample: c.Attrs.Float("subsample"),
		random: philox.NewWords(philox.New(0, 0)), sentence: make([]int32, sentenceSize), center: sentenceSize, epoch: -1,
	}
	if s.batch < 0 || s.window < 1 {
		return nil, status.InvalidArgumentf("batch_size must not be negative and window_size must be positive, got %d and %d", s.batch, s.window)
	}
	file := c.Attrs.String("filename")
	text, err := c.Files().Read(file)
	if err != nil {
		return nil, err
	}
	membudget.MustTake(int64(len(text)))
	s.read(string(text), c.Attrs.Int("min_count"))
	if len(s.corpus) < s.window*10 {
		return nil, status.InvalidArgumentf("The text file %s contains too little data: %d words", file, len(s.corpus))
	}
	s.position = len(s.corpus)
	return s, nil
}

// read sets the vocabulary and the corpus to those of a text. Words that occur less than least
// times are rare.
func (s *skipgram) read(text string, least int) {
	counts, order, size := map[string]int32{}, []string{}, 0
	var meter membudget.Meter
	for word := range strings.FieldsSeq(text) {
		if counts[word] == 0 {
			meter.MustTakeEntry(0)
			order = membudget.Append(order, word)
		}
		counts[word]++
		size++
	}
	order = slices.DeleteFunc(order, func(word string) bool { return int(counts[word]) < least })
	slices.SortStableFunc(order, func(a, b string) int { return int(counts[b]) - int(counts[a]) })
	s.words = append(append(membudget.MakeCap[string](len(order)+1), "UNK"), order...)
	s.counts = []int32{int32(min(size, math.MaxInt32))}
	numbers := map[string]int32{}
	for i, word := range order {
		meter.MustTakeEntry(0)
		numbers[word] = int32(i) + 1 //nolint:gosec // fewer than words in a text
		s.counts = membudget.Append(s.counts, counts[word])
		s.counts[0] -= counts[word]
	}
	s.corpus = membudget.MakeCap[int32](size)
	for word := range strings.FieldsSeq(text) {
		s.corpus = membudget.Append(s.corpus, numbers[word])
	}
}

// Compute implements kernel.Kernel.
func (s *skipgram) Compute(ctx *kernel.Context) error {
	examples, err := ctx.Allocate(5, tensor.Shape{int64(s.batch)})
	if err != nil {
		return err
	}
	labels, err := ctx.Allocate(6, tensor.Shape{int64(s.batch)})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pairs == nil {
		if err := s.compute(ctx); err != nil {
			return err
		}
	}
	for i := range s.batch {
		pair := s.pairs[s.used]
		tensor.Values[int32](examples)[i], tensor.Values[int32](labels)[i] = pair[0], pair[1]
		if s.used++; s.used == len(s.pairs) {
			if err := s.compute(ctx); err != nil {
				return err
			}
		}
	}
	ctx.SetOutput(0, tensor.Vector(s.words...))
	ctx.SetOutput(1, tensor.Vector(s.counts...))
	ctx.SetOutput(2, tensor.Scalar(int64(len(s.corpus))))
	ctx.SetOutput(3, tensor.Scalar(s.epoch))
	ctx.SetOutput(4, tensor.Scalar(s.total))
	return nil
}

// compute computes the next pairs. The caller holds the lock.
func (s *skipgram) compute(ctx *kernel.Context) error {
	pairs := make([][2]int32, computedAhead)
	for i := range pairs {
		for s.neighbor >= s.limit || s.neighbor == s.center {
			if s.neighbor < s.limit {
				s.neighbor++
				continue
			}
			if err := s.advance(ctx); err != nil {
				return err
			}
		}
		pairs[i] = [2]int32{s.sentence[s.center], s.sentence[s.neighbor]}
		s.neighbor++
	}
	s.pairs, s.used = pairs, 0
	return nil
}

// advance moves to the next word, with a window of random size.
func (s *skipgram) advance(ctx *kernel.Context) error {
	s.total++
	if s.center++; s.center >= sentenceSize {
		s.center = 0
		if err := s.fill(ctx); err != nil {
			return err
		}
	}
	skip := 1 + int(s.random.Below(uint32(s.window))) //nolint:gosec // positive
	s.neighbor, s.limit = max(0, s.center-skip), min(sentenceSize, s.center+skip+1)
	return nil
}

// fill reads the next sentence. It leaves out frequent words at random.
func (s *skipgram) fill(ctx *kernel.Context) error {
	for i, tries := 0, 0; i < sentenceSize; tries++ {
		if tries%contextChecked == contextChecked-1 && ctx.Context().Err() != nil {
			s.center = sentenceSize // the next step begins this sentence again
			return ctx.Context().Err()
		}
		if s.position >= len(s.corpus) {
			s.epoch++
			s.position = 0
		}
		word := s.corpus[s.position]
		s.position++
		if s.subsample > 0 {
			n, limit := float32(s.counts[word]), s.subsample*float32(len(s.corpus))
			keep := (float32(math.Sqrt(float64(n/limit))) + 1) * limit / n
			if s.random.Unit32() > keep {
				continue
			}
		}
		s.sentence[i] = word
		i++
	}
	return nil
}
