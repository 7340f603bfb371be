package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent fails if the committed assembly is not what the generator writes.
func TestCurrent(t *testing.T) {
	for _, s := range sources() {
		asm, stubs, err := s.print()
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string][]byte{"_amd64.s": asm, "_amd64.go": stubs} {
			path := filepath.Join("..", "..", s.pkg, s.name+name)
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is out of date: run go generate ./internal/numeric/simd", path)
			}
		}
	}
}
