package memlimit

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// Set sets the memory limit of the process in bytes. 0 means 90 % of what the machine or the
// control group has, unless the process has a limit already; a negative number means no limit.
// The garbage collector gets the same goal, unless GOMEMLIMIT is set.
func Set(bytes int64) {
	switch {
	case bytes == 0 && membudget.Limit() > 0:
		return
	case bytes == 0:
		total, known := Total()
		if !known {
			return
		}
		bytes = total / 10 * 9
	case bytes < 0:
		bytes = 0
	}
	membudget.SetLimit(bytes)
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if bytes == 0 {
		bytes = math.MaxInt64
	}
	debug.SetMemoryLimit(bytes)
}
