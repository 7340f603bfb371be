package train

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weft-ml/weft/status"
)

// Coordinator lets several goroutines stop together: when one ends with an error or asks for a
// stop, all are told.
//
//	coord := train.NewCoordinator(ctx)
//	coord.Go(func(ctx context.Context) error { … })
//	…
//	coord.RequestStop(nil)
//	err := coord.Join(ctx)
type Coordinator struct {
	ctx     context.Context // ends when a stop is requested
	cancel  context.CancelFunc
	clean   []status.Code
	running sync.WaitGroup

	mu      sync.Mutex
	stopped bool  // guarded by mu
	err     error // guarded by mu: the first error that is not a clean end
}

// NewCoordinator returns a coordinator whose goroutines also stop when ctx ends. Errors of the
// codes in clean are ordinary ends, such as [status.OutOfRange] at the end of the input.
func NewCoordinator(ctx context.Context, clean ...status.Code) *Coordinator {
	c := &Coordinator{clean: clean}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// Context returns the context of the goroutines, which ends when a stop is requested.
func (c *Coordinator) Context() context.Context { return c.ctx }

// Go runs f, which must end soon after its context does. An error that it returns requests a stop.
func (c *Coordinator) Go(f func(ctx context.Context) error) {
	c.running.Go(func() {
		if err := f(c.ctx); err != nil {
			c.RequestStop(err)
		}
	})
}

// RequestStop asks all goroutines to stop, because of an error if there is one. Of several errors
// the first counts; after a stop they only follow from it.
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

// WaitForStop waits until a stop is requested, and reports whether that was before ctx ended.
func (c *Coordinator) WaitForStop(ctx context.Context) bool {
	select {
	case <-c.ctx.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

// Err returns the error that led to the stop; nil if there was none.
func (c *Coordinator) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Join waits until all goroutines have ended, which they do by themselves or after a stop, and
// returns the error that led to the stop. It does not wait for longer than ctx lives.
func (c *Coordinator) Join(ctx context.Context) error {
	ended := make(chan struct{})
	go func() { // ends with the goroutines
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
