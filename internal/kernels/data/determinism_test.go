package data

import (
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// gate is a function library whose functions block element 0 until the gate is opened: "identity"
// returns its argument, "positive" reports whether it is >= 0, "twice" returns a dataset that
// contains the argument twice. "append" returns 10*state + element and does not block.
type gate struct {
	opened  func()
	enter   func()
	open    chan struct{}
	entered chan struct{} // closed when element 0 blocks
	passed  chan int64    // the other elements, and those of append
	blocked int64
}

func newGate() *gate {
	g := &gate{open: make(chan struct{}), entered: make(chan struct{}), passed: make(chan int64, 64)}
	g.opened = sync.OnceFunc(func() { close(g.open) })
	g.enter = sync.OnceFunc(func() { close(g.entered) })
	return g
}

func (g *gate) Instantiate(fn opdef.Func) (kernel.Function, error) {
	return &gated{gate: g, name: fn.Name}, nil
}

func (g *gate) InstantiateAcross(fn opdef.Func) (kernel.Function, error) { return g.Instantiate(fn) }

func (g *gate) InstantiateOn(_ string, fn opdef.Func) (kernel.Function, error) {
	return g.Instantiate(fn)
}

type gated struct {
	*gate
	name string
}

func (f *gated) Op() *opdef.Op { return &opdef.Op{Name: f.name} }

func (f *gated) Call(ctx *kernel.Context, args []tensor.Tensor, done func([]tensor.Tensor, error)) {
	x := tensor.Value[int64](&args[0])
	switch f.name {
	case "append":
		y := tensor.Value[int64](&args[1])
		f.passed <- y
		done([]tensor.Tensor{num(10*x + y)}, nil)
		return
	case "twice":
		one := &captured{Function: &gated{gate: f.gate, name: "identity"}}
		s := &spec{[]tensor.DType{tensor.Int64}, []tensor.PartialShape{tensor.MakePartial()}}
		numbers := &tensorsDataset{spec: *s, tensors: element{tensor.Vector(x, x)}, rows: true, n: 2}
		done([]tensor.Tensor{wrap(&mapDataset{stage{s, numbers}, one, false})}, nil)
		return
	}
	if x == f.blocked {
		f.enter()
		select {
		case <-f.open:
		case <-ctx.Context().Done():
			done(nil, status.FromContext(ctx.Context(), "gate"))
			return
		}
	} else {
		f.passed <- x
	}
	if f.name == "positive" {
		done([]tensor.Tensor{tensor.Scalar(x >= 0)}, nil)
		return
	}
	done([]tensor.Tensor{num(x)}, nil)
}

// gatedBench returns a bench with a gate as function library.
func gatedBench(t *testing.T) (*bench, *gate) {
	b, g := newBench(t), newGate()
	b.env.Functions = g
	t.Cleanup(g.opened)
	return b, g
}

// parallelForm is a parallel operation with a parameter for the order of its elements.
type parallelForm struct {
	op     string
	f      string // name of the function
	attr   string // attribute that sets the policy; if empty, the input sloppy does
	inputs []tensor.Tensor
	each   int // number of elements for each element of the input
	// number of elements that pass the gate while an ordered iterator waits for element 0
	ahead int
}

var parallelForms = []parallelForm{
	{"ParallelMapDataset", "identity", "sloppy", []tensor.Tensor{tensor.Scalar[int32](4)}, 1, 3},
	{"ParallelMapDatasetV2", "identity", "deterministic", []tensor.Tensor{num(4)}, 1, 3},
	{"ParallelFilterDataset", "positive", "deterministic", []tensor.Tensor{num(4)}, 1, 3},
	{"ParallelInterleaveDatasetV2", "twice", "sloppy", []tensor.Tensor{num(4), num(1), num(4)}, 2, 6},
	{"ParallelInterleaveDatasetV3", "twice", "deterministic", []tensor.Tensor{num(4), num(2), num(2)}, 2, 6},
	{"ParallelInterleaveDatasetV4", "twice", "deterministic", []tensor.Tensor{num(4), num(1), num(1), num(1), num(autotune)}, 2, 3},
	{"LegacyParallelInterleaveDatasetV2", "twice", "deterministic", []tensor.Tensor{num(4), num(1), num(2), num(2)}, 2, 6},
	{"ParallelInterleaveDataset", "twice", "", []tensor.Tensor{num(4), num(1), tensor.Scalar(false), num(2), num(2)}, 2, 6},
	{"ExperimentalParallelInterleaveDataset", "twice", "", []tensor.Tensor{num(4), num(1), tensor.Scalar(false), num(2), num(2)}, 2, 6},
}

// dataset returns the operation applied to the numbers below 8 with a policy: "default", "true" or
// "false".
func (p *parallelForm) dataset(b *bench, policy string) tensor.Tensor {
	b.Helper()
	attrs := b.attrs()
	attrs["Targuments"] = []tensor.DType{}
	attr := "f"
	if p.f == "positive" {
		attr = "predicate"
	}
	attrs[attr] = opdef.Func{Name: p.f}
	inputs := slices.Clone(p.inputs)
	switch p.attr {
	case "sloppy":
		attrs["sloppy"] = policy == "false"
	case "deterministic":
		attrs["deterministic"] = policy
	default:
		inputs[2] = tensor.Scalar(policy == "false")
	}
	out, err := b.run("d", p.op, attrs, append([]tensor.Tensor{b.count(0, 8)}, inputs...)...)
	if err != nil {
		b.Fatalf("%s: %v", p.op, err)
	}
	return out[0]
}

// withDeterministic adds options with the given value of deterministic.
func withDeterministic(b *bench, d tensor.Tensor, deterministic bool) tensor.Tensor {
	b.Helper()
	const field = 1
	attrs := b.attrs()
	attrs["serialized_options"] = string(protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), protowire.EncodeBool(deterministic)))
	out, err := b.run("options", "OptionsDataset", attrs, d)
	if err != nil {
		b.Fatal(err)
	}
	return out[0]
}

