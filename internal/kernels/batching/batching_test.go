package batching

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const forever = int64(1) << 50 // microseconds

// plusOne is a function that adds 1 to int32 and records its inputs.
type plusOne struct {
	op    opdef.Op
	calls chan []int32
	gives func([]int32) tensor.Tensor
}

func (f *plusOne) Op() *opdef.Op { return &f.op }

func (f *plusOne) Call(_ *kernel.Context, args []tensor.Tensor, done func([]tensor.Tensor, error)) {
	in := slices.Clone(tensor.Values[int32](&args[0]))
	f.calls <- in
	if len(args) > 1 && tensor.Value[string](&args[1]) != "" {
		done(nil, status.Internalf("%s", tensor.Value[string](&args[1])))
		return
	}
	done([]tensor.Tensor{f.gives(in)}, nil)
}

// Instantiate implements kernel.Functions, as do the other methods.
func (f *plusOne) Instantiate(opdef.Func) (kernel.Function, error) { return f, nil }

func (f *plusOne) InstantiateAcross(opdef.Func) (kernel.Function, error) { return f, nil }

func (f *plusOne) InstantiateOn(string, opdef.Func) (kernel.Function, error) { return f, nil }

// steps runs one graph several times concurrently.
type steps struct {
	*testing.T
	env *kerneltest.Env
	f   *plusOne
}

func newSteps(t *testing.T) *steps {
	s := &steps{t, kerneltest.NewEnv(), &plusOne{calls: make(chan []int32, 100)}}
	s.f.op.Inputs = []opdef.Arg{{Name: "x", DType: tensor.Int32}, {Name: "message", DType: tensor.String}}
	s.f.gives = func(in []int32) tensor.Tensor {
		out := slices.Clone(in)
		for i := range out {
			out[i]++
		}
		return tensor.Vector(out...)
	}
	s.env.Functions = s.f
	return s
}

// result is the outcome of a node in a step.
type result struct {
	out []tensor.Tensor
	err error
}

func (r *result) numbers(i int) []int32 { return tensor.Values[int32](&r.out[i]) }

// start runs a node in a step of its own.
func (s *steps) start(ctx context.Context, op string, attrs opdef.Attrs, in ...tensor.Tensor) <-chan result {
	s.Helper()
	env := *s.env
	step := *s.env.Step
	step.Context = ctx
	env.Step = &step
	n, err := env.MakeNode("node", op, attrs)
	ended := make(chan result, 1)
	if err != nil {
		ended <- result{err: err}
		return ended
	}
	go func() {
		out, err := n.Run(in...)
		ended <- result{out, err}
	}()
	return ended
}

// batchAttrs returns the attributes of a batch of at most the given number of rows.
func batchAttrs(most int64, more opdef.Attrs) opdef.Attrs {
	attrs := opdef.Attrs{
		"num_batch_threads": int64(1), "max_batch_size": most, "batch_timeout_micros": forever, "grad_timeout_micros": int64(0), "T": []tensor.DType{tensor.Int32},
	}
	maps.Copy(attrs, more)
	return attrs
}

func functionAttrs(most int64, more opdef.Attrs) opdef.Attrs {
	attrs := batchAttrs(most, opdef.Attrs{
		"f": opdef.Func{Name: "f"}, "Tin": []tensor.DType{tensor.Int32}, "Tcaptured": []tensor.DType{tensor.String}, "Tout": []tensor.DType{tensor.Int32},
	})
	delete(attrs, "T")
	delete(attrs, "grad_timeout_micros")
	maps.Copy(attrs, more)
	return attrs
}

