package stepctx

import "context"

// Progress looks at the context of a step from time to time, in a loop over items that may take
// long: strings that share a long text take little memory, and each of them takes time. It belongs
// to one goroutine.
type Progress struct {
	Context context.Context //nolint:containedctx // used within one call of a kernel
	Each    int             // bytes that take as long as an item without any

	done int // bytes since the last look
}

// between is the number of bytes between two looks at the context.
const between = 32 << 10

// Pass is called before n bytes are read. It returns the error of the context if that has ended.
func (p *Progress) Pass(n int) error {
	if p.done += n + p.Each; p.done < between {
		return nil
	}
	p.done = 0
	return p.Context.Err()
}
