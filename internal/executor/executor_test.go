package executor_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/executor"
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/internal/rendezvous"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestMain(m *testing.M) {
	registerOps()
	code := m.Run()
	parallel.SetThreads(1) // stops the workers
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestSimpleAdd(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.sum(b.arg(0, tensor.Int64), b.arg(1, tensor.Int64)))
	wantNumber(t, &b.run(1, 2, 3)[0], 5)
}

func TestNoNodes(t *testing.T) { newBuilder(t).run(0) }

func TestNoInputs(t *testing.T) {
	b := newBuilder(t)
	b.number(1)
	b.run(0)
}

// TestSelfAdd doubles a number 30 times.
func TestSelfAdd(t *testing.T) {
	b := newBuilder(t)
	v := b.arg(0, tensor.Int64)
	for range 30 {
		v = b.sum(v, v)
	}
	b.ret(0, v)
	wantNumber(t, &b.run(1, 1)[0], 1<<30)
}

// TestRandomTree adds 4096 numbers in random order.
func TestRandomTree(t *testing.T) {
	b := newBuilder(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var nodes []graph.Output
	for range 4096 {
		nodes = append(nodes, b.number(1))
	}
	take := func() graph.Output {
		i := rng.IntN(len(nodes))
		out := nodes[i]
		nodes[i] = nodes[len(nodes)-1]
		nodes = nodes[:len(nodes)-1]
		return out
	}
	for len(nodes) > 1 {
		nodes = append(nodes, b.sum(take(), take()))
	}
	b.ret(0, nodes[0])
	wantNumber(t, &b.run(1)[0], 4096)
}

// TestConcurrentAddAssign lets many nodes add to one variable.
func TestConcurrentAddAssign(t *testing.T) {
	b := newBuilder(t)
	v := b.add("v", "Var", nil).Out(0)
	init := b.add("init", "AssignRef", nil, v, b.number(0))
	last := b.add("last", "NoOp", nil)
	one := b.number(1)
	for range 1024 {
		add := b.add("", "AssignAddRef", nil, v, one)
		b.ConnectControl(init, add)
		b.ConnectControl(add, last)
	}
	read := b.typed("Identity", v)
	b.ConnectControl(last, read)
	b.ret(0, read.Out(0))
	e := b.compile()
	for range 10 {
		rets, err := call(t, e, 1)
		if err != nil {
			t.Fatal(err)
		}
		wantNumber(t, &rets[0], 1024)
	}
}

func TestConstantsAreNotTakenOver(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.sum(b.number(1), b.number(2)))
	e := b.compile()
	for range 3 {
		rets, err := call(t, e, 1)
		if err != nil {
			t.Fatal(err)
		}
		wantNumber(t, &rets[0], 3)
	}
}

func TestSwitch(t *testing.T) {
	for _, pred := range []bool{true, false} {
		b := newBuilder(t)
		onFalse, onTrue := b.sw(b.number(7), b.constant(tensor.Scalar(pred)))
		b.ret(0, b.typed("Identity", onFalse).Out(0))
		b.ret(1, b.typed("Identity", onTrue).Out(0))
		after := b.number(8) // a control edge from a dead node kills
		b.ConnectControl(onFalse.Node, after.Node)
		b.ret(2, after)
		dead := b.number(9)
		b.ConnectControl(b.typed("Identity", onFalse).Out(0).Node, dead.Node)
		b.ret(3, dead)
		trigger := b.add("", "ControlTrigger", nil)
		b.ConnectControl(dead.Node, trigger)
		alive := b.number(10)
		b.ConnectControl(trigger, alive.Node)
		b.ret(4, alive)
		rets := b.run(5)
		live, other := 0, 1
		if pred {
			live, other = 1, 0
		}
		wantNumber(t, &rets[live], 7)
		if rets[other].Initialized() || rets[3].Initialized() == pred {
			t.Errorf("pred %t: got %v and %v", pred, &rets[other], &rets[3])
		}
		wantNumber(t, &rets[2], 8)
		wantNumber(t, &rets[4], 10)
	}
}