// TestParallelDatasetOrder blocks element 0. Without an order the others overtake it, with an
// order they wait. The table has TensorFlow 2.21's results.
func TestParallelDatasetOrder(t *testing.T) {
	t.Parallel()
	for _, p := range parallelForms {
		for _, c := range []struct {
			policy    string
			options   []bool // values of deterministic, one OptionsDataset each
			unordered bool
		}{
			{"default", nil, false},
			{"default", []bool{true}, false},
			{"default", []bool{false}, true},
			{"default", []bool{false, true}, false},
			{"true", nil, false},
			{"true", []bool{false}, false},
			{"false", nil, true},
			{"false", []bool{true}, true},
		} {
			if p.attr == "sloppy" && c.policy == "true" {
				continue // the attribute has no such value
			}
			if p.attr == "" && c.policy == "default" {
				c.unordered = false // the input sloppy overrides the options
			}
			b, g := gatedBench(t)
			d := p.dataset(b, c.policy)
			for _, v := range c.options {
				d = withDeterministic(b, d, v)
			}
			var want []int64
			if c.unordered {
				it := b.iterator("it", d)
				others := b.take(it, 7*p.each)
				slices.Sort(others)
				for i := range 7 * int64(p.each) {
					want = append(want, 1+i/int64(p.each))
				}
				if !slices.Equal(others, want) {
					t.Errorf("%s, %+v: the elements before 0 are %v", p.op, c, others)
				}
				g.opened()
				want = make([]int64, p.each)
				if got := b.take(it, -1); !slices.Equal(got, want) {
					t.Errorf("%s, %+v: the last elements are %v", p.op, c, got)
				}
				continue
			}
			it := b.iterator("it", d)
			first := b.start("first", "IteratorGetNext", b.attrs(), it)
			<-g.entered
			for range p.ahead {
				<-g.passed
			}
			g.opened()
			got := <-first
			if got.Err != nil || tensor.Value[int64](&got.Outputs[0].Tensor) != 0 {
				t.Errorf("%s, %+v: the first element is %v, %v", p.op, c, got.Outputs, got.Err)
			}
			if rest := b.take(it, -1); len(rest) != 8*p.each-1 {
				t.Errorf("%s, %+v: the other elements are %v", p.op, c, rest)
			}
		}
	}
}

// start starts a node and returns a channel for its result.
func (b *bench) start(node, op string, attrs opdef.Attrs, in ...tensor.Tensor) <-chan kerneltest.Result {
	b.Helper()
	n, err := b.env.MakeNode(node, op, attrs)
	if err != nil {
		b.Fatal(err)
	}
	return n.Start(in...)
}

