package data

import (
	"context"
	"iter"
	"sync"

	"github.com/weft-ml/weft/op"
)

// Cache keeps all elements in memory after they have been read for the first time. It comes before
// [Dataset.Shuffle], because it also keeps their order, which is that of epoch 0.
func (d *Dataset) Cache() *Dataset {
	var mu sync.Mutex
	var kept []Element
	full := false
	out := d.ordered(func(p *Dataset) *Dataset { return p.Cache() }, func(ctx context.Context, _ int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			mu.Lock()
			have, ok := kept, full
			mu.Unlock()
			if ok {
				for _, e := range have {
					if !yield(e, nil) {
						return
					}
				}
				return
			}
			var all []Element
			for e, err := range d.read(ctx, 0) {
				if !yield(e, err) || err != nil {
					return
				}
				all = append(all, e)
			}
			mu.Lock()
			kept, full = all, true
			mu.Unlock()
		}
	}, nil)
	if d.tfdata == nil {
		return out
	}
	out.tfdata = func(p *pipeline) op.Output {
		first := *p
		first.epoch = p.number(0)
		in := d.tfdata(&first)
		if in.Node == nil { // a build error
			return in
		}
		types, shapes := components(out.spec)
		return p.keep(op.CacheDataset(p.s, in, op.Const(p.s, ""), types, shapes))
	}
	return out
}
