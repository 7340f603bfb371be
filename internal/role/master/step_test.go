package master_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// sum is spread over all tasks of psWorker.
const sum = `
	x = Placeholder() dtype=float
	a = Const() value=float[]{2}
	b = Identity(a) device=/job:ps
	y = TestAdd(x, b) device=/job:worker/task:1
	z = TestAdd(y, b) device=/job:ps
`

func TestStepsOverSeveralTasks(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, sum)
	for i := range 3 {
		x := testcluster.Feeds{"x:0": scalar(float32(i))}
		if got, want := run(t, s, x, "z:0", "y:0"), []float32{float32(i) + 4, float32(i) + 2}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPartsAreRegisteredOncePerSignature(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, sum+"n = NoOp(^z)\n")
	x := testcluster.Feeds{"x:0": scalar(1)}
	registered := func(fetches []string, targets ...string) int {
		t.Helper()
		c.Calls()
		if _, err := s.Run(t.Context(), x, fetches, targets...); err != nil {
			t.Fatal(err)
		}
		return testcluster.Count(c.Calls(), "RegisterGraph")
	}
	for _, tt := range []struct {
		fetches []string
		targets []string
		want    int // parts on other tasks
	}{
		{[]string{"z:0", "y:0"}, nil, 2},
		{[]string{"z:0", "y:0"}, nil, 0},
		{[]string{"y:0", "z:0"}, nil, 0},
		{[]string{"y:0", "z:0", "y:0"}, nil, 0},
		{[]string{"y:0"}, nil, 2},
		{[]string{"y:0"}, []string{"n"}, 2},
		{[]string{"y:0"}, []string{"n"}, 0},
	} {
		if got := registered(tt.fetches, tt.targets...); got != tt.want {
			t.Errorf("fetches %v, targets %v: %d parts were registered, want %d", tt.fetches, tt.targets, got, tt.want)
		}
	}
}

func TestRepeatedStepsOnlyRunAndCleanUp(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, sum)
	x := testcluster.Feeds{"x:0": scalar(1)}
	run(t, s, x, "z:0")
	c.Calls()
	run(t, s, x, "z:0")
	calls := c.Calls()
	for _, call := range calls {
		switch call.Method {
		case "RunGraph", "RecvTensor", "CleanupGraph":
		default:
			t.Errorf("unexpected call %+v", call)
		}
	}
	if got := testcluster.Count(calls, "RunGraph"); got != 2 {
		t.Errorf("%d RunGraph calls, want 2", got)
	}
}

func TestFetchesInAnyFormAndNumber(t *testing.T) {
	s := open(t, psWorker(t), `
		a = Const() value=float[]{1}
		b = Const() value=float[]{2}
		c = TestAdd(a, b)`)
	for _, fetches := range [][]string{{"c:0", "a:0"}, {"a:0", "c:0"}, {"a:0", "a:0", "c:0"}, {"c", "c:0", "a"}} {
		got := run(t, s, nil, fetches...)
		for i, name := range fetches {
			if want := map[byte]float32{'a': 1, 'c': 3}[name[0]]; got[i] != want {
				t.Errorf("fetches %v: %s is %v, want %v", fetches, name, got[i], want)
			}
		}
	}
	resp, err := s.Step(t.Context(), nil, []string{"a:0", "a:0"}, nil, nil)
	if err != nil || len(resp.Tensors) != 1 {
		t.Errorf("a repeated fetch gives %d tensors, %v: want 1", len(resp.Tensors), err)
	}
}

func TestFeedsThatAreNotNeeded(t *testing.T) {
	s := open(t, psWorker(t), sum)
	got := run(t, s, testcluster.Feeds{"x:0": scalar(1)}, "b:0")
	if got[0] != 2 {
		t.Errorf("got %v, want 2", got[0])
	}
}

func TestFeedInPlaceOfAnyNode(t *testing.T) {
	s := open(t, psWorker(t), sum)
	if got := run(t, s, testcluster.Feeds{"x:0": scalar(1), "y:0": scalar(40)}, "z:0"); got[0] != 42 {
		t.Errorf("got %v, want 42", got[0])
	}
}

