package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// byteSize is a flag with a number of bytes, such as 1073741824, 512MiB or 1.5GiB. -1 means no
// limit.
type byteSize int64

// units are the units of a byteSize, in bytes.
var units = []struct {
	name  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}

// Set implements pflag.Value.
func (b *byteSize) Set(text string) error {
	number, unit := text, 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v*unit >= math.MaxInt64 || v < 0 && text != "-1" || v*unit != v*unit {
		return fmt.Errorf("%q is not a size: use bytes, or a number with KiB, MiB, GiB or TiB", text)
	}
	*b = byteSize(v * unit)
	return nil
}

// String implements pflag.Value.
func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type implements pflag.Value.
func (b *byteSize) Type() string { return "bytes" }

// memoryLimitFlag adds the flag for the memory of the process.
func memoryLimitFlag(flags *pflag.FlagSet, limit *byteSize, what string) {
	flags.Var(limit, "memory-limit", "memory that the process may use, as in 3GiB; "+what+" that need more fail; -1 for no limit (default 90 % of the machine or of the control group)")
}
