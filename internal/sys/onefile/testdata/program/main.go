//go:build gpu

// Command program says how it runs, and what libc says. With the argument reload it asks for the
// loader first.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/sys/onefile"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "reload" {
		if err := onefile.Reload(); err != nil {
			fmt.Println("no loader")
		}
	}
	path, err := onefile.Executable()
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(filepath.Base(path), onefile.Alone(), length("seven.."), len(os.Args))
}

// length asks libc, or is -1 without it.
func length(s string) int {
	l, err := dl.Open("", "libc.so.6")
	if err != nil {
		return -1
	}
	var strlen func(string) int
	if err := l.Func(&strlen, "strlen"); err != nil {
		return -1
	}
	return strlen(s)
}