func TestRequestsThatCannotBeRun(t *testing.T) {
	s := open(t, psWorker(t), sum)
	one := scalar(1)
	named := func(names ...string) (out []message.NamedTensor) {
		for _, name := range names {
			out = append(out, message.NamedTensor{Name: name, Tensor: one})
		}
		return out
	}
	for _, tt := range []struct {
		req  message.RunStepRequest
		code status.Code
		text string
	}{
		{message.RunStepRequest{}, status.InvalidArgument, "Must specify at least one target to fetch or execute."},
		{message.RunStepRequest{Feeds: named("x:0", "x:0"), Fetches: []string{"y:0"}}, status.InvalidArgument, `Endpoint "x:0" fed more than once.`},
		{message.RunStepRequest{Feeds: named("x:0"), Fetches: []string{"x:0"}}, status.InvalidArgument, "x:0 is both fed and fetched."},
		{message.RunStepRequest{Feeds: named("zz:0"), Fetches: []string{"b:0"}}, status.NotFound, "FeedInputs: unable to find feed output zz:0"},
		{message.RunStepRequest{Feeds: named("x:9"), Fetches: []string{"b:0"}}, status.InvalidArgument, "FeedInputs: x:9 should have output index < 1"},
		{message.RunStepRequest{Fetches: []string{"nope:0"}}, status.NotFound, "FetchOutputs node nope:0: not found"},
		{message.RunStepRequest{Fetches: []string{"b:7"}}, status.InvalidArgument, "FetchOutputs b:7: output index too large, must be < 1"},
		{message.RunStepRequest{Fetches: []string{"^b"}}, status.NotFound, "not found"},
		{message.RunStepRequest{Fetches: []string{""}}, status.NotFound, "not found"},
		{message.RunStepRequest{Targets: []string{"zz"}}, status.NotFound, "PruneForTargets: Some target nodes not found: zz "},
		{message.RunStepRequest{Fetches: []string{"y:0"}}, status.InvalidArgument, "placeholder"},
		{message.RunStepRequest{Fetches: []string{"b:0"}, PartialRun: "7"}, status.InvalidArgument, "Must run PartialRunSetup before performing partial runs"},
	} {
		tt.req.Session = s.Handle
		_, err := s.Node.Master.RunStep(t.Context(), &tt.req)
		expect(t, err, tt.code, tt.text)
		tt.req.StoreErrorsInBody = true
		resp, err := s.Node.Master.RunStep(t.Context(), &tt.req)
		if err != nil || resp.Err == nil || resp.Err.Code != tt.code {
			t.Errorf("%+v: got %v, %v; want %v in the body", tt.req, resp, err, tt.code)
		}
	}
	run(t, s, nil, "b:0") // the session still works
}

func TestRepeatedRequestIsAborted(t *testing.T) {
	s := open(t, psWorker(t), sum)
	req := &message.RunStepRequest{Session: s.Handle, Fetches: []string{"b:0"}, RequestID: 12345}
	for i, want := range []status.Code{status.OK, status.Aborted} {
		_, err := s.Node.Master.RunStep(t.Context(), req)
		if status.CodeOf(err) != want {
			t.Errorf("request %d: got %v, want %v", i, err, want)
		}
	}
}

func TestManyConcurrentSteps(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, sum)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			fetch := []string{"z:0", "y:0", "b:0"}[i%3]
			got, err := s.Run(t.Context(), testcluster.Feeds{"x:0": scalar(float32(i))}, []string{fetch})
			want := []float32{float32(i) + 4, float32(i) + 2, 2}[i%3]
			if err != nil || got[0] != want {
				t.Errorf("%s = %v, %v; want %v", fetch, got, err, want)
			}
		})
	}
	wg.Wait()
}

