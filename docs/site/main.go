// Command site builds the documentation as a static site with search, which needs no network and no
// server: README.md, the pages of docs, and the files that they link to.
//
//	cd docs/site && go run . -root ../.. -out ../../dist/site
//
// It fails if a link leads nowhere, or if a page cannot be reached from the first one. It is a
// module of its own, so that the module of Weft does not need its packages.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", "../..", "folder of the repository")
	out := flag.String("out", "../../dist/site", "folder to write; its earlier content is removed")
	flag.Parse()
	s, err := build(*root)
	if err == nil {
		err = s.check()
	}
	if err == nil {
		err = s.write(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s\n", len(s.pages), *out)
}
