package batching

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Batch",
		Doc: "Batches the input rows of several steps. One step receives the batch and an " +
			"index that maps its rows to the steps. The others receive empty tensors. Blocks " +
			"until max_batch_size rows are available, for at most batch_timeout_micros.",
		In: []string{"in_tensors: T"}, Out: []string{"batched_tensors: T", "batch_index: int64", "id: int64"},
		Attrs: []string{
			"num_batch_threads: int", "max_batch_size: int", "max_enqueued_batches: int = 10", "batch_timeout_micros: int",
			"allowed_batch_sizes: list(int) = []", "grad_timeout_micros: int", "container: string = ''", "shared_name: string = ''",
			"batching_queue: string = ''", "T: list(type) >= 1",
		},
		Distributed: true, Shape: batchShape,
	}, newBatch)
}

func batchShape(c *opdef.ShapeContext) error {
	for i, in := range c.In {
		var err error
		if c.Out[i], err = anyRows(in); err != nil {
			return err
		}
	}
	c.Out[len(c.In)], c.Out[len(c.In)+1] = tensor.MakePartial(-1, 3), tensor.MakePartial()
	return nil
}

// anyRows returns a shape with an unknown first dimension.
func anyRows(s tensor.PartialShape) (tensor.PartialShape, error) {
	if !s.RankKnown() {
		return s, nil
	}
	dims := s.Dims()
	if len(dims) == 0 {
		return s, status.InvalidArgumentf("Out of range dim_index 0 for shape with 0 dimensions")
	}
	dims[0] = tensor.UnknownDim
	return tensor.MakePartial(dims...), nil
}

// batcher is the resource that holds the queues of nodes.
type batcher struct {
	options

	mu     sync.Mutex
	queues map[string]*queue // guarded by mu
}

// TypeName names the resource as TensorFlow does.
func (*batcher) TypeName() string { return "N10tensorflow13BatchResourceE" }

func (b *batcher) queue(name string) *queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[name]
	if q == nil {
		q = &queue{options: b.options}
		if b.queues == nil {
			b.queues = map[string]*queue{}
		}
		b.queues[name] = q
	}
	return q
}

// adaptiveWorkers is the default number of batches processed at once, as in TensorFlow.
const adaptiveWorkers = 128

// mostWorkers bounds the batches that a queue processes at once, each on a goroutine.
const mostWorkers = 1000

// readOptions reads the attributes that Batch and BatchFunction share.
func readOptions(a opdef.Attrs, split bool, unequal string) (options, error) {
	o := options{
		workers: min(a.Int("num_batch_threads"), mostWorkers), largest: a.Int("max_batch_size"), full: a.Int("max_batch_size"),
		wait: time.Duration(a.Int("batch_timeout_micros")) * time.Microsecond, most: a.Int("max_enqueued_batches"),
		allowed: a.Ints("allowed_batch_sizes"), split: split,
	}
	for i, size := range o.allowed {
		if i > 0 && size <= o.allowed[i-1] {
			return o, status.InvalidArgumentf("allowed_batch_sizes entries must be monotonically increasing")
		}
	}
	if n := len(o.allowed); n > 0 {
		last := int(o.allowed[n-1])
		if !split && last != o.largest {
			return o, status.InvalidArgumentf("%s", unequal)
		}
		o.full = min(last, o.largest)
	}
	switch {
	case o.largest <= 0 || o.full <= 0:
		return o, status.InvalidArgumentf("input_batch_size_limit must be positive; was %d", min(o.largest, o.full))
	case o.wait < 0:
		return o, status.InvalidArgumentf("batch_timeout_micros must be non-negative; was %d", a.Int("batch_timeout_micros"))
	case o.most <= 0:
		return o, status.InvalidArgumentf("max_enqueued_batches must be positive; was %d", o.most)
	}
	return o, nil
}

// node is a node that batches the inputs of several steps.
type node struct {
	*kernel.Construction
	options
	place resource.Place
	queue string
}

func newNode(c *kernel.Construction, o options) (*node, error) {
	place, err := resource.PlaceOf(c, true)
	return &node{c, o, place, c.Attrs.String("batching_queue")}, err
}

// add adds inputs lo to hi of the node to a batch. It calls done with the node's outputs unless it
// returns an error.
func (n *node) add(ctx *kernel.Context, lo, hi int, process func([]*item), done func([]tensor.Tensor, error)) error {
	if err := n.check(ctx, lo, hi); err != nil {
		return err
	}
	rows := ctx.Input(lo).Dim(0)
	if rows == 0 {
		return n.outputEmpty(ctx, done)
	}
	b, err := kernel.LookupOrCreateResource(ctx.Device.Resources, n.place.Container, n.place.Name,
		func() (*batcher, error) { return &batcher{options: n.options}, nil })
	if err != nil {
		return err
	}
	it := &item{id: rand.Int64(), ctx: ctx, rows: rows, process: process, done: done}
	for i := lo; i < hi; i++ {
		//sizedmake:ok one for each input
		it.inputs = append(it.inputs, ctx.Input(i).Retain())
	}
	if err := b.queue(n.queue).add(it); err != nil {
		for i := range it.inputs {
			it.inputs[i].Release()
		}
		return err
	}
	return nil
}

