package train

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weft-ml/weft/status"
)

// Coordinator stops a group of goroutines together: when one fails or requests a stop, the context
// of all of them is cancelled. Its methods may be called concurrently.
//
//	coord := train.NewCoordinator(ctx)
//	coord.Go(func(ctx context.Context) error { … })
//	…
//	coord.RequestStop(nil)
//	err := coord.Join(ctx)
type Coordinator struct {
	ctx     context.Context // cancelled when a stop is requested
	cancel  context.CancelFunc
	clean   []status.Code // codes of errors that are not failures
	running sync.WaitGroup

	mu      sync.Mutex
	stopped bool  // a stop was requested; guarded by mu
	err     error // reason of the stop, nil if it was not a failure; guarded by mu
}

// NewCoordinator returns a coordinator whose goroutines also stop when ctx ends. Errors with a code
// in clean stop the goroutines but are not failures, such as [status.OutOfRange] at the end of the
// input.
func NewCoordinator(ctx context.Context, clean ...status.Code) *Coordinator {
	c := &Coordinator{clean: clean}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// Context returns the context of the goroutines. It is cancelled when a stop is requested.
func (c *Coordinator) Context() context.Context { return c.ctx }

// Go starts a goroutine that calls f. f must return soon after its context ends. If it returns an
// error a stop is requested.
func (c *Coordinator) Go(f func(ctx context.Context) error) {
	c.running.Go(func() {
		if err := f(c.ctx); err != nil {
			c.RequestStop(err)
		}
	})
}

// RequestStop stops all goroutines. A non-nil err is the reason. Only the first call sets the
// reason, since later errors usually follow from the stop.
func (c *Coordinator) RequestStop(err error) {
	c.mu.Lock()
	if !c.stopped && !slices.Contains(c.clean, status.CodeOf(err)) {
		c.err = err
	}
	c.stopped = true
	c.mu.Unlock()
	c.cancel()
}

// ShouldStop reports whether a stop was requested or the context has ended.
func (c *Coordinator) ShouldStop() bool { return c.ctx.Err() != nil }

// WaitForStop waits until a stop is requested. It returns false if ctx ends first.
func (c *Coordinator) WaitForStop(ctx context.Context) bool {
	select {
	case <-c.ctx.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

// Err returns the error that caused the stop, or nil.
func (c *Coordinator) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Join waits until all goroutines have ended, and returns the error that caused the stop, or nil.
// It does not request a stop. If ctx ends first, it returns an error with the code of the context.
func (c *Coordinator) Join(ctx context.Context) error {
	ended := make(chan struct{})
	go func() { // ends when the goroutines have ended
		c.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		c.cancel()
		return c.Err()
	case <-ctx.Done():
		return errors.Join(c.Err(), status.FromContext(ctx, "waiting for the goroutines of a coordinator to end"))
	}
}
