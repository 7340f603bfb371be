package stringops

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// A result of 1 TiB is refused before it is made.
func TestMemoryOfReplacements(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for _, global := range []bool{true, false} {
		rewrite := long
		if !global {
			rewrite = strings.Repeat(`\0`, 1<<20)
		}
		kerneltest.WantExhausted(t, 256<<20, "RegexReplace", opdef.Attrs{"replace_global": global},
			tensor.Vector(long), tensor.Scalar(map[bool]string{true: "a", false: "a+"}[global]), tensor.Scalar(rewrite))
	}
	got, err := kerneltest.TryWithin(256<<20, "RegexReplace", opdef.Attrs{"replace_global": true},
		tensor.Vector(long), tensor.Scalar("a"), tensor.Scalar(`\0b`))
	if err != nil || tensor.Values[string](&got[0])[0] != strings.Repeat("ab", len(long)) {
		t.Errorf("a short replacement: %v", err)
	}
}
