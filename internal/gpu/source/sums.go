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

// PTXOptions are the options of NVRTC. Contractions of floating-point operations are off, so that
// they happen only where the program says so. Division and square root of float32 are exact, and
// denormals are zero, as on CPUs.
var PTXOptions = []string{"--std=c++17", "--prec-div=true", "--prec-sqrt=true", "--ftz=true", "--fmad=false"}

// Sums returns the sums of what the PTX of each family is made from, its text and the options, one
// line for each.
func Sums() string {
	var b strings.Builder
	families := Families()
	for _, name := range slices.Sorted(maps.Keys(families)) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256([]byte(families[name]+strings.Join(PTXOptions, " "))), name)
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