func (n *node) check(ctx *kernel.Context, lo, hi int) error {
	for i := lo; i < hi; i++ {
		in := ctx.Input(i)
		if in.Rank() == 0 {
			return status.InvalidArgumentf("Batching input tensors must have at least one dimension.\nBelow are the input tensors: \n%s", n.describe(ctx, lo, hi))
		}
		if in.Dim(0) != ctx.Input(lo).Dim(0) {
			return status.InvalidArgumentf("Batching input tensors supplied in a given op invocation must have equal 0th-dimension size.\n"+
				"Below are the input tensors: \n%s", n.describe(ctx, lo, hi))
		}
	}
	return nil
}

func (n *node) describe(ctx *kernel.Context, lo, hi int) string {
	var s strings.Builder
	for i := lo; i < hi; i++ {
		fmt.Fprintf(&s, " - %s has shape %v\n", n.InputName(i), ctx.Input(i).Shape())
	}
	return s.String()
}

// outputEmpty returns empty outputs to a step whose input has no rows.
func (n *node) outputEmpty(ctx *kernel.Context, done func([]tensor.Tensor, error)) error {
	out := membudget.Make[tensor.Tensor](ctx.NumOutputs())
	for i := range out {
		var err error
		if out[i], err = tensor.Zeros(ctx.OutputType(i), tensor.Shape{0}); err != nil {
			return err
		}
	}
	done(out, nil)
	return nil
}

// setOutputs returns a callback that sets a node's outputs and ends its execution.
func setOutputs(ctx *kernel.Context, done func(error)) func([]tensor.Tensor, error) {
	return func(outputs []tensor.Tensor, err error) {
		for i := range outputs {
			ctx.SetOutput(i, outputs[i])
		}
		done(err)
	}
}

func newBatch(c *kernel.Construction) (kernel.Kernel, error) {
	o, err := readOptions(c.Attrs, false, "final entry in allowed_batch_sizes must equal max_batch_size")
	if err == nil && o.workers <= 0 {
		err = status.InvalidArgumentf("num_batch_threads must be positive; was %d", o.workers)
	}
	if err != nil {
		return nil, err
	}
	n, err := newNode(c, o)
	if err != nil {
		return nil, err
	}
	return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		if err := n.add(ctx, 0, ctx.NumInputs(), n.gather, setOutputs(ctx, done)); err != nil {
			done(err)
		}
	}), nil
}

// gather passes all rows of a batch to the last of its steps.
func (n *node) gather(items []*item) {
	rows, index, total := membudget.Make[[]tensor.Tensor](len(items)), []int64(nil), 0
	for i, it := range items {
		rows[i] = it.inputs
		index = membudget.AppendAll(index, it.id, int64(total), int64(total+it.rows))
		total += it.rows
	}
	last := items[len(items)-1]
	var err error
	if slices.ContainsFunc(items, func(it *item) bool { return len(it.inputs) != len(last.inputs) }) {
		err = status.InvalidArgumentf("Batching inputs must have equal number of edges")
	}
	var whole []tensor.Tensor
	for c := 0; err == nil && c < len(last.inputs); c++ {
		var t tensor.Tensor
		t, err = concat(rows, c, n.padded(total)-total)
		//sizedmake:ok one for each input
		whole = append(whole, t)
	}
	for _, it := range items[:len(items)-1] {
		out, none := emptyOutputs(it)
		it.finish(out, cmp.Or(err, none))
	}
	if err != nil {
		last.finish(nil, err)
		return
	}
	table, err := tensor.FromSlice(tensor.Shape{int64(len(items)), 3}, index)
	last.finish(append(whole, table, tensor.Scalar(last.id)), err)
}

// emptyOutputs returns the empty outputs of a step whose rows are passed to another step.
func emptyOutputs(it *item) ([]tensor.Tensor, error) {
	var out []tensor.Tensor
	for i := range it.inputs {
		t, err := tensor.Zeros(it.inputs[i].DType(), slices.Concat(tensor.Shape{0}, it.inputs[i].Shape()[1:]))
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	table, err := tensor.Zeros(tensor.Int64, tensor.Shape{0, 3})
	return append(out, table, tensor.Scalar(it.id)), err
}
