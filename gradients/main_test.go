package gradients_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weft-ml/weft/gradients"
)

// checked holds the operations whose rules have been checked.
var checked = map[string]bool{}

// markChecked records that the rules of operations were checked. A slash separates the name of an
// operation from that of a variant.
func markChecked(names ...string) {
	for _, name := range names {
		name, _, _ = strings.Cut(name, "/")
		checked[name] = true
	}
}

// TestMain fails if all tests ran and a rule was not checked.
func TestMain(m *testing.M) {
	differentiable := gradients.Differentiable() // before tests register more
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" {
		for _, name := range differentiable {
			if !checked[name] {
				fmt.Fprintf(os.Stderr, "no test checks the gradient of %s\n", name)
				code = 1
			}
		}
	}
	os.Exit(code)
}