func TestStateIsSharedBySessionsUnlessIsolated(t *testing.T) {
	c := psWorker(t)
	const text = `v = TestVar() device=/job:ps`
	a, b := open(t, c, text), open(t, c, text)
	own := openWith(t, c, text, &pb.ConfigProto{IsolateSessionState: true})
	for i, tt := range []struct {
		s    *testcluster.Session
		want float32
	}{{a, 1}, {b, 2}, {own, 1}, {a, 3}, {own, 2}} {
		if got := run(t, tt.s, nil, "v:0"); got[0] != tt.want {
			t.Errorf("run %d: got %v, want %v", i, got[0], tt.want)
		}
	}
}

func TestKernelsWithStateAreSharedByTheStepsOfASession(t *testing.T) {
	c := psWorker(t)
	const text = `
		n = TestCount()
		m = Identity(n)
		k = Identity(n)`
	s := open(t, c, text)
	run(t, s, nil, "n:0")
	run(t, s, nil, "m:0")
	if got := run(t, s, nil, "k:0"); got[0] != 3 {
		t.Errorf("a third graph of the session counts %v, want 3", got[0])
	}
	if got := run(t, open(t, c, text), nil, "n:0"); got[0] != 1 {
		t.Errorf("another session counts %v, want 1", got[0])
	}
}

func TestSeveralDevicesOfATask(t *testing.T) {
	c := testcluster.New(t, testcluster.Options{
		Jobs: map[string]int{"worker": 2}, CPUDevices: 3, Kernels: testcluster.Kernels(),
	})
	s := open(t, c, `
		x = Placeholder() dtype=float
		a = TestAdd(x, x) device=/job:worker/task:0/cpu:0
		b = TestAdd(a, x) device=/job:worker/task:0/cpu:1
		c = TestAdd(a, b) device=/job:worker/task:1/cpu:2
		d = TestAdd(c, b) device=/job:worker/task:0/cpu:2`)
	if got := run(t, s, testcluster.Feeds{"x:0": scalar(1)}, "d:0"); got[0] != 8 {
		t.Errorf("got %v, want 8", got[0])
	}
}

// TestTransfersOfSeveralPlansDoNotMeet runs two kinds of steps at the same time that move values
// between the same nodes.
func TestTransfersOfSeveralPlansDoNotMeet(t *testing.T) {
	s := open(t, psWorker(t), `
		x = Placeholder() dtype=float
		a = TestAdd(x, x) device=/job:ps
		b = TestAdd(a, x) device=/job:worker/task:1
		c = TestAdd(a, x)`)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			fetch := []string{"b:0", "c:0"}[i%2]
			got, err := s.Run(t.Context(), testcluster.Feeds{"x:0": scalar(float32(i))}, []string{fetch})
			if err != nil || got[0] != float32(3*i) {
				t.Errorf("%s = %v, %v; want %d", fetch, got, err, 3*i)
			}
		})
	}
	wg.Wait()
}

func TestLargeTensors(t *testing.T) {
	s := open(t, psWorker(t), `
		x = Placeholder() dtype=float
		a = Identity(x) device=/job:ps
		b = Identity(a) device=/job:worker/task:1`)
	big, err := tensor.Alloc(tensor.Float32, tensor.Shape{1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	vals := tensor.Values[float32](&big)
	for i := range vals {
		vals[i] = float32(i)
	}
	resp, err := s.Step(t.Context(), testcluster.Feeds{"x:0": big}, []string{"b:0"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.Values[float32](&resp.Tensors[0].Tensor); !slices.Equal(got, vals) {
		t.Error("the tensor has changed on its way")
	}
}

// TestIterationAcrossSteps finds a fixed point as clients do, feeding what the step before has
// fetched.
func TestIterationAcrossSteps(t *testing.T) {
	s := open(t, psWorker(t), `
		x = Placeholder() dtype=float
		one = Const() value=float[]{1}
		y = TestAdd(x, one) device=/job:ps
		z = TestAdd(y, one) device=/job:worker/task:1`)
	x := float32(0)
	for range 50 {
		x = run(t, s, testcluster.Feeds{"x:0": scalar(x)}, "z:0")[0]
	}
	if x != 100 {
		t.Errorf("got %v, want 100", x)
	}
}