func TestSwitchN(t *testing.T) {
	for index, want := range map[int32]int{-1: 2, 0: 0, 1: 1, 2: 2, 3: 2} {
		b := newBuilder(t)
		n := b.add("", "_SwitchN", opdef.Attrs{"T": tensor.Int64, "num_outs": int64(3)}, b.number(7), b.constant(tensor.Scalar(index)))
		for i := range 3 {
			b.ret(i, n.Out(i))
		}
		rets := b.run(3)
		for i := range rets {
			if rets[i].Initialized() != (i == want) {
				t.Errorf("index %d: output %d is %v", index, i, &rets[i])
			}
		}
	}
}

func TestMerge(t *testing.T) {
	for _, pred := range []bool{true, false} {
		b := newBuilder(t)
		onFalse, onTrue := b.sw(b.number(7), b.constant(tensor.Scalar(pred)))
		m := b.merge(2, b.sum(onFalse, b.number(100)), b.sum(onTrue, b.number(200)))
		b.ret(0, m.Out(0))
		index := b.add("", "_Retval", opdef.Attrs{"T": tensor.Int32, "index": int64(1)}, m.Out(1))
		b.ConnectControl(m, index)
		rets := b.run(2)
		want, wantIndex := int64(107), int32(0)
		if pred {
			want, wantIndex = 207, 1
		}
		wantNumber(t, &rets[0], want)
		if got := tensor.Value[int32](&rets[1]); got != wantIndex {
			t.Errorf("pred %t: input %d won, want %d", pred, got, wantIndex)
		}
	}
}

// TestMergeWaitsForControlInputs has a Merge with a control input and without live inputs.
func TestMergeWaitsForControlInputs(t *testing.T) {
	b := newBuilder(t)
	yes := b.constant(tensor.Scalar(true))
	dead, _ := b.sw(b.number(1), yes)
	m := b.merge(2, dead, dead)
	late := b.add("", "AddLater", nil, b.number(1), b.number(2))
	b.ConnectControl(late, m)
	b.ret(0, m.Out(0))
	alive := b.merge(2, dead, b.number(5))
	b.ConnectControl(late, alive)
	b.ret(1, alive.Out(0))
	rets := b.run(2)
	if rets[0].Initialized() {
		t.Errorf("a Merge without live inputs has the value %v", &rets[0])
	}
	wantNumber(t, &rets[1], 5)
}

func TestBadPredicate(t *testing.T) {
	b := newBuilder(t)
	b.sw(b.number(1), b.constant(tensor.Vector(true, false)))
	if _, err := call(t, b.compile(), 0); err == nil || !strings.Contains(err.Error(), "must be a scalar, but it has shape [2]") {
		t.Errorf("got %v", err)
	}
}

func TestAsyncKernels(t *testing.T) {
	b := newBuilder(t)
	v := b.arg(0, tensor.Int64)
	sums := make([]graph.Output, 20)
	for i := range sums {
		sums[i] = v
		for range 20 {
			sums[i] = b.add("", "AddLater", nil, sums[i], b.number(int64(i))).Out(0)
		}
		b.ret(i, sums[i])
	}
	rets := b.run(len(sums), 5)
	for i := range rets {
		wantNumber(t, &rets[i], 5+int64(20*i))
	}
}

func TestRunAsync(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.add("", "AddLater", nil, b.arg(0, tensor.Int64), b.number(1)).Out(0))
	e := b.compile()
	const n = 50
	rets := make([]tensor.Tensor, n)
	var all sync.WaitGroup
	all.Add(n)
	for i := range n {
		opts := executor.RunOptions{Args: []tensor.Tensor{tensor.Scalar(int64(i))}, Rets: rets[i : i+1]}
		e.RunAsync(newStep(t, nil), opts, func(err error) {
			if err != nil {
				t.Error(err)
			}
			all.Done()
		})
	}
	all.Wait()
	for i := range rets {
		wantNumber(t, &rets[i], int64(i)+1)
	}
}

func TestDoneTwice(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.add("", "DoneTwice", nil, b.number(1)).Out(0))
	wantNumber(t, &b.run(1)[0], 1)
}

func TestManyRunsAtOnce(t *testing.T) {
	b := newBuilder(t)
	x := b.arg(0, tensor.Int64)
	y := b.add("", "Work", opdef.Attrs{"micros": int64(20)}, x).Out(0)
	b.ret(0, b.sum(b.countTo("f", 10, x, b.sum(x, b.number(100)), b.number(1)), b.add("", "AddLater", nil, x, y).Out(0)))
	e := b.compile()
	var all sync.WaitGroup
	for i := range int64(8) {
		all.Go(func() {
			for j := range int64(20) {
				rets, err := call(t, e, 1, i*j)
				if err != nil {
					t.Error(err)
					return
				}
				wantNumber(t, &rets[0], 3*i*j+100)
			}
		})
	}
	all.Wait()
}

