package collective

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxBuffers bounds the entries of one step. Peers choose keys too, so without a bound they could
// exhaust the memory of the task.
const maxBuffers = 1 << 16

// entryMemory is about the memory of an entry without its key and its value in bytes, with the
// goroutine that waits for it.
const entryMemory = 4 << 10

// Buffers holds the tensors that this task's devices offer to other devices during a step. Unlike a
// rendezvous, Offer blocks until the tensor is taken: an operation that returned earlier would let
// its step end, which drops the buffers. Buffers is safe for concurrent use. The zero Buffers is
// empty.
//
// A step that failed is run again under the same number, and requests of its first attempt may
// still arrive. Two rules keep them from disturbing the second attempt:
//
//   - An entry whose context has ended is dropped when the next request for its key arrives, even
//     if the waiting goroutine has not noticed the end yet.
//   - If two consumers request the same key, the later one is served.
type Buffers struct {
	// Shared says that clients that do not know of each other use the buffers. Above maxBuffers,
	// an entry then asks for its memory: one client that leaves many would stop the others.
	Shared bool

	mu    sync.Mutex
	err   error             // error that ended the step; guarded by mu
	byKey map[string]*entry // created with the first entry; guarded by mu
}

// entry is a tensor that was offered and not taken, or a request for one.
type entry struct {
	ctx   context.Context // of the goroutine that waits
	value tensor.Tensor   // not initialized in a request
	done  chan struct{}   // closed when offer and request have met, or the wait has ended
	err   error           // set before done is closed
}

// Offer makes a tensor available under a key and takes over its reference. It blocks until another
// device has taken the tensor, ctx ends, or the step is aborted.
func (b *Buffers) Offer(ctx context.Context, key string, t tensor.Tensor) error {
	e, err := b.offer(ctx, key, t)
	if err != nil {
		t.Release()
		return err
	}
	return b.wait(ctx, key, e)
}

func (b *Buffers) offer(ctx context.Context, key string, t tensor.Tensor) (*entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.counterpartLocked(key)
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

// Take blocks until another device offers a tensor under the key, ctx ends, or the step is aborted.
// It returns the tensor with its reference.
func (b *Buffers) Take(ctx context.Context, key string) (tensor.Tensor, error) {
	e, err := b.request(ctx, key)
	if err == nil {
		err = b.wait(ctx, key, e)
	}
	if err != nil {
		return tensor.Tensor{}, err
	}
	return e.value, nil
}

func (b *Buffers) request(ctx context.Context, key string) (*entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.counterpartLocked(key)
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

// counterpartLocked returns the entry of a key whose goroutine still waits, or nil. It returns an
// error if the step has ended.
func (b *Buffers) counterpartLocked(key string) (*entry, error) {
	e := b.byKey[key]
	if e != nil && e.ctx.Err() != nil {
		b.endLocked(key, e, waitError(e.ctx, key))
		e = nil
	}
	return e, b.err
}

func waitError(ctx context.Context, key string) error {
	return status.FromContext(ctx, "waiting for buffer "+key)
}

func (b *Buffers) addLocked(ctx context.Context, key string) (*entry, error) {
	if len(b.byKey) >= maxBuffers && (!b.Shared || !membudget.TakeRecord(int64(entryMemory+len(key)))) {
		return nil, status.ResourceExhaustedf("%d buffers of one step are pending", maxBuffers)
	}
	if b.byKey == nil {
		b.byKey = map[string]*entry{}
	}
	e := &entry{ctx: ctx, done: make(chan struct{})}
	b.byKey[key] = e
	return e, nil
}

// endLocked ends the wait for an entry. err is nil if offer and request have met.
func (b *Buffers) endLocked(key string, e *entry, err error) {
	delete(b.byKey, key)
	if e.err = err; err != nil {
		e.value.Release()
	}
	close(e.done)
}

func (b *Buffers) wait(ctx context.Context, key string, e *entry) error {
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-e.done: // ended meanwhile
	default:
		b.endLocked(key, e, waitError(ctx, key))
	}
	return e.err
}

// Abort ends the step: all calls that wait, and all later calls, return err. Only the first call
// has an effect.
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
