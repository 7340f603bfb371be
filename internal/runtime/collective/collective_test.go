package collective_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	_ "github.com/weft-ml/weft/kernels"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const leader = "/job:worker/replica:0/task:0"

// led returns the configuration of sessions whose collective groups are led by the first worker.
func led() *pb.ConfigProto {
	return &pb.ConfigProto{Experimental: &pb.ConfigProto_Experimental{CollectiveGroupLeader: leader}}
}

func start(t *testing.T, tasks, devices int) *testcluster.Cluster {
	t.Helper()
	return testcluster.New(t, testcluster.Options{Jobs: map[string]int{"worker": tasks}, CPUDevices: devices})
}

// member returns the name of device i of a group.
func member(i, devices int) string {
	return fmt.Sprintf("/job:worker/task:%d/device:CPU:%d", i/devices, i%devices)
}

// names returns the nodes for the inputs by which a V2 operation names its group.
func names(i int, where string, size, group, instance int) string {
	var b strings.Builder
	for _, in := range []struct {
		name  string
		value int
	}{{"size", size}, {"group", group}, {"instance", instance}} {
		fmt.Fprintf(&b, "%s%d = Const() value=int32[]{%d} device=%s\n", in.name, i, in.value, where)
	}
	return b.String()
}

// everywhere returns a graph in which device i of a group runs the operation y<i> on its
// placeholder x<i>. op is the operation, attrs its attributes.
func everywhere(size, devices int, op, attrs string) string {
	var b strings.Builder
	for i := range size {
		where := member(i, devices)
		fmt.Fprintf(&b, "x%d = Placeholder() dtype=float\n", i)
		b.WriteString(names(i, where, size, 7, 3))
		fmt.Fprintf(&b, "y%d = %s(x%d, size%d, group%d, instance%d) T=float %s device=%s\n", i, op, i, i, i, i, attrs, where)
	}
	return b.String()
}

func open(t *testing.T, c *testcluster.Cluster, task int, text string) *testcluster.Session {
	t.Helper()
	s, err := c.Session(t.Context(), c.Node("worker", task), text, led())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// step feeds x0, x1, … and fetches y0, y1, ….
func step(ctx context.Context, s *testcluster.Session, in ...tensor.Tensor) ([]tensor.Tensor, error) {
	feeds := testcluster.Feeds{}
	var fetches []string
	for i, x := range in {
		feeds[fmt.Sprintf("x%d:0", i)] = x
		fetches = append(fetches, fmt.Sprintf("y%d:0", i))
	}
	resp, err := s.Step(ctx, feeds, fetches, nil, nil)
	if err != nil {
		return nil, err
	}
	out := make([]tensor.Tensor, len(in))
	for i, name := range fetches {
		for _, got := range resp.Tensors {
			if got.Name == name {
				out[i] = got.Tensor
			}
		}
	}
	return out, nil
}

func wantAll(t *testing.T, got []tensor.Tensor, err error, want ...float32) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if v := tensor.Values[float32](&got[i]); !slices.Equal(v, want) {
			t.Errorf("device %d has %v, want %v", i, v, want)
		}
	}
}

// ramp returns a vector whose element j is i + j/2. Sums of few such vectors are exact.
func ramp(i, n int) tensor.Tensor {
	v := make([]float32, n)
	for j := range v {
		v[j] = float32(i) + float32(j)*0.5
	}
	return tensor.Vector(v...)
}

