package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCurrent fails if a change of the public API is not in api.txt.
func TestCurrent(t *testing.T) {
	if err := run(true); err != nil {
		t.Error(err)
	}
}

func TestListPackage(t *testing.T) {
	const src = `package p

import "io"

type T[K comparable] struct {
	A, b int
	io.Reader
	*hidden
}
type hidden struct{ X int }
type I interface {
	M(x, y int, more ...string) (n int, err error)
	io.Writer
}
type F = func(int) bool

const C, d = 1, 2

var V map[string]int

func New[K comparable](k K) *T[K] { return nil }
func (t *T[K]) Do()              {}
func (hidden) Lost()             {}
func lost()                      {}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := listPackage(dir)
	want := []string{
		"const C",
		"func New[K comparable](K) *T[K]",
		"method (*T[K]) Do()",
		"type F = func(int) bool",
		"type I interface",
		"type I, M func(int, int, ...string) (int, error)",
		"type I, embeds io.Writer",
		"type T, A int",
		"type T, embeds io.Reader",
		"type T[K comparable] struct",
		"var V map[string]int",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}