func TestUnknownDeterminismPolicy(t *testing.T) {
	t.Parallel()
	b, _ := gatedBench(t)
	attrs := b.attrs()
	attrs["f"], attrs["Targuments"], attrs["deterministic"] = opdef.Func{Name: "identity"}, []tensor.DType{}, "maybe"
	_, err := b.run("d", "ParallelMapDatasetV2", attrs, b.count(0, 3), num(2))
	if want := "Unrecognized determinism policy: maybe"; status.CodeOf(err) != status.InvalidArgument || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestSaveUnorderedIterator saves an iterator while element 0 is blocked and continues with another
// iterator.
func TestSaveUnorderedIterator(t *testing.T) {
	t.Parallel()
	for _, p := range parallelForms {
		for _, n := range []int{0, 3, 7 * p.each} {
			b, g := gatedBench(t)
			d := p.dataset(b, "false")
			it := b.iterator("it", d)
			all := b.take(it, n)
			save := b.start("save", "SerializeIterator", nil, it)
			g.opened()
			saved := <-save
			if saved.Err != nil {
				t.Fatal(saved.Err)
			}
			other := b.iterator("other", d)
			b.take(other, 2)
			if _, err := b.run("restore", "DeserializeIterator", nil, other, saved.Outputs[0].Tensor); err != nil {
				t.Fatalf("%s: %v", p.op, err)
			}
			all = append(all, b.take(other, -1)...)
			slices.Sort(all)
			var want []int64
			for i := range 8 * int64(p.each) {
				want = append(want, i/int64(p.each))
			}
			if !slices.Equal(all, want) {
				t.Errorf("%s after %d elements: all are %v", p.op, n, all)
			}
		}
	}
}

// TestMapsReturnReadyElements blocks the input of a parallel map. The elements before it are
// returned.
func TestMapsReturnReadyElements(t *testing.T) {
	t.Parallel()
	b, g := gatedBench(t)
	g.blocked = 2
	attrs := b.attrs()
	attrs["f"], attrs["Targuments"] = opdef.Func{Name: "identity"}, []tensor.DType{}
	input, err := b.run("input", "MapDataset", attrs, b.count(0, 4))
	if err != nil {
		t.Fatal(err)
	}
	other := newGate()
	other.blocked = -1
	b.env.Functions = other
	d, err := b.run("d", "ParallelMapDatasetV2", attrs, input[0], num(4))
	if err != nil {
		t.Fatal(err)
	}
	it := b.iterator("it", d[0])
	if got := b.take(it, 2); !slices.Equal(got, []int64{0, 1}) {
		t.Errorf("elements are %v", got)
	}
	g.opened()
	if got := b.take(it, -1); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("elements after the blocked one are %v", got)
	}
}

// TestReduceOptions opens the gate after all elements except 0 are reduced.
func TestReduceOptions(t *testing.T) {
	t.Parallel()
	b, g := gatedBench(t)
	d := withDeterministic(b, parallelForms[1].dataset(b, "default"), false)
	attrs := b.attrs()
	attrs["f"], attrs["Targuments"], attrs["Tstate"] = opdef.Func{Name: "append"}, []tensor.DType{}, []tensor.DType{tensor.Int64}
	reduced := b.start("reduce", "ReduceDataset", attrs, d, num(0))
	for range 14 { // each passes the gate and is reduced
		<-g.passed
	}
	g.opened()
	got := <-reduced
	if got.Err != nil || tensor.Value[int64](&got.Outputs[0].Tensor)%10 != 0 {
		t.Errorf("got %v, %v", got.Outputs, got.Err)
	}
}

func TestMultiDeviceIteratorOptions(t *testing.T) {
	t.Parallel()
	b, g := gatedBench(t)
	it := b.deal()
	id := b.begin(it, withDeterministic(b, parallelForms[1].dataset(b, "default"), false), 1)
	for i := range int32(7) {
		if v, err := b.shard(it, i%3, id); v == 0 || err != nil {
			t.Errorf("request %d: %d, %v", i, v, err)
		}
	}
	g.opened()
	if v, err := b.shard(it, 7%3, id); v != 0 || err != nil {
		t.Errorf("the last request: %d, %v", v, err)
	}
}