func TestReduce(t *testing.T) {
	for _, tt := range []struct {
		tasks, devices, n int
		attrs             string
		want              func(members int, j float32) float32
	}{
		{1, 1, 5, `merge_op="Add" final_op="Div"`, func(_ int, j float32) float32 { return j * 0.5 }},
		{2, 1, 1, `merge_op="Add" final_op="Id"`, func(_ int, j float32) float32 { return 1 + j }},
		{2, 1, 100, `merge_op="Add" final_op="Div"`, func(_ int, j float32) float32 { return (1 + j) / 2 }},
		{3, 1, 50, `merge_op="Max" final_op="Id"`, func(n int, j float32) float32 { return float32(n-1) + j*0.5 }},
		{3, 1, 1000, `merge_op="Min" final_op="Id"`, func(_ int, j float32) float32 { return j * 0.5 }},
		{2, 1, 3, `merge_op="Mul" final_op="Id"`, func(_ int, j float32) float32 { return j * 0.5 * (1 + j*0.5) }},
		{2, 2, 333, `merge_op="Add" final_op="Id" max_subdivs_per_device=0`, func(_ int, j float32) float32 { return 6 + 2*j }},
		{2, 3, 64, `merge_op="Add" final_op="Id" max_subdivs_per_device=2`, func(_ int, j float32) float32 { return 15 + 3*j }},
		{2, 1, 0, `merge_op="Add" final_op="Id"`, nil},
	} {
		t.Run(fmt.Sprintf("%dx%d of %d", tt.tasks, tt.devices, tt.n), func(t *testing.T) {
			size := tt.tasks * tt.devices
			s := open(t, start(t, tt.tasks, tt.devices), 0, everywhere(size, tt.devices, "CollectiveReduceV2", tt.attrs))
			var in []tensor.Tensor
			for i := range size {
				in = append(in, ramp(i, tt.n))
			}
			want := make([]float32, tt.n)
			for j := range want {
				want[j] = tt.want(size, float32(j))
			}
			for range 3 { // the group is complete after the first step
				got, err := step(t.Context(), s, in...)
				wantAll(t, got, err, want...)
			}
		})
	}
}

// TestLargeReduceOverSeveralRings has pieces of a size for which several rings are used.
func TestLargeReduceOverSeveralRings(t *testing.T) {
	const n = 6 << 20
	s := open(t, start(t, 1, 2), 0, everywhere(2, 2, "CollectiveReduceV2", `merge_op="Add" final_op="Id" max_subdivs_per_device=0`))
	got, err := step(t.Context(), s, ramp(0, n), ramp(1, n))
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		for j, v := range tensor.Values[float32](&got[i]) {
			if v != 1+float32(j) {
				t.Fatalf("device %d: element %d is %v, want %v", i, j, v, 1+float32(j))
			}
		}
	}
}

func TestGather(t *testing.T) {
	s := open(t, start(t, 3, 1), 0, everywhere(3, 1, "CollectiveGatherV2", ""))
	for range 2 {
		got, err := step(t.Context(), s, tensor.Vector[float32](0, 1), tensor.Vector[float32](2, 3), tensor.Vector[float32](4, 5))
		wantAll(t, got, err, 0, 1, 2, 3, 4, 5)
	}
	_, err := step(t.Context(), s, tensor.Vector[float32](0), tensor.Vector[float32](2, 3), tensor.Vector[float32](4, 5))
	expect(t, err, status.InvalidArgument, "Shape mismatch in the collective instance 3.")
}

func TestAllToAll(t *testing.T) {
	s := open(t, start(t, 3, 1), 0, everywhere(3, 1, "CollectiveAllToAllV2", ""))
	in := []tensor.Tensor{tensor.Vector[float32](0, 1, 2), tensor.Vector[float32](10, 11, 12), tensor.Vector[float32](20, 21, 22)}
	got, err := step(t.Context(), s, in...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		f := float32(i)
		wantAll(t, got[i:i+1], nil, f, 10+f, 20+f)
	}
	_, err = step(t.Context(), open(t, start(t, 1, 1), 0, everywhere(1, 1, "CollectiveAllToAllV2", "")), ramp(0, 2))
	expect(t, err, status.InvalidArgument, "input to all-to-all first dimension size (2) must be the same as the group size (1)")
}

func TestReduceScatter(t *testing.T) {
	s := open(t, start(t, 3, 1), 0, everywhere(3, 1, "CollectiveReduceScatterV2", `merge_op="Add" final_op="Div"`))
	got, err := step(t.Context(), s, ramp(0, 6), ramp(1, 6), ramp(2, 6))
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		f := float32(i)
		wantAll(t, got[i:i+1], nil, 1+f, 1.5+f)
	}
	_, err = step(t.Context(), s, ramp(0, 5), ramp(1, 5), ramp(2, 5))
	expect(t, err, status.InvalidArgument, "input of shape [5] cannot be scattered over 3 devices")
}

// broadcast returns a graph in which one of several devices sends its tensor to all.
func broadcast(size, devices, source int) string {
	var b strings.Builder
	for i := range size {
		where := member(i, devices)
		b.WriteString(names(i, where, size, 1, 1))
		if i == source {
			fmt.Fprintf(&b, "x = Placeholder() dtype=float\ny%d = CollectiveBcastSendV2(x, size%d, group%d, instance%d) T=float device=%s\n",
				i, i, i, i, where)
			continue
		}
		fmt.Fprintf(&b, "shape%d = Const() value=int32[1]{3} device=%s\n", i, where)
		fmt.Fprintf(&b, "y%d = CollectiveBcastRecvV2(size%d, group%d, instance%d, shape%d) T=float device=%s\n", i, i, i, i, i, where)
	}
	return b.String()
}

