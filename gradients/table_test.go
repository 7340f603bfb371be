package gradients_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestEveryOperation looks for operations from numbers to numbers that are neither registered here
// nor on the list of those that have no gradient.
func TestEveryOperation(t *testing.T) {
	listed := withoutGradient(t)
	for _, name := range kernel.Default.Names() {
		o, ok := kernel.Default.LookupOp(name)
		if !ok || strings.HasPrefix(name, "_") || !varies(o, o.Inputs) || !varies(o, o.Outputs) {
			continue
		}
		switch has, isListed := gradients.HasRule(name), slices.Contains(listed, name); {
		case has && isListed && name != "Bitcast" && name != "DeepCopy":
			// which other tests register
			t.Errorf("%s is registered and listed in testdata/without_gradient.txt", name)
		case !has && !isListed:
			t.Errorf("%s is neither registered nor listed in testdata/without_gradient.txt", name)
		}
	}
	for _, name := range listed {
		if _, ok := kernel.Default.LookupOp(name); !ok {
			t.Errorf("testdata/without_gradient.txt lists %s, which is no operation", name)
		}
	}
}

// withoutGradient returns the names that are listed, without comments.
func withoutGradient(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/without_gradient.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		names = append(names, strings.Fields(line)...)
	}
	return names
}

// varies reports whether one of some arguments can be floating-point or complex.
func varies(o *opdef.Op, args []opdef.Arg) bool {
	return slices.ContainsFunc(args, func(a opdef.Arg) bool {
		types := []tensor.DType{a.DType}
		if attr := o.Attr(a.TypeAttr + a.TypeListAttr); attr != nil {
			if types = attr.Types; types == nil {
				return true
			}
		}
		return slices.ContainsFunc(types, func(t tensor.DType) bool { return t.Base().IsFloating() || t.Base().IsComplex() })
	})
}
