//go:build !gpu

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "makeptx: build with -tags gpu")
	os.Exit(1)
}