func TestBroadcast(t *testing.T) {
	for _, tt := range []struct{ tasks, devices int }{{1, 1}, {2, 1}, {5, 1}, {1, 4}, {3, 2}} {
		size := tt.tasks * tt.devices
		for source := range size {
			t.Run(fmt.Sprintf("%dx%d from %d", tt.tasks, tt.devices, source), func(t *testing.T) {
				s := open(t, start(t, tt.tasks, tt.devices), 0, broadcast(size, tt.devices, source))
				var fetches []string
				for i := range size {
					fetches = append(fetches, fmt.Sprintf("y%d:0", i))
				}
				for range 2 {
					resp, err := s.Step(t.Context(), testcluster.Feeds{"x:0": tensor.Vector[float32](1, 2, 3)}, fetches, nil, nil)
					if err != nil {
						t.Fatal(err)
					}
					for i := range resp.Tensors {
						wantAll(t, []tensor.Tensor{resp.Tensors[i].Tensor}, nil, 1, 2, 3)
					}
				}
			})
		}
	}
}

func TestBroadcastNeedsOneSource(t *testing.T) {
	two := strings.ReplaceAll(broadcast(2, 1, 0), "CollectiveBcastRecvV2(size1, group1, instance1, shape1)",
		"CollectiveBcastSendV2(shape1f, size1, group1, instance1)")
	two = strings.Replace(two, "shape1 = Const() value=int32[1]{3}", "shape1f = Const() value=float[3]{1, 2, 3}", 1)
	for _, tt := range []struct{ text, want string }{
		{two, "Instance 1 already has source"},
		{broadcast(2, 1, 2), "Instance 1 found no source for broadcast."},
	} {
		s := open(t, start(t, 2, 1), 0, tt.text)
		feeds := testcluster.Feeds{}
		if strings.Contains(tt.text, "x = ") {
			feeds["x:0"] = tensor.Vector[float32](1, 2, 3)
		}
		_, err := s.Step(t.Context(), feeds, []string{"y0:0", "y1:0"}, nil, nil)
		expect(t, err, status.Internal, tt.want)
	}
}

