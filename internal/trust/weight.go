package trust

import (
	"fmt"
	"math"
	"strconv"
)

// A weight is the part of a trust file about the memory of tenants.
type weight struct {
	pattern string // of names of tenants
	factor  float64
}

// maxWeight bounds the weight of a tenant.
const maxWeight = 1e6

// parseWeight parses the fields of a line "tenant PATTERN weight FACTOR".
func parseWeight(fields []string) (weight, error) {
	if len(fields) != 4 || fields[2] != "weight" {
		return weight{}, fmt.Errorf("want: tenant PATTERN weight FACTOR")
	}
	factor, err := strconv.ParseFloat(fields[3], 64)
	if err != nil || math.IsNaN(factor) || factor <= 0 || factor > maxWeight {
		return weight{}, fmt.Errorf("%q is no weight: a number over 0, at most %g", fields[3], maxWeight)
	}
	return weight{fields[1], factor}, nil
}

// Weight returns by how much a tenant may use more memory than one that no line of the file names.
// The first line whose pattern matches counts.
func (f *File) Weight(tenant string) float64 {
	if f == nil {
		return 1
	}
	for _, w := range f.weights {
		if _, ok := glob(w.pattern, tenant); ok {
			return w.factor
		}
	}
	return 1
}
