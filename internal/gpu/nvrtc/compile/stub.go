//go:build !gpu

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "compile: build with -tags gpu")
	os.Exit(1)
}
