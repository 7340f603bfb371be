package table

import "context"

// progress looks at the context of a step from time to time, while the table is locked. Keys may
// share a long text, which takes little memory and much time to hash, and a client can choose keys
// that collide in a dense table. It belongs to one goroutine.
type progress struct {
	ctx  context.Context //nolint:containedctx // used within one call of a kernel
	done int             // work since the last look
}

// between is the work between two looks at the context, in bytes that are hashed.
const between = 32 << 10

// pass is called before n bytes are hashed or compared. It returns the error of the context if that
// has ended.
func (p *progress) pass(n int) error {
	const each = 8 // bytes that take as long as a number
	if p.done += n + each; p.done < between {
		return nil
	}
	p.done = 0
	return p.ctx.Err()
}

// textSize returns the number of bytes of a key that is a string, and 0 for a number.
func textSize[K key](k K) int {
	if s, ok := any(k).(string); ok {
		return len(s)
	}
	return 0
}
