package data

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Words returns the words of a text in lower case: runs of letters, digits and apostrophes.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	})
}

// A Vocabulary numbers words, for the layer nn.Embedding. 0 is padding, 1 is a word that the
// vocabulary lacks, and 2, 3 … are its words.
type Vocabulary struct {
	words   []string
	numbers map[string]int32
}

const (
	padding     = iota // the number of no word
	unknownWord        // the number of a word that is not in the vocabulary
	firstWord          // the number of the first word
)

// NewVocabulary returns the most frequent words of texts, at most size of them. Words that are
// equally frequent are in alphabetical order.
func NewVocabulary(texts []string, size int) *Vocabulary {
	counts := map[string]int{}
	for _, text := range texts {
		for _, word := range Words(text) {
			counts[word]++
		}
	}
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	return newVocabulary(words[:min(max(size, 0), len(words))])
}

func newVocabulary(words []string) *Vocabulary {
	v := &Vocabulary{words: words, numbers: make(map[string]int32, len(words))}
	for i, word := range words {
		v.numbers[word] = int32(firstWord + i)
	}
	return v
}

// Size returns the number of different numbers, with those of padding and of unknown words: the
// InputDim of an embedding.
func (v *Vocabulary) Size() int { return firstWord + len(v.words) }

// Numbers returns the numbers of the words of a text. A text without words has one unknown word.
func (v *Vocabulary) Numbers(text string) []int32 {
	words := Words(text)
	out := make([]int32, max(len(words), 1))
	out[0] = unknownWord
	for i, word := range words {
		out[i] = unknownWord
		if n, ok := v.numbers[word]; ok {
			out[i] = n
		}
	}
	return out
}

// Save writes the words to a file, one in each line.
func (v *Vocabulary) Save(path string) error {
	text := strings.Join(v.words, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // no secret
		return status.Errorf(status.InvalidArgument, "data: %w", err)
	}
	return nil
}

// LoadVocabulary reads a vocabulary that [Vocabulary.Save] wrote.
func LoadVocabulary(path string) (*Vocabulary, error) {
	text, err := fileio.Files{}.Read(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	return newVocabulary(strings.Fields(string(text))), nil
}

// Texts are texts with labels in memory.
type Texts struct {
	Texts   []string
	Labels  []int32  // classes of the texts
	Classes []string // names of the classes, sorted
}

// ReadTexts reads a file with a line for each text: the label, a tab, and the text. Empty lines are
// left out.
func ReadTexts(path string) (*Texts, error) {
	t := &Texts{}
	var labels []string
	number := 0
	var failure error
	readLines(path, func(e Element, err error) bool {
		if number++; err != nil {
			failure = err
			return false
		}
		line := strings.TrimSuffix(tensor.Value[string](&e[0]), "\r")
		if strings.TrimSpace(line) == "" {
			return true
		}
		label, text, found := strings.Cut(line, "\t")
		if !found || label == "" {
			failure = status.InvalidArgumentf("data: %s: line %d is not a label, a tab and a text", path, number)
			return false
		}
		t.Texts, labels = append(t.Texts, text), append(labels, label)
		return true
	})
	switch {
	case failure != nil:
		return nil, failure
	case len(labels) == 0:
		return nil, status.InvalidArgumentf("data: %s has no texts", path)
	}
	t.Classes = slices.Compact(slices.Sorted(slices.Values(labels)))
	for _, label := range labels {
		t.Labels = append(t.Labels, int32(slices.Index(t.Classes, label)))
	}
	return t, nil
}

// Dataset returns the numbers of the words of each text, an int32 vector, and its class, an int32
// scalar. Texts have different lengths: make batches with [Dataset.PaddedBatch].
func (t *Texts) Dataset(v *Vocabulary) *Dataset {
	spec := []Spec{{tensor.Int32, tensor.MakePartial(-1)}, {tensor.Int32, tensor.MakePartial()}}
	return source(spec, len(t.Texts), func(context.Context, int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			for i, text := range t.Texts {
				if !yield(Element{tensor.Vector(v.Numbers(text)...), tensor.Scalar(t.Labels[i])}, nil) {
					return
				}
			}
		}
	}, func(p *pipeline) op.Output { return p.texts(spec, t, v) })
}

// texts adds a data set that takes the numbers of each text out of those of all texts.
func (p *pipeline) texts(spec []Spec, t *Texts, v *Vocabulary) op.Output {
	all, starts, sizes := []int32{}, []int32{}, []int32{}
	for _, text := range t.Texts {
		numbers := v.Numbers(text)
		starts, sizes = append(starts, int32(len(all))), append(sizes, int32(len(numbers)))
		all = append(all, numbers...)
	}
	columns := []tensor.Tensor{tensor.Vector(starts...), tensor.Vector(sizes...), tensor.Vector(t.Labels...)}
	rows := []Spec{spec[1], spec[1], spec[1]} // int32 scalars
	_, scalars := components(rows)
	words := op.Const(p.s, all)
	types, shapes := components(spec)
	return p.apply(p.rows(columns, scalars), rows, 1, types, shapes, func(s *op.Scope, e []op.Output) []op.Output {
		one := op.Const(s, []int32{1})
		return []op.Output{op.Slice(s, words, op.Reshape(s, e[0], one), op.Reshape(s, e[1], one)), e[2]}
	})
}
