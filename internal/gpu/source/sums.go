package source

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SumsFile is the name of the file with the sums of the texts that the PTX was made from.
const SumsFile = "sources.sha256"

// Sums returns the sums of the families' texts, one line for each.
func Sums() string {
	var b strings.Builder
	families := Families()
	for _, name := range slices.Sorted(maps.Keys(families)) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256([]byte(families[name])), name)
	}
	return b.String()
}

// ParseSums returns the sums by family.
func ParseSums(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			out[name] = sum
		}
	}
	return out
}
