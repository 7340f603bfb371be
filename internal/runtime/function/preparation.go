package function

import (
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/status"
)

// preparation makes something ready at its first use. The zero value is ready to use.
//
// [sync.Once] would keep every error. An error that says that there is no memory is not kept: a
// later use tries again.
type preparation struct {
	mu   sync.Mutex  // held while prepare runs
	done atomic.Bool // err is set
	err  error
}

// once calls prepare unless it was called, and returns its error. What prepare has set may be read
// if the error is nil.
func (p *preparation) once(prepare func() error) error {
	if p.done.Load() {
		return p.err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done.Load() {
		return p.err
	}
	err := prepare()
	if status.CodeOf(err) != status.ResourceExhausted {
		p.err = err
		p.done.Store(true)
	}
	return err
}