func TestBatch(t *testing.T) {
	s := newSteps(t)
	one := s.start(t.Context(), "Batch", batchAttrs(3, nil), tensor.Vector[int32](1))
	two := s.start(t.Context(), "Batch", batchAttrs(3, nil), tensor.Vector[int32](2, 3))
	all := []result{<-one, <-two}
	for _, r := range all {
		if r.err != nil {
			t.Fatal(r.err)
		}
	}
	if len(all[0].numbers(0)) == 0 { // the last step has the batch
		slices.Reverse(all)
	}
	whole, index := all[0].numbers(0), tensor.Values[int64](&all[0].out[1])
	if sorted := slices.Sorted(slices.Values(whole)); !slices.Equal(sorted, []int32{1, 2, 3}) || len(index) != 6 {
		t.Fatalf("the batch is %v with index %v", whole, index)
	}
	for i := range 2 {
		id, rows := index[3*i], whole[index[3*i+1]:index[3*i+2]]
		of := all[0]
		if id != tensor.Value[int64](&of.out[2]) {
			of = all[1]
		}
		if id != tensor.Value[int64](&of.out[2]) || len(rows) == 1 != (rows[0] == 1) {
			t.Errorf("rows %v are those of %d", rows, id)
		}
	}
	if none := all[1].out; none[0].Shape()[0] != 0 || !none[1].Shape().Equal(tensor.Shape{0, 3}) {
		t.Errorf("the other step has %v", none)
	}
}

func TestBatchesAreFilledUp(t *testing.T) {
	s := newSteps(t)
	attrs := batchAttrs(10, opdef.Attrs{"allowed_batch_sizes": []int64{5, 10}, "batch_timeout_micros": int64(0)})
	r := <-s.start(t.Context(), "Batch", attrs, tensor.Vector[int32](1, 3))
	if r.err != nil || !slices.Equal(r.numbers(0), []int32{1, 3, 1, 1, 1}) || r.out[1].Dim(0) != 1 {
		t.Errorf("%v, %v", r.out, r.err)
	}
	r = <-s.start(t.Context(), "Batch", attrs, tensor.Vector[int32]())
	if r.err != nil || r.out[0].Dim(0) != 0 {
		t.Errorf("of no rows: %v, %v", r.out, r.err)
	}
}

