package array

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

func TestStringNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 63, 64, 65, 5000, 100_000} {
		for _, distinct := range []int{1, n/3 + 1, 10*n + 1} {
			vals := randomStrings(rng, n, distinct)
			known := map[string]int64{}
			var want []int64
			for _, v := range vals {
				if _, ok := known[v]; !ok {
					known[v] = int64(len(known))
				}
				want = append(want, known[v])
			}
			table := &stringNumbers{}
			if got, err := table.number(t.Context(), stringVector(t, vals)); err != nil || !slices.Equal(got, want) {
				t.Fatalf("numbers of %d strings of %d are wrong", n, distinct)
			}
			others := randomStrings(rng, n, 2*distinct)
			all, err := table.find(t.Context(), stringVector(t, others))
			if err != nil {
				t.Fatal(err)
			}
			for i, found := range all {
				if _, ok := known[others[i]]; ok != found {
					t.Fatalf("find(%q) = %v, want %v", others[i], found, ok)
				}
			}
		}
	}
}

func BenchmarkUniqueStrings(b *testing.B) {
	for _, n := range []int{20, 1000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			in := stringVector(b, randomStrings(rand.New(rand.NewPCG(1, 2)), n, n))
			for b.Loop() {
				if _, err := identities(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func randomStrings(rng *rand.Rand, n, distinct int) []string {
	vals := make([]string, n)
	for i := range vals {
		vals[i] = strconv.Itoa(rng.IntN(distinct))
	}
	return vals
}

func stringVector(t testing.TB, vals []string) *tensor.Tensor {
	v, err := tensor.FromSlice(tensor.Shape{int64(len(vals))}, vals)
	if err != nil {
		t.Fatal(err)
	}
	return &v
}