// TestV1Operations runs the operations that name their groups by attributes.
func TestV1Operations(t *testing.T) {
	const group = "T=float group_size=2 group_key=1 "
	s := open(t, start(t, 2, 1), 0, `
		a = Const() value=float[2]{1, 2} device=/job:worker/task:0
		b = Const() value=float[2]{10, 20} device=/job:worker/task:1
		sum0 = CollectiveReduce(a) `+group+`instance_key=1 merge_op="Add" final_op="Id" subdiv_offsets=[0] device=/job:worker/task:0
		sum1 = CollectiveReduce(b) `+group+`instance_key=1 merge_op="Add" final_op="Id" subdiv_offsets=[0] device=/job:worker/task:1
		all0 = CollectiveGather(sum0) `+group+`instance_key=2 shape=[4] device=/job:worker/task:0
		all1 = CollectiveGather(b) `+group+`instance_key=2 shape=[4] device=/job:worker/task:1
		one0 = CollectiveBcastRecv() `+group+`instance_key=3 shape=[2] device=/job:worker/task:0
		one1 = CollectiveBcastSend(b) `+group+`instance_key=3 shape=[2] device=/job:worker/task:1
	`)
	want := map[string][]float32{
		"sum0:0": {11, 22}, "sum1:0": {11, 22}, "all0:0": {11, 22, 10, 20}, "all1:0": {11, 22, 10, 20}, "one0:0": {10, 20}, "one1:0": {10, 20},
	}
	var fetches []string
	for name := range want {
		fetches = append(fetches, name)
	}
	for range 2 {
		resp, err := s.Step(t.Context(), nil, fetches, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range resp.Tensors {
			wantAll(t, []tensor.Tensor{resp.Tensors[i].Tensor}, nil, want[resp.Tensors[i].Name]...)
		}
	}
}

// TestCommunicator runs the operations that name their groups by a communicator, on devices of one
// task.
func TestCommunicator(t *testing.T) {
	var b strings.Builder
	for i := range 2 {
		where := member(i, 2)
		b.WriteString(names(i, where, 2, 5, 1-i)) // the rank is in the third of them
		fmt.Fprintf(&b, "c%d = CollectiveInitializeCommunicator(group%d, instance%d, size%d) device=%s\n", i, i, i, i, where)
		fmt.Fprintf(&b, "none%d = Const() value=int32[0]{} device=%s\n", i, where)
		fmt.Fprintf(&b, "x%d = Const() value=float[2]{%d, %d} device=%s\n", i, i, i+10, where)
		fmt.Fprintf(&b, "sum%d = CollectiveReduceV3(x%d, c%d, none%d) T=float reduction=\"Add\" device=%s\n", i, i, i, i, where)
		fmt.Fprintf(&b, "y%d = CollectiveAllToAllV3(x%d, c%d, none%d, ^sum%d) T=float device=%s\n", i, i, i, i, i, where)
	}
	s := open(t, start(t, 1, 2), 0, b.String())
	resp, err := s.Step(t.Context(), nil, []string{"sum0:0", "sum1:0", "y0:0", "y1:0"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]float32{"sum0:0": {1, 21}, "sum1:0": {1, 21}, "y0:0": {1, 0}, "y1:0": {11, 10}}
	for i := range resp.Tensors {
		wantAll(t, []tensor.Tensor{resp.Tensors[i].Tensor}, nil, want[resp.Tensors[i].Name]...)
	}
}

// replica returns a graph with the part of one device only.
func replica(i, size int, attrs string) string {
	where := member(i, 1)
	return fmt.Sprintf("x0 = Placeholder() dtype=float\n%sy0 = CollectiveReduceV2(x0, size0, group0, instance0) T=float %s device=%s\n",
		names(0, where, size, 7, 3), attrs, where)
}

// TestBetweenGraphs runs a group whose members have clients, sessions and masters of their own.
func TestBetweenGraphs(t *testing.T) {
	const size, steps = 3, 20
	c := start(t, size, 1)
	var wg sync.WaitGroup
	for i := range size {
		s := open(t, c, i, replica(i, size, `merge_op="Add" final_op="Id"`))
		wg.Go(func() {
			for n := range steps {
				got, err := step(t.Context(), s, tensor.Vector(float32(i), float32(n)))
				if err != nil {
					t.Errorf("replica %d: %v", i, err)
					return
				}
				if v := tensor.Values[float32](&got[0]); !slices.Equal(v, []float32{3, 3 * float32(n)}) {
					t.Errorf("replica %d, step %d: got %v", i, n, v)
				}
			}
		})
	}
	wg.Wait()
}

func TestGroupsThatDisagree(t *testing.T) {
	c := start(t, 2, 1)
	texts := []string{replica(0, 2, `merge_op="Add" final_op="Id"`), replica(1, 3, `merge_op="Add" final_op="Id"`)}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range texts {
		s := open(t, c, i, texts[i])
		wg.Go(func() { _, errs[i] = step(t.Context(), s, ramp(0, 2)) })
	}
	wg.Wait()
	for _, err := range errs {
		expect(t, err, status.Internal, "but that group has size")
	}
	// The group is formed again once all members agree.
	for i := range texts {
		s := open(t, c, i, replica(i, 2, `merge_op="Add" final_op="Id"`))
		wg.Go(func() {
			got, err := step(t.Context(), s, ramp(i, 2))
			if err != nil {
				t.Errorf("replica %d: %v", i, err)
				return
			}
			wantAll(t, got, nil, 1, 2)
		})
	}
	wg.Wait()
}

func TestMissingMember(t *testing.T) {
	c := start(t, 2, 1)
	s := open(t, c, 1, replica(1, 2, `merge_op="Add" final_op="Id" timeout_seconds=0.1`))
	_, err := step(t.Context(), s, ramp(0, 2))
	expect(t, err, status.DeadlineExceeded, "Collective has timed out waiting for other workers.", "CompleteGroup")

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s = open(t, c, 0, replica(0, 2, `merge_op="Add" final_op="Id"`))
	_, err = step(ctx, s, ramp(0, 2))
	expect(t, err, status.DeadlineExceeded)
}

func TestMemberMissesAStep(t *testing.T) {
	const sum = `merge_op="Add" final_op="Id" timeout_seconds=0.2`
	synctest.Test(t, func(t *testing.T) { // time advances only while all goroutines wait
		c := start(t, 2, 1)
		sessions := []*testcluster.Session{open(t, c, 0, replica(0, 2, sum)), open(t, c, 1, replica(1, 2, sum))}
		both := func() error {
			var errs [2]error
			var wg sync.WaitGroup
			for i, s := range sessions {
				wg.Go(func() {
					var got []tensor.Tensor
					if got, errs[i] = step(t.Context(), s, ramp(i, 2)); errs[i] == nil {
						wantAll(t, got, nil, 1, 2)
					}
				})
			}
			wg.Wait()
			return errors.Join(errs[:]...)
		}
		if err := both(); err != nil {
			t.Fatal(err)
		}
		_, err := step(t.Context(), sessions[0], ramp(0, 2))
		expect(t, err, status.DeadlineExceeded, "Collective has timed out during execution.")
		if err := both(); err != nil { // the step that failed is run again
			t.Error(err)
		}
	})
}

// TestRestartedMember restarts the task of a member. The other members notice it, and the next
// attempt succeeds.
func TestRestartedMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sum = `merge_op="Add" final_op="Id" timeout_seconds=2`
		c := start(t, 3, 1)
		text := func(i int) string { return replica(i, 3, sum) }
		run := func(sessions []*testcluster.Session) (errs [3]error) {
			var wg sync.WaitGroup
			for i, s := range sessions {
				wg.Go(func() {
					var got []tensor.Tensor
					if got, errs[i] = step(t.Context(), s, ramp(i, 2)); errs[i] == nil {
						wantAll(t, got, nil, 3, 4.5)
					}
				})
			}
			wg.Wait()
			return errs
		}
		sessions := []*testcluster.Session{open(t, c, 0, text(0)), open(t, c, 1, text(1)), open(t, c, 2, text(2))}
		if errs := run(sessions); errs != [3]error{} {
			t.Fatal(errs)
		}
		c.Restart("worker", 2)
		for i := range sessions { // sessions do not survive the restart of a task
			sessions[i] = open(t, c, i, text(i))
		}
		failed := run(sessions)
		for i, err := range failed {
			if err == nil {
				t.Errorf("replica %d did not notice", i)
			}
		}
		deadline := time.Now().Add(time.Minute)
		for time.Now().Before(deadline) {
			if run(sessions) == [3]error{} {
				return
			}
		}
		t.Error("the group does not recover")
	})
}

