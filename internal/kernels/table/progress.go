package table

import (
	"context"

	"github.com/weft-ml/weft/internal/sys/stepctx"
)

// progress returns what looks at the context of a step while the table is locked. Keys may share a
// long text, and a client can choose keys that collide in a dense table.
func progress(ctx context.Context) stepctx.Progress {
	const each = 8 // bytes that take as long to hash as a number
	return stepctx.Progress{Context: ctx, Each: each}
}

// textSize returns the number of bytes of a key that is a string, and 0 for a number.
func textSize[K key](k K) int {
	if s, ok := any(k).(string); ok {
		return len(s)
	}
	return 0
}
