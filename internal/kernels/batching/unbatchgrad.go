package batching

import (
	"context"
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "UnbatchGrad",
		Doc: "Batches the gradients of the rows of several steps for the step that holds the " +
			"batch. The others receive empty tensors.",
		In: []string{"original_input: T", "batch_index: int64", "grad: T", "id: int64"}, Out: []string{"batched_grad: T"},
		Attrs: []string{"container: string = ''", "shared_name: string = ''", "T: type"},
		Shape: func(c *opdef.ShapeContext) error {
			if c.In[2].RankKnown() {
				c.Out[0] = tensor.UnknownDims(c.In[2].Rank())
			}
			return nil
		},
	}, newUnbatchGrad)
}

// gradients is the resource that matches gradients with the steps that hold the batches.
type gradients struct {
	mu   sync.Mutex
	rows map[int64]tensor.Tensor // gradient rows, by the step they come from; guarded by mu
	// batches that wait for rows, by the step that holds them; guarded by mu
	batches map[int64]*gradBatch
	// batch step that waits for the rows of each step; guarded by mu
	wanted map[int64]int64
}

// gradBatch is a step that waits for the gradients of others.
type gradBatch struct {
	keys    []int64 // all steps, in the order of their rows
	missing int
	done    func([]tensor.Tensor, error)
	ended   func() bool // cancels the callback at the end of the step
}

// TypeName names the resource as TensorFlow does.
func (*gradients) TypeName() string { return "N10tensorflow19UnbatchGradResourceE" }

func newUnbatchGrad(c *kernel.Construction) (kernel.Kernel, error) {
	place, err := resource.PlaceOf(c, true)
	if err != nil {
		return nil, err
	}
	return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		g, err := kernel.LookupOrCreateResource(ctx.Device.Resources, place.Container, place.Name, func() (*gradients, error) {
			return &gradients{rows: map[int64]tensor.Tensor{}, batches: map[int64]*gradBatch{}, wanted: map[int64]int64{}}, nil
		})
		if err == nil {
			err = g.add(ctx, setOutputs(ctx, done))
		}
		if err != nil {
			done(err)
		}
	}), nil
}

// add processes the inputs of one step. It calls done with the step's output unless it returns an
// error.
func (g *gradients) add(ctx *kernel.Context, done func([]tensor.Tensor, error)) error {
	index, grad, id := ctx.Input(1), ctx.Input(2), ctx.Input(3)
	if id.Rank() != 0 {
		return status.InvalidArgumentf("Expected `id` to be scalar. Received %v", id)
	}
	if grad.Rank() == 0 {
		return status.InvalidArgumentf("the derivatives of rows must have at least one dimension")
	}
	key := tensor.Value[int64](id)
	membudget.MustTake(keptMemory) // the row stays until a batch wants it
	var ready []func()
	defer func() {
		for _, f := range ready {
			f()
		}
	}()
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.rows[key]; ok {
		return status.InvalidArgumentf("Two runs with the same batch key.")
	}
	var b *gradBatch
	if ctx.Input(0).NumElements() > 0 {
		keys, err := batchKeys(index)
		if err != nil {
			return err
		}
		b = &gradBatch{keys: keys, done: done}
	} else {
		none, err := tensor.Zeros(grad.DType(), slices.Concat(tensor.Shape{0}, grad.Shape()[1:]))
		if err != nil {
			return err
		}
		ready = append(ready, func() { done([]tensor.Tensor{none}, nil) })
	}
	g.rows[key] = grad.Retain()
	if b != nil {
		if err := g.want(ctx, key, b); err != nil {
			return err
		}
		if b.missing == 0 {
			ready = append(ready, g.complete(b))
		}
	}
	if of, ok := g.wanted[key]; ok {
		delete(g.wanted, key)
		if b := g.batches[of]; b != nil {
			if b.missing--; b.missing == 0 {
				delete(g.batches, of)
				ready = append(ready, g.complete(b))
			}
		}
	}
	return nil
}

// wantedMemory is the memory of the entries for a row in wanted and in the set of missing rows, in
// bytes, with its place in lists.
const wantedMemory = 192

// batchKeys returns the steps listed in an index of Batch.
func batchKeys(index *tensor.Tensor) ([]int64, error) {
	if index.NumElements() == 0 {
		return nil, status.InvalidArgumentf("batch_index is empty while the tensor isn't.")
	}
	n := 0
	if index.Rank() > 0 {
		n = index.Dim(0)
	}
	if index.NumElements() != 3*n {
		return nil, status.InvalidArgumentf("batch_index should contain %d elements. Received %d", 3*n, index.NumElements())
	}
	membudget.MustTake(int64(n) * wantedMemory)
	keys := membudget.Make[int64](n)
	for i := range keys {
		keys[i] = tensor.Values[int64](index)[3*i]
	}
	return keys, nil
}

// want makes a batch wait for its missing rows. mu must be held.
func (g *gradients) want(ctx *kernel.Context, key int64, b *gradBatch) error {
	missing := map[int64]bool{}
	for _, k := range b.keys {
		if _, ok := g.rows[k]; ok || missing[k] {
			continue
		}
		if _, ok := g.wanted[k]; ok {
			return status.InvalidArgumentf("Missing tensor wanted by more than one batch.")
		}
		//sizedmake:ok batchKeys has asked for the memory
		missing[k] = true
	}
	b.missing = len(missing)
	if b.missing == 0 {
		return nil
	}
	if g.batches[key] != nil {
		return status.InvalidArgumentf("Batch key with valid batch used twice.")
	}
	g.batches[key] = b
	for k := range missing {
		//sizedmake:ok batchKeys has asked for the memory
		g.wanted[k] = key
	}
	b.ended = context.AfterFunc(ctx.Context(), func() { g.cancel(ctx, key, b) })
	return nil
}

// complete removes the rows of a batch that has all of them. It returns a function that passes them
// to the batch's step. mu must be held.
func (g *gradients) complete(b *gradBatch) func() {
	if b.ended != nil {
		b.ended()
	}
	rows := membudget.MakeCap[[]tensor.Tensor](len(b.keys))
	for _, k := range b.keys {
		t, ok := g.rows[k]
		if !ok {
			return func() { b.done(nil, status.Internalf("bad bookkeeping of available tensors.")) }
		}
		delete(g.rows, k)
		rows = append(rows, []tensor.Tensor{t})
	}
	return func() {
		t, err := concat(rows, 0, 0)
		for i := range rows {
			rows[i][0].Release()
		}
		if err != nil {
			b.done(nil, err)
			return
		}
		b.done([]tensor.Tensor{t}, nil)
	}
}

// cancel ends the wait of a batch whose step has ended. Nothing else wants the rows that it has.
func (g *gradients) cancel(ctx *kernel.Context, key int64, b *gradBatch) {
	g.mu.Lock()
	found := g.batches[key] == b
	if found {
		delete(g.batches, key)
		for _, k := range b.keys {
			if of, ok := g.wanted[k]; ok && of == key {
				delete(g.wanted, k)
			}
			if t, ok := g.rows[k]; ok {
				delete(g.rows, k)
				t.Release()
			}
		}
	}
	g.mu.Unlock()
	if found {
		b.done(nil, status.FromContext(ctx.Context(), "waiting for the gradients of a batch"))
	}
}
