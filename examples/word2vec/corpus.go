package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// A corpus is a text as a list of words. A word is represented by its rank, 0 for the most frequent
// one.
type corpus struct {
	names []string // by rank
	text  []int64  // ranks
	rng   *rand.Rand
}

// unknown replaces the words that are not in the vocabulary.
const unknown = "UNK"

// newCorpus reads a file. If path is empty, it generates a text.
func newCorpus(path string, vocabulary int) (*corpus, error) {
	var words []string
	if path == "" {
		words = generated()
	} else {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		words = strings.Fields(string(b))
	}
	if len(words) < 3 || vocabulary < 3 {
		return nil, fmt.Errorf("a text of %d words and a vocabulary of %d are too small", len(words), vocabulary)
	}
	count := map[string]int{}
	for _, w := range words {
		count[w]++
	}
	c := &corpus{rng: rand.New(rand.NewPCG(1, 0))}
	for w := range count {
		c.names = append(c.names, w)
	}
	slices.SortFunc(c.names, func(a, b string) int { return cmp.Or(count[b]-count[a], strings.Compare(a, b)) })
	if len(c.names) > vocabulary {
		c.names = append(c.names[:vocabulary-1], unknown)
	}
	rank := map[string]int64{}
	for i, w := range c.names {
		rank[w] = int64(i)
	}
	for _, w := range words {
		if id, ok := rank[w]; ok {
			c.text = append(c.text, id)
		} else {
			c.text = append(c.text, int64(len(c.names)-1))
		}
	}
	return c, nil
}

func (c *corpus) size() int { return len(c.names) }

// pairs returns n random words of the text and, for each, a word at a distance of at most window.
func (c *corpus) pairs(n, window int) (words, near []int64) {
	window = min(window, (len(c.text)-1)/2)
	for range n {
		at := window + c.rng.IntN(len(c.text)-2*window)
		away := 1 + c.rng.IntN(window)
		if c.rng.IntN(2) == 0 {
			away = -away
		}
		words, near = append(words, c.text[at]), append(near, c.text[at+away])
	}
	return words, near
}

// themes are the words of the generated sentences, by theme.
var themes = [][]string{
	{"loom", "weft", "warp", "thread", "cloth", "shuttle"},
	{"river", "boat", "fish", "water", "net", "bridge"},
	{"bread", "flour", "oven", "salt", "yeast", "baker"},
	{"star", "moon", "night", "sky", "orbit", "comet"},
}

// generated returns sentences of six words of one theme.
func generated() []string {
	rng := rand.New(rand.NewPCG(2, 0))
	var words []string
	for range 4000 {
		theme := themes[rng.IntN(len(themes))]
		for range 6 {
			words = append(words, theme[rng.IntN(len(theme))])
		}
	}
	return words
}