// TestExpensiveKernels spreads kernels that take long over the cores, and checks that all are seen to.
func TestExpensiveKernels(t *testing.T) {
	defer parallel.SetThreads(parallel.SetThreads(4))
	b := newBuilder(t)
	one := b.number(1)
	for i := range 30 {
		v := one
		for range 3 {
			v = b.sum(b.add("", "Work", opdef.Attrs{"micros": int64(30)}, v).Out(0), one)
		}
		b.ret(i, v)
	}
	e := b.compile()
	for range 10 {
		rets, err := call(t, e, 30)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rets {
			wantNumber(t, &rets[i], 4)
		}
	}
}

func TestReferences(t *testing.T) {
	b := newBuilder(t)
	v := b.add("v", "Var", nil).Out(0)
	set := b.add("set", "AssignRef", nil, v, b.arg(0, tensor.Int64))
	onFalse, onTrue := b.add("sw", "RefSwitch", opdef.Attrs{"T": tensor.Int64}, set.Out(0), b.constant(tensor.Scalar(true))).Out(0),
		b.Node("sw").Out(1)
	added := b.add("", "AssignAddRef", nil, onTrue, b.number(1)).Out(0)
	merged := b.add("m", "RefMerge", opdef.Attrs{"T": tensor.Int64, "N": int64(2)}, onFalse, added).Out(0)
	b.ret(0, b.sum(merged, merged))
	wantNumber(t, &b.run(1, 20)[0], 42)
}

func TestUninitialized(t *testing.T) {
	for _, op := range []string{"Identity", "Add2", "AssignAddRef"} {
		b := newBuilder(t)
		v := b.add("scope/v", "Var", nil).Out(0)
		switch op {
		case "Identity":
			b.typed(op, v)
		default:
			b.add("", op, nil, v, b.number(1))
		}
		_, err := call(t, b.compile(), 0)
		if status.CodeOf(err) != status.FailedPrecondition ||
			!strings.HasPrefix(err.Error(), "Attempting to use uninitialized value scope/v\n\t [[{{node "+op) {
			t.Errorf("%s: got %v", op, err)
		}
	}
}

func TestErrors(t *testing.T) {
	tests := []struct {
		op       string
		attrs    opdef.Attrs
		code     status.Code
		contains string
	}{
		{"Fail", nil, status.InvalidArgument, "failed\n\t [[{{node bad}}]]"},
		{"Fail", opdef.Attrs{"code": int64(status.Unavailable)}, status.Internal, "replaced by InternalError"},
		{"FailDistributed", opdef.Attrs{"code": int64(status.Unavailable)}, status.Unavailable, "failed"},
		{"Fail", opdef.Attrs{"code": int64(status.ResourceExhausted)}, status.ResourceExhausted, "\nHint: If you want"},
		{"Panic", nil, status.Internal, "at the disco"},
		{"PanicAsync", nil, status.Internal, "at the disco"},
		{"NoOutput", nil, status.Internal, "Missing 0-th output from {{node bad}}"},
		{"WrongType", nil, status.Internal, "Output 0 of type float does not match declared output type int64 for node {{node bad}}"},
	}
	for _, tt := range tests {
		b := newBuilder(t)
		bad := b.add("bad", tt.op, tt.attrs, b.number(1)).Out(0)
		b.ret(0, b.sum(bad, b.number(1)))
		e := b.compile()
		for range 3 {
			_, err := call(t, e, 1)
			if status.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.contains) ||
				strings.Count(err.Error(), "{{node bad}}") != 1 {
				t.Errorf("%s %v: got %v: %v", tt.op, tt.attrs, status.CodeOf(err), err)
			}
		}
	}
}