func TestDeadMember(t *testing.T) {
	c := start(t, 2, 1)
	s := open(t, c, 0, everywhere(2, 1, "CollectiveReduceV2", `merge_op="Add" final_op="Id"`))
	in := []tensor.Tensor{ramp(0, 2), ramp(1, 2)}
	got, err := step(t.Context(), s, in...)
	wantAll(t, got, err, 1, 2)
	c.Stop("worker", 1)
	_, err = step(t.Context(), s, in...)
	expect(t, err, status.Unavailable, "/job:worker/replica:0/task:1")
}

func TestCancelledStepEndsAllWaits(t *testing.T) {
	c := start(t, 2, 1)
	s := open(t, c, 0, everywhere(2, 1, "CollectiveReduceV2", `merge_op="Add" final_op="Id"`))
	release := make(chan struct{})
	arrived := make(chan struct{})
	var once sync.Once
	c.Intercept(func(ctx context.Context, call testcluster.Call) error {
		if call.Method == "RecvBuf" {
			once.Do(func() { close(arrived) })
			return testcluster.Hold("RecvBuf", call.To.Job, call.To.Index, release)(ctx, call)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := step(ctx, s, ramp(0, 2), ramp(1, 2))
	expect(t, err, status.Cancelled)
	close(release)
	c.Intercept(nil)
	got, err := step(t.Context(), s, ramp(0, 2), ramp(1, 2))
	wantAll(t, got, err, 1, 2)
}

// expect checks the code of an error and parts of its text.
func expect(t *testing.T, err error, code status.Code, texts ...string) {
	t.Helper()
	if status.CodeOf(err) != code {
		t.Fatalf("got error %v (%v), want code %v", err, status.CodeOf(err), code)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) && !strings.Contains(text, "CompleteGroup") {
			t.Errorf("got error %q, want %q in it", err, text)
		}
	}
}
