package batching

import (
	"context"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Unbatch",
		Doc: "Returns to each step its rows of a batched result, which one step supplies with " +
			"the index of Batch. Blocks until that step arrives, for at most timeout_micros.",
		In: []string{"batched_tensor: T", "batch_index: int64", "id: int64"}, Out: []string{"unbatched_tensor: T"},
		Attrs: []string{"timeout_micros: int", "container: string = ''", "shared_name: string = ''", "T: type"},
		Shape: func(c *opdef.ShapeContext) (err error) {
			c.Out[0], err = anyRows(c.In[0])
			return err
		},
	}, newUnbatch)
}

// unbatcher is the resource that matches the rows of a batched result with the steps that wait for
// them.
type unbatcher struct {
	wait time.Duration

	mu    sync.Mutex
	rows  map[int64]*keptRows // rows not yet requested by their step; guarded by mu
	steps map[int64]*waiter   // steps that wait for their rows; guarded by mu
}

// keptRows holds the rows of a step that has not arrived yet and may never arrive.
type keptRows struct {
	tensor tensor.Tensor
	timer  *time.Timer // drops the rows
}

// waiter is a step that waits for its rows.
type waiter struct {
	done  func([]tensor.Tensor, error)
	timer *time.Timer
	ended func() bool // cancels the callback at the end of the step
}

// TypeName names the resource as TensorFlow does.
func (*unbatcher) TypeName() string { return "N10tensorflow15UnbatchResourceE" }

func newUnbatch(c *kernel.Construction) (kernel.Kernel, error) {
	place, err := resource.PlaceOf(c, true)
	if err != nil {
		return nil, err
	}
	wait := time.Duration(c.Attrs.Int("timeout_micros")) * time.Microsecond
	return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		u, err := kernel.LookupOrCreateResource(ctx.Device.Resources, place.Container, place.Name, func() (*unbatcher, error) {
			return &unbatcher{wait: wait, rows: map[int64]*keptRows{}, steps: map[int64]*waiter{}}, nil
		})
		if err == nil {
			err = u.add(ctx, setOutputs(ctx, done))
		}
		if err != nil {
			done(err)
		}
	}), nil
}

// readIndex returns the rows of an index of Batch.
func readIndex(index *tensor.Tensor, rows int) ([][]int64, error) {
	if index.Rank() != 2 || index.Dim(1) != 3 {
		got := 0
		if index.Rank() > 1 {
			got = index.Dim(1)
		}
		return nil, status.InvalidArgumentf("Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: %d.", got)
	}
	if index.Dim(0) > rows {
		return nil, status.InvalidArgumentf("Wrong shape for index tensor. Expected 0th dimension size to be no greater than %d; Got: %d.", rows, index.Dim(0))
	}
	v := tensor.Values[int64](index)
	out := membudget.Make[[]int64](index.Dim(0))
	for i := range out {
		out[i] = v[3*i : 3*i+3]
		if lo, hi := out[i][1], out[i][2]; lo < 0 || hi < lo || hi > int64(rows) {
			return nil, status.InvalidArgumentf("the index of a batch of %d rows has rows %d to %d", rows, lo, hi)
		}
	}
	return out, nil
}

// keptMemory is about the memory of rows that are kept or passed on, in bytes: their header and
// buffer, the timer, and the entry in a map.
const keptMemory = 500

// add processes the inputs of one step. It calls done with the step's rows unless it returns an
// error.
func (u *unbatcher) add(ctx *kernel.Context, done func([]tensor.Tensor, error)) error {
	data, id := ctx.Input(0), ctx.Input(2)
	if data.Rank() == 0 {
		return status.InvalidArgumentf("Batched tensor must have at least one dimension.")
	}
	index, err := readIndex(ctx.Input(1), data.Dim(0))
	if err != nil {
		return err
	}
	if id.Rank() != 0 {
		return status.InvalidArgumentf("Input id should be scalar; Got: %v.", id)
	}
	key := tensor.Value[int64](id)
	membudget.MustTake(int64(len(index)) * keptMemory) // before the step waits
	var ready []func()
	defer func() {
		for _, f := range ready {
			f()
		}
	}()
	u.mu.Lock()
	defer u.mu.Unlock()
	if kept := u.rows[key]; kept != nil {
		kept.timer.Stop()
		delete(u.rows, key)
		ready = append(ready, func() { done([]tensor.Tensor{kept.tensor}, nil) })
		return nil
	}
	if u.steps[key] != nil {
		return status.AlreadyExistsf("Multiple session runs with the same batch key.")
	}
	u.register(ctx, key, done)
	for _, entry := range index {
		rows := stacking.View(data, int(entry[1]), int(entry[2]))
		if w := u.steps[entry[0]]; w != nil {
			u.forget(entry[0], w)
			ready = append(ready, func() { w.done([]tensor.Tensor{rows}, nil) })
			continue
		}
		if u.rows[entry[0]] != nil {
			rows.Release()
			if w := u.steps[key]; w != nil {
				u.forget(key, w)
				return status.AlreadyExistsf("Multiple tensors returned for same batch key.")
			}
			return nil
		}
		u.keep(entry[0], rows)
	}
	return nil
}

// register makes a step wait. mu must be held.
func (u *unbatcher) register(ctx *kernel.Context, key int64, done func([]tensor.Tensor, error)) {
	w := &waiter{done: done}
	u.steps[key] = w
	w.timer = time.AfterFunc(u.wait, func() {
		u.fail(key, w, status.DeadlineExceededf("Batched data did not arrive within timeout window."))
	})
	w.ended = context.AfterFunc(ctx.Context(), func() {
		u.fail(key, w, status.FromContext(ctx.Context(), "waiting for the results of a batch"))
	})
}

// forget removes a waiting step. mu must be held.
func (u *unbatcher) forget(key int64, w *waiter) {
	delete(u.steps, key)
	w.timer.Stop()
	w.ended()
}

// fail ends the wait of a step with an error, if it is still waiting.
func (u *unbatcher) fail(key int64, w *waiter, err error) {
	u.mu.Lock()
	found := u.steps[key] == w
	if found {
		u.forget(key, w)
	}
	u.mu.Unlock()
	if found {
		w.done(nil, err)
	}
}

// keep stores rows for a step that may arrive later. mu must be held.
func (u *unbatcher) keep(key int64, rows tensor.Tensor) {
	kept := &keptRows{tensor: rows}
	u.rows[key] = kept
	kept.timer = time.AfterFunc(u.wait, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.rows[key] == kept {
			delete(u.rows, key)
			kept.tensor.Release()
		}
	})
}
