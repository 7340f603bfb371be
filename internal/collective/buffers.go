package collective

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxBuffers bounds the requests that wait for buffers of one step. Their keys come from peers.
const maxBuffers = 1 << 16

// Buffers is where what the devices of this task have for others waits for them while their step lives. Other than in a
// rendezvous, who brings something waits until it has been taken: an operation that ended before would let its step end,
// and with that the buffers. The zero Buffers is empty.
type Buffers struct {
	mu    sync.Mutex
	err   error              // guarded by mu; why the step ended
	byKey map[string]*buffer // guarded by mu; made when there is something to hold
}

// buffer is one that was brought and not yet taken, or is waited for.
type buffer struct {
	value  tensor.Tensor
	wanted bool          // by somebody who waits
	over   chan struct{} // closed when both have met or the step has ended
	err    error         // set before over is closed
}

// Offer lets another device take a tensor, whose reference it takes over, and waits until it has.
func (b *Buffers) Offer(ctx context.Context, key string, t tensor.Tensor) error {
	e, err := b.enter(key, func(e *buffer) error {
		if e.value.Initialized() {
			return status.Internalf("BufRendezvous::ProvideBuf already called for key %s", key)
		}
		e.value = t
		return nil
	})
	if err != nil {
		t.Release()
		return err
	}
	return b.wait(ctx, key, e)
}

// Take waits for what another device offers, and returns it with its reference.
func (b *Buffers) Take(ctx context.Context, key string) (tensor.Tensor, error) {
	e, err := b.enter(key, func(e *buffer) error {
		if e.wanted {
			return status.Internalf("Second consumer arrived for key %s", key)
		}
		e.wanted = true
		return nil
	})
	if err == nil {
		err = b.wait(ctx, key, e)
	}
	if err != nil {
		return tensor.Tensor{}, err
	}
	return e.value, nil
}

// enter adds one side to the buffer of a key. The second one ends the wait of both.
func (b *Buffers) enter(key string, add func(*buffer) error) (*buffer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return nil, b.err
	}
	e := b.byKey[key]
	if e == nil {
		if len(b.byKey) >= maxBuffers {
			return nil, status.ResourceExhaustedf("%d buffers of one step are waited for", maxBuffers)
		}
		if b.byKey == nil {
			b.byKey = map[string]*buffer{}
		}
		e = &buffer{over: make(chan struct{})}
		b.byKey[key] = e
	}
	if err := add(e); err != nil {
		return nil, err
	}
	if e.wanted && e.value.Initialized() {
		delete(b.byKey, key)
		close(e.over)
	}
	return e, nil
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
		return e.err
	default:
	}
	delete(b.byKey, key)
	e.value.Release()
	return status.FromContext(ctx, "waiting for buffer "+key)
}

// Abort ends the step: all who wait, or will, get err. Only the first call counts.
func (b *Buffers) Abort(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.err = err
	for _, e := range b.byKey {
		e.value.Release()
		e.err = err
		close(e.over)
	}
	b.byKey = nil
}