func TestPanicIsLogged(t *testing.T) {
	b := newBuilder(t)
	b.add("bad", "Panic", nil, b.number(1))
	var log bytes.Buffer
	e, err := executor.New(b.Graph, executor.Config{
		Device: testDevice, NewKernel: newKernel, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(newStep(t, nil), executor.RunOptions{}); status.CodeOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(log.String(), "ops_test.go") || !strings.Contains(log.String(), "node=bad") {
		t.Errorf("log: %s", log.String())
	}
}

// TestFirstErrorWins has a kernel that fails and others that fail because of it.
func TestFirstErrorWins(t *testing.T) {
	b := newBuilder(t)
	for range 5 {
		b.add("", "Wait", nil, b.number(1))
	}
	slow := b.add("", "AddLater", nil, b.number(1), b.number(1)).Out(0)
	b.add("bad", "Fail", nil, slow)
	_, err := call(t, b.compile(), 0)
	if status.CodeOf(err) != status.InvalidArgument || status.IsDerived(err) {
		t.Errorf("got %v, derived %t", err, status.IsDerived(err))
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	b := newBuilder(t)
	b.add("", "Wait", nil, b.number(1))
	e := b.compile()
	step := newStep(t, nil)
	result := make(chan error)
	go func() { result <- e.Run(step, executor.RunOptions{}) }()
	step.Cancel(status.Cancelledf("enough"))
	if err := <-result; status.CodeOf(err) != status.Cancelled || !status.IsDerived(err) {
		t.Errorf("got %v, derived %t", err, status.IsDerived(err))
	}
}

func TestEndlessLoopIsCancelled(t *testing.T) {
	b := newBuilder(t)
	b.countTo("f", 10, b.number(0), b.number(1), b.number(0))
	e := b.compile()
	step := newStep(t, nil)
	result := make(chan error)
	go func() { result <- e.Run(step, executor.RunOptions{}) }()
	step.Cancel(status.DeadlineExceededf("too late"))
	if err := <-result; status.CodeOf(err) != status.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}

func TestCancelledBeforeTheStart(t *testing.T) {
	b := newBuilder(t)
	b.add("", "Panic", nil, b.number(1))
	step := newStep(t, nil)
	step.Cancel(status.Cancelledf("enough"))
	if err := b.compile().Run(step, executor.RunOptions{}); status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
}

const (
	alice = "/job:j/replica:0/task:0/device:CPU:0"
	bob   = "/job:j/replica:0/task:0/device:CPU:1"
)

func (b *builder) transfer(op, name, from, to string, in ...graph.Output) *graph.Node {
	b.Helper()
	attrs := opdef.Attrs{
		"tensor_name": name, "send_device": from, "send_device_incarnation": int64(-1), "recv_device": to,
	}
	if op == "_Recv" {
		attrs["tensor_type"] = tensor.Int64
	} else {
		attrs["T"] = tensor.Int64
	}
	return b.add("", op, attrs, in...)
}

func transferKey(name, from, to string) *kernel.Key { return kernel.NewKey(from, ^uint64(0), to, name) }

func TestSendAndReceive(t *testing.T) {
	b := newBuilder(t)
	a := b.transfer("_Recv", "a", alice, bob).Out(0)
	c := b.transfer("_Recv", "b", alice, bob).Out(0)
	b.transfer("_Send", "c", bob, alice, b.sum(a, c))
	e := b.compile()
	for _, dead := range []bool{false, true} {
		table := rendezvous.New()
		var all sync.WaitGroup
		all.Go(func() {
			if err := e.Run(newStep(t, table), executor.RunOptions{}); err != nil {
				t.Error(err)
			}
		})
		for _, name := range []string{"a", "b"} {
			if err := table.Send(transferKey(name, alice, bob), kernel.FrameIter{}, tensor.Scalar(int64(4)), dead); err != nil {
				t.Error(err)
			}
		}
		got, isDead, err := table.Await(t.Context(), transferKey("c", bob, alice).At(kernel.FrameIter{}))
		if err != nil || isDead != dead {
			t.Errorf("dead %t, want %t; error %v", isDead, dead, err)
		}
		if !dead {
			wantNumber(t, &got, 8)
		}
		all.Wait()
		if n := table.Parked(); n != 0 {
			t.Errorf("%d items left in the rendezvous", n)
		}
	}
}

func TestReceiveIsAborted(t *testing.T) {
	b := newBuilder(t)
	for _, name := range []string{"a", "b", "c"} {
		b.transfer("_Recv", name, alice, bob)
	}
	e := b.compile()
	table := rendezvous.New()
	result := make(chan error)
	go func() { result <- e.Run(newStep(t, table), executor.RunOptions{}) }()
	if err := table.Send(transferKey("a", alice, bob), kernel.FrameIter{}, tensor.Scalar(int64(4)), false); err != nil {
		t.Error(err)
	}
	table.Abort(status.Abortedf("gone"))
	if err := <-result; status.CodeOf(err) != status.Aborted {
		t.Errorf("got %v", err)
	}
}

func TestReceivedTypeIsChecked(t *testing.T) {
	b := newBuilder(t)
	b.transfer("_Recv", "a", alice, bob)
	table := rendezvous.New()
	if err := table.Send(transferKey("a", alice, bob), kernel.FrameIter{}, tensor.Scalar(1.5), false); err != nil {
		t.Fatal(err)
	}
	if err := b.compile().Run(newStep(t, table), executor.RunOptions{}); status.CodeOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
	if _, _, err := table.Await(t.Context(), "x"); status.CodeOf(err) != status.Internal {
		t.Errorf("the rendezvous was not aborted: %v", err)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.arg(1, tensor.Int64))
	e := b.compile()
	if _, err := call(t, e, 1, 1); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("missing argument: %v", err)
	}
	if _, err := call(t, e, 0, 1, 2); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("missing result: %v", err)
	}
	err := e.Run(newStep(t, nil), executor.RunOptions{
		Args: []tensor.Tensor{tensor.Scalar(int64(1)), tensor.Scalar(true)}, Rets: make([]tensor.Tensor, 1),
	})
	if err == nil || !strings.Contains(err.Error(), "Type mismatch: actual bool vs. expect int64") {
		t.Errorf("wrong type: %v", err)
	}
}

func TestDepthReachesKernels(t *testing.T) {
	b := newBuilder(t)
	b.ret(0, b.add("", "Depth", nil).Out(0))
	e := b.compile()
	for depth := range 3 {
		rets := make([]tensor.Tensor, 1)
		if err := e.Run(newStep(t, nil), executor.RunOptions{Rets: rets, Depth: depth}); err != nil {
			t.Fatal(err)
		}
		wantNumber(t, &rets[0], int64(depth))
	}
}

type collected struct{ stats []*executor.NodeStats }

func (c *collected) Collect(s *executor.NodeStats) { c.stats = append(c.stats, s) }

func TestStatistics(t *testing.T) {
	b := newBuilder(t)
	_, live := b.sw(b.number(1), b.constant(tensor.Scalar(true)))
	b.ret(0, b.add("late", "AddLater", nil, b.add("sum", "Add2", nil, live, b.number(2)).Out(0), live).Out(0))
	dead, _ := b.sw(b.number(1), b.constant(tensor.Scalar(true)))
	b.add("dead", "Add2", nil, dead, dead)
	var c collected
	opts := executor.RunOptions{Rets: make([]tensor.Tensor, 1), Stats: &c}
	if err := b.compile().Run(newStep(t, nil), opts); err != nil {
		t.Fatal(err)
	}
	if want := b.NumNodes() - 1; len(c.stats) != want {
		t.Errorf("%d nodes have statistics, want %d", len(c.stats), want)
	}
	for _, s := range c.stats {
		if s.Start.Before(s.Scheduled) || s.End.Before(s.Start) {
			t.Errorf("%s: scheduled %v, started %v, ended %v", s.Node, s.Scheduled, s.Start, s.End)
		}
		if s.Node == "sum" || s.Node == "late" {
			if len(s.Outputs) != 1 || s.Outputs[0].DType != tensor.Int64 || s.Outputs[0].Bytes != 8 {
				t.Errorf("%s: outputs %+v", s.Node, s.Outputs)
			}
		}
		if s.Node == "dead" {
			t.Error("a dead node has statistics")
		}
	}
}

// foreign returns a number, not negative, whose memory is counted: freed goes up when it is released.
func foreign(t testing.TB, v int8, freed *atomic.Int32) tensor.Tensor {
	t.Helper()
	mem := make([]byte, 8)
	mem[0] = byte(v)
	out, err := tensor.FromBytes(tensor.Int64, tensor.Shape{}, mem, tensor.NewForeign(mem, func() { freed.Add(1) }))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBuffersComeBack counts the buffers that a run leaves behind, whether it succeeds, fails or is cancelled.
func TestBuffersComeBack(t *testing.T) {
	for _, op := range []string{"Identity", "Fail", "Wait"} {
		b := newBuilder(t)
		x, y := b.arg(0, tensor.Int64), b.arg(1, tensor.Int64)
		limit := b.enter("f", b.number(20), constEnter)
		always := b.enter("f", y, constEnter)
		out := b.loop("f", 3, []graph.Output{b.number(0), x},
			func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], limit).Out(0) },
			func(v []graph.Output) []graph.Output {
				later := b.add("", "AddLater", nil, v[0], always).Out(0)
				onFalse, onTrue := b.sw(v[1], b.add("", "Less2", nil, later, limit).Out(0))
				if op == "Identity" {
					onTrue = b.typed(op, onTrue).Out(0)
				} else {
					onTrue = b.add("", op, nil, onTrue).Out(0)
				}
				return []graph.Output{b.sum(v[0], b.enter("f", y, constEnter)), b.merge(2, onFalse, onTrue).Out(0)}
			})
		b.ret(0, out[1])
		e := b.compile()
		var freed atomic.Int32
		for i := range int32(5) {
			step := newStep(t, nil)
			opts := executor.RunOptions{
				Args: []tensor.Tensor{foreign(t, 7, &freed), foreign(t, 1, &freed), foreign(t, 0, &freed)},
				Rets: make([]tensor.Tensor, 1),
			}
			if op == "Wait" {
				go step.Cancel(status.Cancelledf("enough"))
			}
			if err := e.Run(step, opts); (err == nil) != (op == "Identity") {
				t.Errorf("%s: %v", op, err)
			}
			opts.Rets[0].Release()
			if n := freed.Load(); n != 3*(i+1) {
				t.Fatalf("%s, run %d: %d buffers were released, want %d", op, i, n, 3*(i+1))
			}
		}
	}
}

