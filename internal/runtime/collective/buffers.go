package collective

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxBuffers bounds the requests that wait for buffers of one step. Their keys come from peers.
const maxBuffers = 1 << 16

// Buffers is where what the devices of this task have for others waits for them while their step
// lives. Other than in a rendezvous, who brings something waits until it has been taken: an
// operation that ended before would let its step end, and with that the buffers. The zero Buffers
// is empty.
//
// A step that failed is run again under its number. What its first attempt still asks for by then,
// or offers, counts for nothing: who waits no more, though that may not have got about, is passed
// over, and of two that ask for the same the later one is served.
type Buffers struct {
	mu    sync.Mutex
	err   error              // guarded by mu; why the step ended
	byKey map[string]*buffer // guarded by mu; made when there is something to hold
}

// buffer is one that was brought and not yet taken, or is waited for.
type buffer struct {
	ctx   context.Context // of who waits
	value tensor.Tensor   // not initialized as long as nobody has brought it
	over  chan struct{}   // closed when both have met, or nobody waits any more
	err   error           // set before over is closed
}

// Offer lets another device take a tensor, whose reference it takes over, and waits until it has.
func (b *Buffers) Offer(ctx context.Context, key string, t tensor.Tensor) error {
	e, err := b.offer(ctx, key, t)
	if err != nil {
		t.Release()
		return err
	}
	return b.wait(ctx, key, e)
}

func (b *Buffers) offer(ctx context.Context, key string, t tensor.Tensor) (*buffer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.otherLocked(key)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		if e, err = b.addLocked(ctx, key); err == nil {
			e.value = t
		}
	case e.value.Initialized():
		return nil, status.Internalf("BufRendezvous::ProvideBuf already called for key %s", key)
	default:
		e.value = t
		b.endLocked(key, e, nil)
	}
	return e, err
}

// Take waits for what another device offers, and returns it with its reference.
func (b *Buffers) Take(ctx context.Context, key string) (tensor.Tensor, error) {
	e, err := b.ask(ctx, key)
	if err == nil {
		err = b.wait(ctx, key, e)
	}
	if err != nil {
		return tensor.Tensor{}, err
	}
	return e.value, nil
}

func (b *Buffers) ask(ctx context.Context, key string) (*buffer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.otherLocked(key)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
	case e.value.Initialized():
		b.endLocked(key, e, nil)
		return e, nil
	default:
		b.endLocked(key, e, status.Internalf("Second consumer arrived for key %s", key))
	}
	return b.addLocked(ctx, key)
}

// otherLocked returns the buffer of a key for which somebody waits, or nil.
func (b *Buffers) otherLocked(key string) (*buffer, error) {
	e := b.byKey[key]
	if e != nil && e.ctx.Err() != nil {
		b.endLocked(key, e, givenUp(e.ctx, key))
		e = nil
	}
	return e, b.err
}

func givenUp(ctx context.Context, key string) error {
	return status.FromContext(ctx, "waiting for buffer "+key)
}

func (b *Buffers) addLocked(ctx context.Context, key string) (*buffer, error) {
	if len(b.byKey) >= maxBuffers {
		return nil, status.ResourceExhaustedf("%d buffers of one step are waited for", maxBuffers)
	}
	if b.byKey == nil {
		b.byKey = map[string]*buffer{}
	}
	e := &buffer{ctx: ctx, over: make(chan struct{})}
	b.byKey[key] = e
	return e, nil
}

// endLocked ends the wait for a buffer. Without an error, both have met.
func (b *Buffers) endLocked(key string, e *buffer, err error) {
	delete(b.byKey, key)
	if e.err = err; err != nil {
		e.value.Release()
	}
	close(e.over)
}

func (b *Buffers) wait(ctx context.Context, key string, e *buffer) error {
	select {
	case <-e.over:
		return e.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-e.over: // just now
	default:
		b.endLocked(key, e, givenUp(ctx, key))
	}
	return e.err
}

// Abort ends the step: all who wait, or will, get err. Only the first call counts.
func (b *Buffers) Abort(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.err = err
	for key, e := range b.byKey {
		b.endLocked(key, e, err)
	}
}
