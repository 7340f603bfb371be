package servable

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Batching are the parameters of batching.
type Batching struct {
	MaxBatch   int           // rows of a batch
	Timeout    time.Duration // time for which a batch waits for further requests
	MaxQueued  int           // batches of one signature that wait or run
	Threads    int           // batches that run at the same time
	Allowed    []int         // sizes to which batches are padded, increasing; empty for any
	SplitLarge bool          // a request with more rows than MaxBatch is split instead of refused
}

// batching merges concurrent requests into batches. Requests are merged if they are for the same
// outputs of the same signature, and if their inputs differ in the first dimension only.
//
// A batch is open from its first request until it is full, or until its timeout has passed and a
// thread is free: while all threads run batches, the next one grows.
type batching struct {
	params  Batching
	threads chan struct{} // has an element for each batch that runs
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup // batches

	mu     sync.Mutex
	open   map[string]*batch // by key; guarded by mu
	queued map[string]int    // batches that are not done, by signature; guarded by mu
}

// batch is a list of requests that run together.
type batch struct {
	sig    *Signature
	filter []string
	tasks  []*batchTask
	rows   int
	full   chan struct{} // closed when no request can be added
}

// batchTask is one request.
type batchTask struct {
	inputs map[string]tensor.Tensor // retained
	rows   int
	done   chan struct{}
	out    map[string]tensor.Tensor // set before done is closed, as is err
	err    error
}

func newBatching(p Batching) *batching {
	ctx, cancel := context.WithCancel(context.Background())
	return &batching{params: p, threads: make(chan struct{}, p.Threads), ctx: ctx, cancel: cancel, open: map[string]*batch{}, queued: map[string]int{}}
}

// close waits for the batches.
func (b *batching) close() {
	b.running.Wait()
	b.cancel()
}

// rowsOf returns the common first dimension of the inputs.
func rowsOf(inputs map[string]tensor.Tensor) (rows int, err error) {
	rows = -1
	for _, t := range inputs {
		switch {
		case t.Rank() == 0:
			return 0, status.InvalidArgumentf("Batching Run() input tensors must have at least one dimension")
		case rows >= 0 && t.Dim(0) != rows:
			return 0, status.InvalidArgumentf("Batching Run() input tensors must have equal 0th-dimension size")
		}
		rows = t.Dim(0)
	}
	return rows, nil
}

