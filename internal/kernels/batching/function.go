package batching

import (
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "BatchFunction",
		Doc: "Calls a function with the batched input rows of several steps and returns to " +
			"each step its rows of the results. Blocks until max_batch_size rows are " +
			"available, for at most batch_timeout_micros. Batches are padded to one of " +
			"allowed_batch_sizes.",
		In: []string{"in_tensors: Tin", "captured_tensors: Tcaptured"}, Out: []string{"out_tensors: Tout"},
		Attrs: []string{
			"f: func", "num_batch_threads: int", "max_batch_size: int", "batch_timeout_micros: int", "max_enqueued_batches: int = 10",
			"allowed_batch_sizes: list(int) = []", "container: string = ''", "shared_name: string = ''", "batching_queue: string = ''",
			"low_priority_max_batch_size: int = 0", "low_priority_batch_timeout_micros: int = 0",
			"low_priority_allowed_batch_sizes: list(int) = []", "low_priority_max_enqueued_batches: int = 0",
			"mixed_priority_policy: {'low_priority_padding_with_max_batch_size', 'low_priority_padding_with_next_allowed_batch_size', " +
				"'priority_isolation', 'priority_merge'} = 'low_priority_padding_with_max_batch_size'",
			"batch_padding_policy: {'PAD_UP', 'BATCH_DOWN', 'MINIMIZE_TPU_COST_PER_REQUEST'} = 'PAD_UP'",
			"Tin: list(type) >= 1", "Tcaptured: list(type) >= 0", "Tout: list(type) >= 1", "enable_large_batch_splitting: bool = false",
		},
		Distributed: true, Shape: opdef.UnknownShape,
	}, newFunction)
}

// function is the kernel of a node that calls a function with batches. All steps have the same
// priority. The padded size of a batch does not affect its results.
type function struct {
	*node
	f      kernel.Function
	inputs int // number of batched inputs; the node's remaining inputs are captured
}

func newFunction(c *kernel.Construction) (kernel.Kernel, error) {
	if c.Functions == nil {
		return nil, status.Internalf("No function library")
	}
	o, err := readOptions(c.Attrs, c.Attrs.Bool("enable_large_batch_splitting"),
		"final entry in allowed_batch_sizes must equal max_batch_size when enable_large_batch_splitting is False")
	if err != nil {
		return nil, err
	}
	if o.workers <= 0 {
		o.workers = adaptiveWorkers
	}
	n, err := newNode(c, o)
	if err != nil {
		return nil, err
	}
	f, err := c.Functions.InstantiateAcross(c.Attrs.Func("f"))
	if err != nil {
		return nil, err
	}
	k := &function{n, f, len(c.Attrs.Types("Tin"))}
	if i := slices.Index(c.Inputs[:k.inputs], tensor.Resource); i >= 0 {
		return nil, status.InvalidArgumentf("BatchFunction cannot take resource inputs but input %d is a resource.", i)
	}
	return kernel.AsyncFunc(k.compute), nil
}

func (k *function) compute(ctx *kernel.Context, done func(error)) {
	err := error(nil)
	if want := len(k.f.Op().Inputs); want != ctx.NumInputs() {
		err = status.InvalidArgumentf("Function takes %d argument(s) but %d argument(s) were passed", want, ctx.NumInputs())
	}
	if err == nil {
		err = k.add(ctx, 0, k.inputs, k.call, setOutputs(ctx, done))
	}
	if err != nil {
		done(err)
	}
}

// call calls the function with a batch, in the last of its steps, and waits for it. Meanwhile the
// next batch fills.
func (k *function) call(items []*item) {
	outputs, err := k.results(items)
	lo := 0
	for _, it := range items {
		var out []tensor.Tensor
		if err == nil {
			out = rowsOf(outputs, lo, lo+it.rows)
			lo += it.rows
		}
		it.finish(out, err)
	}
	for i := range outputs {
		outputs[i].Release()
	}
}

func (k *function) results(items []*item) ([]tensor.Tensor, error) {
	rows, total := membudget.Make[[]tensor.Tensor](len(items)), 0
	for i, it := range items {
		rows[i] = it.inputs
		total += it.rows
	}
	last := items[len(items)-1].ctx
	padding := k.padded(total) - total
	args := membudget.MakeCap[tensor.Tensor](last.NumInputs())
	for c := range k.inputs {
		t, err := concat(rows, c, padding)
		if err != nil {
			release(args)
			return nil, err
		}
		args = append(args, t)
	}
	for i := k.inputs; i < last.NumInputs(); i++ {
		args = append(args, last.Input(i).Retain())
	}
	type result struct {
		rets []tensor.Tensor
		err  error
	}
	ended := make(chan result, 1)
	//sizedmake:ok results of a function, as many as an attribute lists
	k.f.Call(last, args, func(rets []tensor.Tensor, err error) { ended <- result{slices.Clone(rets), err} })
	got := <-ended
	if got.err == nil {
		got.err = k.check(got.rets, total, padding)
	}
	if got.err != nil {
		release(got.rets)
		return nil, got.err
	}
	return got.rets, nil
}

// check checks that results have one row for each row of the batch.
func (k *function) check(rets []tensor.Tensor, total, padding int) error {
	if len(rets) != len(k.Outputs) {
		return status.Internalf("Wrong number of batched output tensors")
	}
	for i := range rets {
		if rets[i].Rank() == 0 {
			return status.FailedPreconditionf("Batched output tensor has 0 dimensions")
		}
		if n := rets[i].Dim(0); n != total+padding {
			return status.FailedPreconditionf("Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input "+
				"tensors. 0th dimension size: %d; batch size: %d; unbatched tasks size: 0; padding size: %d", n, total, padding)
		}
	}
	return nil
}

func release(all []tensor.Tensor) {
	for i := range all {
		all[i].Release()
	}
}
