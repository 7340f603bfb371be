package rendezvous

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Value is a tensor that was received under one of several keys.
type Value struct {
	Index  int // index of the key
	Tensor tensor.Tensor
	Dead   bool
}

// arrivals collects the tensors that AwaitSome receives.
type arrivals struct {
	pending sync.WaitGroup // consumers that may still be called

	mu     sync.Mutex
	values []Value       // guarded by mu
	err    error         // guarded by mu
	first  chan struct{} // closed and set to nil at the first arrival; guarded by mu
}

func (g *arrivals) add(i int, t tensor.Tensor, dead bool, err error) {
	g.mu.Lock()
	if err == nil {
		g.values = append(g.values, Value{i, t, dead})
	} else if g.err == nil {
		g.err = err
	}
	if g.first != nil {
		close(g.first)
		g.first = nil
	}
	g.mu.Unlock()
	g.pending.Done()
}

// AwaitSome waits until a tensor is available under at least one of the keys, which are given as
// text. It returns all tensors that are available by then, and the caller owns their references.
// Tensors under the other keys stay in the table. AwaitSome returns an error, and no tensor, if the
// step or ctx ends first.
//
// The simple design is one Await per key, on a goroutine each. AwaitSome registers one consumer per
// key on the goroutine of the caller, and withdraws those that were not called.
func (r *Table) AwaitSome(ctx context.Context, keys []string) ([]Value, error) {
	first := make(chan struct{})
	g := &arrivals{first: first}
	parsed, waiting := make([]tableKey, len(keys)), make([]*item, len(keys))
	for i, key := range keys {
		g.pending.Add(1)
		parsed[i] = parseKey(key)
		waiting[i] = &item{kept: true, done: func(t tensor.Tensor, dead bool, err error) { g.add(i, t, dead, err) }}
		r.recv(parsed[i], waiting[i])
	}
	select {
	case <-first:
	case <-ctx.Done():
	}
	for i, it := range waiting {
		if r.withdraw(parsed[i], it) {
			g.pending.Done()
		}
	}
	g.pending.Wait() // a producer may be calling a consumer that could not be withdrawn
	if g.err == nil && len(g.values) == 0 {
		g.err = status.Cancelledf("RecvAsync is cancelled.")
	}
	if g.err != nil {
		for i := range g.values {
			g.values[i].Tensor.Release()
		}
		return nil, g.err
	}
	return g.values, nil
}