// run runs a request as a part of a batch.
func (b *batching) run(ctx context.Context, sig *Signature, inputs map[string]tensor.Tensor, filter []string) (map[string]tensor.Tensor, error) {
	rows, err := rowsOf(inputs)
	switch {
	case err != nil:
		return nil, err
	case rows <= 0:
		return sig.run.RunAnyShape(ctx, inputs, filter...)
	case rows > b.params.MaxBatch && !b.params.SplitLarge:
		return nil, status.InvalidArgumentf("Task size %d is larger than maximum input batch size %d", rows, b.params.MaxBatch)
	}
	var tasks []*batchTask
	for lo := 0; lo < rows; lo += b.params.MaxBatch {
		hi := min(rows, lo+b.params.MaxBatch)
		t := &batchTask{inputs: map[string]tensor.Tensor{}, rows: hi - lo, done: make(chan struct{})}
		for name, in := range inputs {
			t.inputs[name] = heldRows(&in, lo, hi)
		}
		if err := b.add(sig, filter, t); err != nil {
			Release(t.inputs)
			return nil, err
		}
		tasks = append(tasks, t)
	}
	for _, t := range tasks {
		select {
		case <-t.done:
		case <-ctx.Done():
			return nil, status.FromContext(ctx, "waiting for a batch")
		}
		if t.err != nil {
			return nil, t.err
		}
	}
	if len(tasks) == 1 {
		return tasks[0].out, nil
	}
	out := map[string]tensor.Tensor{}
	for name := range tasks[0].out {
		parts := make([]tensor.Tensor, len(tasks))
		for i, t := range tasks {
			parts[i] = t.out[name]
		}
		if out[name], err = concat(parts, 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// key returns a text that is the same for requests that can be merged.
func key(sig *Signature, filter []string, inputs map[string]tensor.Tensor) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%q %q", sig.Name, filter)
	for _, in := range sig.Inputs {
		if t, given := inputs[in.Name]; given {
			fmt.Fprintf(&text, " %q %d %v", in.Name, t.DType(), t.Shape()[1:])
		}
	}
	return text.String()
}

// add adds a request to a batch.
func (b *batching) add(sig *Signature, filter []string, t *batchTask) error {
	k := key(sig, filter, t.inputs)
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.open[k]
	if at != nil && at.rows+t.rows > b.params.MaxBatch {
		close(at.full)
		delete(b.open, k)
		at = nil
	}
	if at == nil {
		if b.queued[sig.Name] >= b.params.MaxQueued {
			return status.Unavailablef("The batch scheduling queue to which this task was submitted is full; currently %d batches are enqueued", b.queued[sig.Name])
		}
		at = &batch{sig: sig, filter: filter, full: make(chan struct{})}
		b.open[k] = at
		b.queued[sig.Name]++
		b.running.Go(func() { b.serve(k, at) })
	}
	at.tasks = append(at.tasks, t)
	if at.rows += t.rows; at.rows == b.params.MaxBatch {
		close(at.full)
		delete(b.open, k)
	}
	return nil
}

// serve waits until a batch is full or due and a thread is free, and runs it.
func (b *batching) serve(k string, at *batch) {
	if b.params.Timeout > 0 {
		timer := time.NewTimer(b.params.Timeout)
		select {
		case <-at.full:
		case <-timer.C:
		}
		timer.Stop()
	}
	b.threads <- struct{}{}
	b.mu.Lock()
	if b.open[k] == at {
		delete(b.open, k)
	}
	b.mu.Unlock()
	at.run(b.ctx, b.params.Allowed)
	<-b.threads
	b.mu.Lock()
	b.queued[at.sig.Name]--
	b.mu.Unlock()
}

// run runs a batch and gives each request its rows.
func (at *batch) run(ctx context.Context, allowed []int) {
	outs, err := at.runMerged(ctx, allowed)
	for i, t := range at.tasks {
		Release(t.inputs)
		if t.err = err; err == nil {
			t.out = outs[i]
		}
		close(t.done)
	}
}

func (at *batch) runMerged(ctx context.Context, allowed []int) ([]map[string]tensor.Tensor, error) {
	size := at.rows
	for _, n := range allowed {
		if n >= size {
			size = n
			break
		}
	}
	if len(at.tasks) == 1 && size == at.rows {
		out, err := at.sig.run.RunAnyShape(ctx, at.tasks[0].inputs, at.filter...)
		return []map[string]tensor.Tensor{out}, err
	}
	merged := map[string]tensor.Tensor{}
	defer func() { Release(merged) }()
	for name := range at.tasks[0].inputs {
		parts := make([]tensor.Tensor, len(at.tasks))
		for i, t := range at.tasks {
			parts[i] = t.inputs[name]
		}
		t, err := concat(parts, size-at.rows)
		if err != nil {
			return nil, err
		}
		merged[name] = t
	}
	all, err := at.sig.run.RunAnyShape(ctx, merged, at.filter...)
	if err != nil {
		return nil, err
	}
	defer Release(all)
	outs := make([]map[string]tensor.Tensor, len(at.tasks))
	for i := range outs {
		outs[i] = make(map[string]tensor.Tensor, len(all))
	}
	for name, t := range all {
		if t.Rank() == 0 || t.Dim(0) != size {
			return nil, status.FailedPreconditionf("Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input tensors: %s", name)
		}
		lo := 0
		for i, task := range at.tasks {
			outs[i][name] = heldRows(&t, lo, lo+task.rows)
			lo += task.rows
		}
	}
	return outs, nil
}

// heldRows returns rows of a tensor, with a reference of their own.
func heldRows(t *tensor.Tensor, lo, hi int) tensor.Tensor {
	rows := t.Rows(lo, hi)
	return rows.Retain()
}

// concat returns the rows of tensors with the same type and the same other dimensions, and then the
// first row several times.
func concat(parts []tensor.Tensor, padding int) (tensor.Tensor, error) {
	first := &parts[0]
	if padding > 0 {
		row := first.Rows(0, 1)
		for range padding {
			parts = append(parts, row)
		}
	}
	shape := append(tensor.Shape{}, first.Shape()...)
	shape[0] = 0
	for i := range parts {
		shape[0] += int64(parts[i].Dim(0))
	}
	// Alloc asks for the memory, also for headers of strings.
	out, err := tensor.Alloc(first.DType(), shape)
	if err != nil {
		return tensor.Tensor{}, err
	}
	if first.DType() == tensor.String { // the text is that of the requests
		vals := tensor.Values[string](&out)
		for i := range parts {
			vals = vals[copy(vals, tensor.Values[string](&parts[i])):]
		}
		return out, nil
	}
	mem := out.Bytes()
	for i := range parts {
		mem = mem[copy(mem, parts[i].Bytes()):]
	}
	return out, nil
}
