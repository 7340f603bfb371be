package parsing

import "context"

// progress looks at the context of a step from time to time. Strings may share a long text, so that
// a million of them take little memory and much time to parse. It belongs to one goroutine.
type progress struct {
	ctx  context.Context //nolint:containedctx // used within one call of a kernel
	done int             // bytes since the last look
}

// between is the number of bytes that are parsed between two looks at the context.
const between = 32 << 10

// pass is called before n bytes are parsed. It returns the error of the context if that has ended.
func (p *progress) pass(n int) error {
	const each = 64 // an empty string takes time too
	if p.done += n + each; p.done < between {
		return nil
	}
	p.done = 0
	return p.ctx.Err()
}
