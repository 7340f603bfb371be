package data

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

func TestVocabulary(t *testing.T) {
	v := NewVocabulary([]string{"The cat, the DOG!", "the cat isn't über 3", ""}, 4)
	if v.Size() != 6 {
		t.Errorf("size %d, want 6", v.Size())
	}
	// the (3 times), cat (2), then the first in alphabetical order: 3, dog
	if got, want := v.Numbers("The dog; a CAT 3"), []int32{2, 5, 1, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := v.Numbers(" ?"); !slices.Equal(got, []int32{1}) {
		t.Errorf("a text without words: got %v", got)
	}
	path := filepath.Join(t.TempDir(), "words.txt")
	if err := v.Save(path); err != nil {
		t.Fatal(err)
	}
	read, err := LoadVocabulary(path)
	if err != nil || !slices.Equal(read.words, v.words) || !slices.Equal(read.Numbers("dog cat"), v.Numbers("dog cat")) {
		t.Errorf("read %v, %v", read, err)
	}
	if empty := NewVocabulary(nil, 10); empty.Size() != 2 {
		t.Errorf("an empty vocabulary has %d numbers, want 2", empty.Size())
	}
	if _, err := LoadVocabulary(path + "s"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("got the error %v", err)
	}
}

func TestReadTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tsv")
	read := func(text string) (*Texts, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadTexts(path)
	}
	texts, err := read("good\ta b\r\n\nbad\tc\tc\n")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(texts.Texts, []string{"a b", "c\tc"}) || !slices.Equal(texts.Labels, []int32{1, 0}) ||
		!slices.Equal(texts.Classes, []string{"bad", "good"}) {
		t.Errorf("got %+v", texts)
	}
	n := 0
	for batch, err := range texts.Dataset(NewVocabulary(texts.Texts, 9)).PaddedBatch(2).Batches(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if got := tensor.Values[int32](&batch[0]); !slices.Equal(got, []int32{3, 4, 2, 2}) {
			t.Errorf("got the words %v", got)
		}
	}
	if n != 1 {
		t.Errorf("%d batches, want 1", n)
	}
	for text, want := range map[string]string{"": "has no texts", "good a\n": "line 1", "good\ta\n\tb\n": "line 2"} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want %q", text, err, want)
		}
	}
}
