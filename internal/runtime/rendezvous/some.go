package rendezvous

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Value is what came under one of several keys.
type Value struct {
	Index  int // of the key
	Tensor tensor.Tensor
	Dead   bool
}

// gathering is what has come of several tensors.
type gathering struct {
	open sync.WaitGroup // keys under which something may come

	mu     sync.Mutex
	values []Value       // guarded by mu
	err    error         // guarded by mu
	first  chan struct{} // closed when the first is there; nil from then on; guarded by mu
}

func (g *gathering) add(i int, t tensor.Tensor, dead bool, err error) {
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
	g.open.Done()
}

// AwaitSome waits until there is a tensor under at least one of some keys, given as text, and
// returns all that are there by then. The others are left to whoever asks for them, and so is
// everything if the step or ctx ends first.
func (r *Table) AwaitSome(ctx context.Context, keys []string) ([]Value, error) {
	first := make(chan struct{})
	g := &gathering{first: first}
	places, waiting := make([]place, len(keys)), make([]*item, len(keys))
	for i, key := range keys {
		g.open.Add(1)
		places[i] = parsePlace(key)
		waiting[i] = &item{kept: true, done: func(t tensor.Tensor, dead bool, err error) { g.add(i, t, dead, err) }}
		r.recv(places[i], waiting[i])
	}
	select {
	case <-first:
	case <-ctx.Done():
	}
	for i, it := range waiting {
		if r.withdraw(places[i], it) {
			g.open.Done()
		}
	}
	g.open.Wait() // for who is just bringing something
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
