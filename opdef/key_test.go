package opdef_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestKey has pairs of functions that differ in one value, most of them where FormatAttr shows an
// ellipsis.
func TestKey(t *testing.T) {
	long := strings.Repeat("x", 100)
	list := slices.Repeat([]int64{1}, 40)
	with := func(v any) opdef.Func { return opdef.Func{Name: "f", Attrs: opdef.Attrs{"a": v, "T": tensor.Float32}} }
	other := func(l []int64) []int64 {
		l = slices.Clone(l)
		l[20] = 2
		return l
	}
	for _, c := range []struct {
		name string
		a, b any
	}{
		{"texts", long + "1" + long, long + "2" + long},
		{"lists of numbers", list, other(list)},
		{"lists of texts", []string{"a", "b,c"}, []string{"a,b", "c"}},
		{"tensors", tensor.Vector(list...), tensor.Vector(other(list)...)},
		{"texts in tensors", tensor.Vector("a", "bc"), tensor.Vector("ab", "c")},
		{"types of lists", []int64{}, []string{}},
		{"a function and its name", opdef.Func{Name: "g"}, "g"},
		{"functions in functions", with(list), with(other(list))},
		{"a placeholder and a text", opdef.Placeholder("T"), "T"},
		{"shapes", []tensor.PartialShape{{}}, []tensor.PartialShape{tensor.MakePartial(1)}},
	} {
		a, again, b := with(c.a).Key(), with(c.a).Key(), with(c.b).Key()
		if a != again {
			t.Errorf("%s: two keys of one function differ", c.name)
		}
		if a == b {
			t.Errorf("%s: different functions have the key %q", c.name, a)
		}
	}
}
