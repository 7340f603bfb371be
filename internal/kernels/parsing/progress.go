package parsing

import (
	"context"

	"github.com/weft-ml/weft/internal/sys/stepctx"
)

// progress returns what looks at the context of a step while strings are parsed.
func progress(ctx context.Context) stepctx.Progress {
	const each = 64 // bytes that take as long to parse as an empty string
	return stepctx.Progress{Context: ctx, Each: each}
}
