package guides

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// show prints the error of a program.
func show(program func(ctx context.Context) error) {
	if err := program(context.Background()); err != nil {
		fmt.Println("error:", err)
	}
}

// TestPages compares the guides with the programs of this package: each of their blocks of Go is
// a part of them.
func TestPages(t *testing.T) {
	var source strings.Builder
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(b)
		source.WriteString(strings.ReplaceAll(string(b), "\n\t", "\n")) // the bodies of functions
	}
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range regexp.MustCompile("(?s)\n```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			count++
			if !strings.Contains(source.String(), b[1]) {
				t.Errorf("%s: this block is not in the programs:\n%s", page, b[1])
			}
		}
	}
	if count == 0 {
		t.Error("the guides have no blocks")
	}
}
