package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent fails if the committed files differ from the generated ones.
func TestCurrent(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		path := filepath.Join("..", "..", name)
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: run go generate ./internal/numeric/simd", path)
		}
	}
}
