package trust

import (
	"math/rand/v2"
	"testing"
)

// backtrack is glob by its definition: each '*' takes as few bytes as possible, the first one
// first.
func backtrack(pattern, text, matched string) (string, bool) {
	switch {
	case pattern == "":
		return matched, text == ""
	case pattern[0] == '*':
		for n := 0; ; n++ {
			if out, ok := backtrack(pattern[1:], text[n:], matched+text[:n]); ok {
				return out, true
			}
			if n == len(text) || isSeparator(text[n]) {
				return "", false
			}
		}
	case text == "" || pattern[0] == '?' && isSeparator(text[0]) || pattern[0] != '?' && pattern[0] != text[0]:
		return "", false
	case pattern[0] == '?':
		matched += text[:1]
	}
	return backtrack(pattern[1:], text[1:], matched)
}

// Random patterns match as their definition says.
func TestGlob(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(letters string, most int) string {
		b := make([]byte, random.IntN(most))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	found := 0
	for range 200_000 {
		pattern, text := word("ab.?**", 9), word("abab.?", 9)
		got, ok := glob(pattern, text)
		want, wantOK := backtrack(pattern, text, "")
		if ok != wantOK || ok && string(got) != want {
			t.Fatalf("%q matches %q: %q, %v; want %q, %v", pattern, text, got, ok, want, wantOK)
		}
		if ok {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d patterns match", found)
	}
}
