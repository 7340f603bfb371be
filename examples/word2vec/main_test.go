package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/server"
)

// TestRun trains on generated sentences: the words of a theme must be near each other.
func TestRun(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"ps": 2, "worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	var out strings.Builder
	c := config{
		target: cl.Target("worker", 0), psTasks: 2, vocabulary: 100, size: 8, negative: 8, window: 2, batch: 64, steps: 600, rate: 0.3,
	}
	if err := c.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^nearest to (\w+): (.*)$`).FindAllStringSubmatch(out.String(), -1)
	if len(lines) != shown {
		t.Fatalf("got %q", out.String())
	}
	same, all := 0, 0
	for _, line := range lines {
		theme := themes[slices.IndexFunc(themes, func(words []string) bool { return slices.Contains(words, line[1]) })]
		for near := range strings.SplitSeq(line[2], ", ") {
			all++
			if slices.Contains(theme, near) {
				same++
			}
		}
	}
	if same*10 < all*8 {
		t.Errorf("%d of %d neighbors have the same theme:\n%s", same, all, out.String())
	}
}

func TestCorpus(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("a b a c a b d"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := newCorpus(file, 3)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.names, " "); got != "a b UNK" || !slices.Equal(c.text, []int64{0, 1, 0, 2, 0, 1, 2}) {
		t.Errorf("words %s, text %v", got, c.text)
	}
	words, near := c.pairs(100, 1)
	for i := range words {
		if words[i] == near[i] { // no word of the text is next to itself
			t.Errorf("pair of %d", words[i])
		}
	}
	if _, err := newCorpus(file+"x", 3); err == nil {
		t.Error("no error for a missing file")
	}
}
