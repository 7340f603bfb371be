package queue

import (
	"context"

	"github.com/weft-ml/weft/internal/opkit/waitqueue"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Area is a staging area: a first-in, first-out buffer. Unlike a queue it has no handle and is
// never closed. It may be limited by the memory of its elements.
type Area struct {
	waitqueue.Monitor
	putters, takers, peekers *waitqueue.Queue

	room       // used is guarded by Monitor
	items ring // guarded by Monitor
	held  held // guarded by Monitor
}

// TypeName names the resource as TensorFlow does.
func (*Area) TypeName() string { return "N10tensorflow12_GLOBAL__N_16BufferE" }

func newArea(r room) *Area {
	a := &Area{room: r}
	a.putters, a.takers, a.peekers = a.NewQueue(waitqueue.FIFO), a.NewQueue(waitqueue.FIFO), a.NewQueue(waitqueue.AnyOrder)
	return a
}

func init() {
	registerStaging(opdef.Def{
		Name: "Stage", Doc: "Stages an element, whose components are the inputs. Blocks while the staging area is full.",
		In: []string{"values: dtypes"}, Shape: opdef.UnknownShape,
	}, staged(newArea, stage))
	registerStaging(opdef.Def{
		Name: "Unstage", Doc: "Removes and returns the first element of a staging area. Blocks while it is empty.",
		Out: []string{"values: dtypes"}, Shape: opdef.UnknownShape,
	}, staged(newArea, unstage))
	registerStaging(opdef.Def{
		Name: "StagePeek", Doc: "Returns the element at an index of a staging area without removing it. Blocks " +
			"until it is available.",
		In: []string{"index: int32"}, Out: []string{"values: dtypes"}, Shape: opdef.UnknownShape,
	}, staged(newArea, stagePeek))
	registerStaging(opdef.Def{
		Name: "StageSize", Doc: "Returns the number of elements in a staging area.",
		Out: []string{"size: int32"}, Shape: opdef.ScalarShape,
	}, staged(newArea, synchronous(func(ctx *kernel.Context, a *Area) error { return outputCount(ctx, a.size()) })))
	registerStaging(opdef.Def{
		Name: "StageClear", Doc: "Removes all elements from a staging area.", Shape: opdef.UnknownShape,
	}, staged(newArea, synchronous(func(_ *kernel.Context, a *Area) error { a.clear(); return nil })))
}

const mismatched = "Mismatch stage/unstage"

func stage(_ *kernel.Construction, ctx *kernel.Context, a *Area, done func(error)) {
	a.put(ctx.Context(), takeInputs(ctx, 0), done)
}

func unstage(_ *kernel.Construction, ctx *kernel.Context, a *Area, done func(error)) {
	a.take(ctx.Context(), func(e element, err error) {
		if err == nil {
			err = outputStaged(ctx, 0, e, mismatched)
		}
		done(err)
	})
}

func stagePeek(_ *kernel.Construction, ctx *kernel.Context, a *Area, done func(error)) {
	in := ctx.Input(0)
	if in.Rank() != 0 {
		done(status.InvalidArgumentf("index must be scalar"))
		return
	}
	i := int(tensor.Value[int32](in))
	if i < 0 {
		done(status.InvalidArgumentf("index %d must not be negative", i))
		return
	}
	a.peek(ctx.Context(), i, func(e element, err error) {
		if err == nil {
			err = outputStaged(ctx, 0, e, mismatched)
		}
		done(err)
	})
}

// put adds an element, which it owns.
func (a *Area) put(ctx context.Context, e element, done func(error)) {
	bytes, added := e.bytes(), false
	a.putters.Do(ctx, waitqueue.Operation{
		Cancelled: "Stage operation was cancelled",
		Try: func() (waitqueue.Outcome, error) {
			if err := a.check(bytes); err != nil {
				return waitqueue.Complete, err
			}
			if !a.fits(a.items.len(), bytes) {
				return waitqueue.Blocked, nil
			}
			a.held.mustAdd(a.items.len(), len(e))
			a.items.push(e)
			a.used += bytes
			added = true
			return waitqueue.Complete, nil
		},
		Done: func(err error) {
			if !added {
				e.release()
			}
			done(err)
		},
	})
}

// take removes the first element and passes it to done, which owns it.
func (a *Area) take(ctx context.Context, done func(element, error)) {
	var e element
	a.takers.Do(ctx, waitqueue.Operation{
		Cancelled: "Unstage operation was cancelled",
		Try: func() (waitqueue.Outcome, error) {
			if a.items.len() == 0 {
				return waitqueue.Blocked, nil
			}
			e = a.items.pop()
			a.used -= e.bytes()
			return waitqueue.Complete, nil
		},
		Done: func(err error) { done(e, err) },
	})
}

// peek passes element i to done, which owns references to its components.
func (a *Area) peek(ctx context.Context, i int, done func(element, error)) {
	var e element
	a.peekers.Do(ctx, waitqueue.Operation{
		Cancelled: "StagePeek operation was cancelled",
		Try: func() (waitqueue.Outcome, error) {
			if i >= a.items.len() {
				return waitqueue.Blocked, nil
			}
			e = a.items.at(i).retain()
			return waitqueue.Complete, nil
		},
		Done: func(err error) { done(e, err) },
	})
}

func (a *Area) size() (n int) {
	a.View(func() { n = a.items.len() })
	return n
}

func (a *Area) clear() {
	a.Change(func() {
		for a.items.len() > 0 {
			a.items.pop().release()
		}
		a.used = 0
	})
}
