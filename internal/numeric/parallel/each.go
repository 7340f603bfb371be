package parallel

import (
	"context"
	"sync"
	"sync/atomic"
)

// Each calls f for the numbers from 0 to n-1, and returns the error of the smallest number that
// fails. Numbers above one that has failed may be left out, and only one error is kept: an error
// for each of many millions would take more memory than the values. When ctx ends, Each returns its
// error soon.
func Each(ctx context.Context, n, grain int, f func(i int) error) error {
	e := &each{ctx: ctx, f: f}
	e.end.Store(int64(n))
	for e.first < n && e.err == nil {
		part := n - e.first
		if grain < part/maxBlocks {
			part = grain * maxBlocks
		}
		Run(part, grain, e)
		e.first += part
	}
	return e.err
}

// maxBlocks is the number of blocks that run as one loop. A loop goes over all its blocks, also
// after a failure: a stack of 2^60 empty matrices has more of them than can be counted.
const maxBlocks = 1 << 16

// each is the body of Each.
type each struct {
	first int // number of the first call of the loop that runs
	ctx   context.Context
	f     func(i int) error
	end   atomic.Int64 // the smallest number that has failed

	mu  sync.Mutex
	err error // guarded by mu until all blocks have ended; of the number end
}

// checked is the number of calls between two looks at the context.
const checked = 1 << 10

// Range implements [Body].
func (e *each) Range(lo, hi int) {
	lo, hi = e.first+lo, e.first+hi
	if err := e.ctx.Err(); err != nil {
		e.fail(lo, err)
		return
	}
	for i := lo; i < hi && int64(i) < e.end.Load(); i++ {
		err := e.f(i)
		if err == nil && (i-lo)%checked == checked-1 {
			err = e.ctx.Err()
		}
		if err != nil {
			e.fail(i, err)
			return
		}
	}
}

func (e *each) fail(i int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if int64(i) < e.end.Load() {
		e.end.Store(int64(i))
		e.err = err
	}
}
