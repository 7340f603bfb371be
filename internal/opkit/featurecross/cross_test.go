package featurecross

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestCombinations(t *testing.T) {
	words, numbers := tensor.Vector("a", "b", "c"), tensor.Vector[int64](1, -2, 3, 4)
	columns := []*Column{Ragged(&words, []int64{0, 2, 2, 3}), Ragged(&numbers, []int64{0, 2, 3, 4})}
	splits, err := Splits(t.Context(), columns, 3)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{0, 4, 4, 5}; !slices.Equal(splits, want) {
		t.Fatalf("combinations begin at %v, want %v", splits, want)
	}
	var got []string
	join := Join(columns, "+")
	for r := range 3 {
		row := make([]string, splits[r+1]-splits[r])
		if err := Row(t.Context(), columns, r, row, join); err != nil {
			t.Fatal(err)
		}
		got = append(got, row...)
	}
	if want := []string{"a+1", "a+-2", "b+1", "b+-2", "c+4"}; !slices.Equal(got, want) {
		t.Errorf("combinations %q, want %q", got, want)
	}
}

// TestTooManyCombinations counts combinations that exceed any memory, including counts that
// overflow.
func TestTooManyCombinations(t *testing.T) {
	values := tensor.Vector[int64]()
	for _, n := range []int{7, 8, 16} {
		columns := make([]*Column, n)
		for i := range columns {
			columns[i] = Ragged(&values, []int64{0, 1 << 10})
		}
		if _, err := Splits(t.Context(), columns, 1); status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("%d columns of 1024 values: %v", n, err)
		}
	}
}