func TestFunctionOfBatches(t *testing.T) {
	s := newSteps(t)
	one := s.start(t.Context(), "BatchFunction", functionAttrs(3, nil), tensor.Vector[int32](1), tensor.Scalar(""))
	two := s.start(t.Context(), "BatchFunction", functionAttrs(3, nil), tensor.Vector[int32](5, 6), tensor.Scalar(""))
	first, second := <-one, <-two
	if first.err != nil || second.err != nil || !slices.Equal(first.numbers(0), []int32{2}) || !slices.Equal(second.numbers(0), []int32{6, 7}) {
		t.Errorf("%v and %v", first, second)
	}
	if calls := len(s.f.calls); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

// TestLargeInputs splits the input of a step.
func TestLargeInputs(t *testing.T) {
	s := newSteps(t)
	attrs := functionAttrs(5, opdef.Attrs{
		"allowed_batch_sizes": []int64{1, 2}, "enable_large_batch_splitting": true, "batch_timeout_micros": int64(0), "num_batch_threads": int64(0),
	})
	r := <-s.start(t.Context(), "BatchFunction", attrs, tensor.Vector[int32](1, 2, 3, 4, 5), tensor.Scalar(""))
	if r.err != nil || !slices.Equal(r.numbers(0), []int32{2, 3, 4, 5, 6}) || len(s.f.calls) != 3 {
		t.Errorf("%v, %v; %d calls", r.out, r.err, len(s.f.calls))
	}
}

func TestBatchesThatFail(t *testing.T) {
	two := tensor.Vector[int32](1, 2)
	scalar := func([]int32) tensor.Tensor { return tensor.Scalar[int32](1) }
	short := func([]int32) tensor.Tensor { return tensor.Vector[int32](1) }
	now := opdef.Attrs{"batch_timeout_micros": int64(0)}
	pair := opdef.Attrs{"T": []tensor.DType{tensor.Int32, tensor.Int32}}
	for _, c := range []struct {
		op    string
		attrs opdef.Attrs
		in    []tensor.Tensor
		gives func([]int32) tensor.Tensor
		code  status.Code
		text  string
	}{
		{"Batch", batchAttrs(2, pair), []tensor.Tensor{two, tensor.Vector[int32](1)}, nil, status.InvalidArgument, "must have equal 0th-dimension size"},
		{"Batch", batchAttrs(2, nil), []tensor.Tensor{tensor.Scalar[int32](1)}, nil, status.InvalidArgument, "must have at least one dimension"},
		{"Batch", batchAttrs(1, nil), []tensor.Tensor{two}, nil, status.InvalidArgument, "Task size 2 is larger than maximum input batch size 1"},
		{"Batch", batchAttrs(2, opdef.Attrs{"allowed_batch_sizes": []int64{1}}), []tensor.Tensor{two}, nil, status.InvalidArgument, "final entry in allowed_batch_sizes must equal max_batch_size"},
		{"Batch", batchAttrs(2, opdef.Attrs{"allowed_batch_sizes": []int64{2, 2}}), []tensor.Tensor{two}, nil, status.InvalidArgument, "allowed_batch_sizes entries must be monotonically increasing"},
		{"Batch", batchAttrs(2, opdef.Attrs{"num_batch_threads": int64(0)}), []tensor.Tensor{two}, nil, status.InvalidArgument, "num_batch_threads must be positive; was 0"},
		{"BatchFunction", functionAttrs(2, now), []tensor.Tensor{two, tensor.Scalar("bad")}, nil, status.Internal, "bad"},
		{"BatchFunction", functionAttrs(2, now), []tensor.Tensor{two, tensor.Scalar("")}, scalar, status.FailedPrecondition, "Batched output tensor has 0 dimensions"},
		{"BatchFunction", functionAttrs(2, now), []tensor.Tensor{two, tensor.Scalar("")}, short, status.FailedPrecondition,
			"0th dimension size: 1; batch size: 2; unbatched tasks size: 0; padding size: 0"},
		{"BatchFunction", functionAttrs(2, opdef.Attrs{"Tcaptured": []tensor.DType{}}), []tensor.Tensor{two}, nil, status.InvalidArgument,
			"Function takes 2 argument(s) but 1 argument(s) were passed"},
	} {
		s := newSteps(t)
		if c.gives != nil {
			s.f.gives = c.gives
		}
		if r := <-s.start(t.Context(), c.op, c.attrs, c.in...); status.CodeOf(r.err) != c.code || !strings.Contains(r.err.Error(), c.text) {
			t.Errorf("%s: %v, want %s", c.op, r.err, c.text)
		}
	}
}

// TestStepsThatEnd ends a step that waits in a batch, and checks that the next ones proceed without
// it.
func TestStepsThatEnd(t *testing.T) {
	s := newSteps(t)
	ctx, cancel := context.WithCancel(t.Context())
	gone := s.start(ctx, "BatchFunction", functionAttrs(3, nil), tensor.Vector[int32](1), tensor.Scalar(""))
	cancel()
	if r := <-gone; status.CodeOf(r.err) != status.Cancelled {
		t.Fatal(r.err)
	}
	r := <-s.start(t.Context(), "BatchFunction", functionAttrs(3, nil), tensor.Vector[int32](5, 6, 7), tensor.Scalar(""))
	if r.err != nil || !slices.Equal(r.numbers(0), []int32{6, 7, 8}) {
		t.Errorf("%v, %v", r.out, r.err)
	}
}

func table(rows ...int64) tensor.Tensor {
	t, err := tensor.FromSlice(tensor.Shape{int64(len(rows) / 3), 3}, rows)
	if err != nil {
		panic(err)
	}
	return t
}

func unbatchAttrs(wait int64) opdef.Attrs {
	return opdef.Attrs{"timeout_micros": wait, "T": tensor.Int32}
}

func TestUnbatch(t *testing.T) {
	for _, first := range []bool{true, false} { // whether the step that has the batch arrives first
		s := newSteps(t)
		has := func() <-chan result {
			return s.start(t.Context(), "Unbatch", unbatchAttrs(forever), tensor.Vector[int32](10, 20, 30, 0), table(7, 0, 2, 8, 2, 3), tensor.Scalar[int64](8))
		}
		wants := func() <-chan result {
			return s.start(t.Context(), "Unbatch", unbatchAttrs(forever), tensor.Vector[int32](), table(), tensor.Scalar[int64](7))
		}
		var a, b <-chan result
		if first {
			a, b = has(), wants()
		} else {
			b, a = wants(), has()
		}
		own, other := <-a, <-b
		if own.err != nil || other.err != nil || !slices.Equal(own.numbers(0), []int32{30}) || !slices.Equal(other.numbers(0), []int32{10, 20}) {
			t.Errorf("%v and %v", own, other)
		}
	}
}

func TestUnbatchThatFails(t *testing.T) {
	s := newSteps(t)
	for _, c := range []struct {
		wait      int64
		in, index tensor.Tensor
		id        tensor.Tensor
		code      status.Code
		text      string
	}{
		{0, tensor.Vector[int32](), table(), tensor.Scalar[int64](1), status.DeadlineExceeded, "Batched data did not arrive within timeout window."},
		{0, tensor.Vector[int32](1), table(1, 0, 1, 2, 1, 2), tensor.Scalar[int64](1), status.InvalidArgument, "Wrong shape for index tensor."},
		{0, tensor.Vector[int32](1), table(1, 0, 2), tensor.Scalar[int64](1), status.InvalidArgument, "rows 0 to 2"},
		{0, tensor.Vector[int32](1), tensor.Vector[int64](1), tensor.Scalar[int64](1), status.InvalidArgument, "Wrong shape for index tensor."},
		{0, tensor.Vector[int32](1), table(1, 0, 1), tensor.Vector[int64](1), status.InvalidArgument, "Input id should be scalar"},
	} {
		if r := <-s.start(t.Context(), "Unbatch", unbatchAttrs(c.wait), c.in, c.index, c.id); status.CodeOf(r.err) != c.code || !strings.Contains(r.err.Error(), c.text) {
			t.Errorf("%v, want %s", r.err, c.text)
		}
	}
}

func TestUnbatchGrad(t *testing.T) {
	attrs := opdef.Attrs{"T": tensor.Int32}
	for _, first := range []bool{true, false} {
		s := newSteps(t)
		has := func() <-chan result {
			return s.start(t.Context(), "UnbatchGrad", attrs, tensor.Vector[int32](0, 0, 0), table(7, 0, 2, 8, 2, 3), tensor.Vector[int32](3), tensor.Scalar[int64](8))
		}
		other := func() <-chan result {
			return s.start(t.Context(), "UnbatchGrad", attrs, tensor.Vector[int32](), table(), tensor.Vector[int32](1, 2), tensor.Scalar[int64](7))
		}
		var a, b <-chan result
		if first {
			a, b = has(), other()
		} else {
			b, a = other(), has()
		}
		own, none := <-a, <-b
		if own.err != nil || none.err != nil || !slices.Equal(own.numbers(0), []int32{1, 2, 3}) || len(none.numbers(0)) != 0 {
			t.Errorf("%v and %v", own, none)
		}
	}
	s := newSteps(t)
	for text, in := range map[string][]tensor.Tensor{
		"Expected `id` to be scalar.":                       {tensor.Vector[int32](1), table(), tensor.Vector[int32](1), tensor.Vector[int64](1)},
		"batch_index is empty while the tensor isn't.":      {tensor.Vector[int32](1), table(), tensor.Vector[int32](1), tensor.Scalar[int64](1)},
		"batch_index should contain 6 elements. Received 2": {tensor.Vector[int32](1), tensor.Vector[int64](1, 2), tensor.Vector[int32](1), tensor.Scalar[int64](1)},
	} {
		if r := <-s.start(t.Context(), "UnbatchGrad", attrs, in...); status.CodeOf(r.err) != status.InvalidArgument || !strings.Contains(r.err.Error(), text) {
			t.Errorf("%v, want %s", r.err, text)
		}
	}
}

// A batch of very many missing rows waits, and ends with its step.
func TestManyMissingRows(t *testing.T) {
	const n = 300_000
	rows := make([]int64, 3*n)
	for i := range n {
		rows[3*i] = int64(i)
	}
	index, err := tensor.FromSlice(tensor.Shape{n, 3}, rows)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := newSteps(t).start(ctx, "UnbatchGrad", opdef.Attrs{"T": tensor.Int32}, tensor.Vector[int32](1), index, tensor.Vector[int32](1), tensor.Scalar[int64](1))
	cancel()
	if r := <-waits; status.CodeOf(r.err) != status.Cancelled {
		t.Errorf("got %v", r.err)
	}
}

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		op    string
		attrs opdef.Attrs
		in    []tensor.PartialShape
		want  string
	}{
		{"Batch", batchAttrs(1, nil), []tensor.PartialShape{tensor.MakePartial(1, 4)}, "[?,4] [?,3] []"},
		{"Unbatch", unbatchAttrs(1), []tensor.PartialShape{tensor.MakePartial(3, 4), {}, {}}, "[?,4]"},
		{"UnbatchGrad", opdef.Attrs{"T": tensor.Int32}, []tensor.PartialShape{{}, {}, tensor.MakePartial(3, 4), {}}, "[?,?]"},
	} {
		got, err := kerneltest.Shapes(c.op, c.attrs, c.in, nil)
		var text []string
		for _, s := range got {
			text = append(text, s.String())
		}
		if err != nil || strings.Join(text, " ") != c.want {
			t.Errorf("%s: %v, %v", c.op, got, err)
		}
	}
}