// TestIdentityOfAVariableReadsLate pins what synchronous training counts on: the consumer of an Identity of a variable
// takes the value when it runs, here after an update that the Identity itself did not wait for.
func TestIdentityOfAVariableReadsLate(t *testing.T) {
	b := newBuilder(t)
	v := b.add("v", "Var", nil).Out(0)
	first := b.add("first", "AssignRef", nil, v, b.number(1))
	read := b.typed("Identity", v)
	b.ConnectControl(first, read)
	update := b.add("update", "AssignAddRef", nil, v, b.number(2))
	b.ConnectControl(read, update)
	late := b.sum(read.Out(0), b.number(0))
	b.ConnectControl(update, late.Node)
	b.ret(0, late)
	rets, err := call(t, b.compile(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.Value[int64](&rets[0]); got != 3 {
		t.Errorf("read %d, want the updated 3", got)
	}
}

// TestVariableIsReadInEveryIteration squares a variable, read outside of a loop, in the loop.
func TestVariableIsReadInEveryIteration(t *testing.T) {
	b := newBuilder(t)
	v := b.add("v", "Var", nil).Out(0)
	first := b.add("first", "AssignRef", nil, v, b.number(2))
	read := b.typed("Identity", v)
	b.ConnectControl(first, read)
	inLoop := b.enter("loop", read.Out(0), constEnter)
	three, one := b.enter("loop", b.number(3), constEnter), b.enter("loop", b.number(1), constEnter)
	ref := b.add("ref", "RefEnter", opdef.Attrs{"T": tensor.Int64, "frame_name": "loop", "is_constant": true}, v)
	b.ConnectControl(first, ref)
	out := b.loop("loop", 1, []graph.Output{b.number(0)},
		func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], three).Out(0) },
		func(v []graph.Output) []graph.Output {
			square := b.add("", "Mul2", nil, inLoop, inLoop)
			b.ConnectControl(v[0].Node, square)
			update := b.add("", "AssignRef", nil, ref.Out(0), square.Out(0))
			next := b.sum(v[0], one)
			b.ConnectControl(update, next.Node)
			return []graph.Output{next}
		})
	last := b.typed("Identity", v)
	b.ConnectControl(out[0].Node, last)
	b.ret(0, last.Out(0))
	wantNumber(t, &b.run(1)[0], 256)
}