// The parts of a large input leave the queue at once when their step ends. One by one, each would
// go through all batches.
func TestLargeInputsThatEnd(t *testing.T) {
	s := newSteps(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	step := *s.env.Step
	step.Context = ctx
	rows, err := tensor.Zeros(tensor.Int32, tensor.Shape{100_000})
	if err != nil {
		t.Fatal(err)
	}
	it := &item{
		ctx: &kernel.Context{Step: &step}, inputs: []tensor.Tensor{rows}, rows: rows.Dim(0),
		done: func(_ []tensor.Tensor, err error) { ended <- err },
	}
	// a queue without workers
	q := &queue{options: options{largest: it.rows, full: 1, most: it.rows, split: true}}
	if err := q.add(it); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	q.mu.Lock()
	cancel()
	if n := runtime.NumGoroutine() - before; n > 100 {
		t.Errorf("%d goroutines remove the parts", n)
	}
	q.mu.Unlock()
	if err := <-ended; status.CodeOf(err) != status.Cancelled {
		t.Error(err)
	}
}

// A batch whose step ends before all gradients have come leaves no rows.
func TestRowsOfBatchesThatEnd(t *testing.T) {
	ended := 0
	b := &gradBatch{keys: []int64{1, 2, 3}, done: func([]tensor.Tensor, error) { ended++ }}
	g := &gradients{
		rows:    map[int64]tensor.Tensor{1: tensor.Vector[float32](1), 3: tensor.Vector[float32](3), 4: tensor.Vector[float32](4)},
		batches: map[int64]*gradBatch{1: b}, wanted: map[int64]int64{2: 1, 5: 4},
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.cancel(&kernel.Context{Step: &kernel.Step{Context: ctx}}, 1, b)
	if len(g.rows) != 1 || len(g.wanted) != 1 || len(g.batches) != 0 || ended != 1 {
		t.Errorf("rows %v, wanted %v, %d batches, ended %d times", g.rows, g.wanted, len(g.batches), ended)
	}
}
