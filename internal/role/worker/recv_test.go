package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const sendSum = addOne + "send z y\n"

func (f *fixture) recv(ctx context.Context, step int64, key string) (float32, error) {
	resp, err := f.RecvTensor(ctx, &message.RecvTensorRequest{StepID: step, Key: key})
	if err != nil {
		return 0, err
	}
	return tensor.Value[float32](&resp.Tensor), nil
}

func TestRecvTensorBeforeAndAfterTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.session("s")
		g := f.register("s", sendSum)
		key := f.transfer(cpu, peer, "z")
		early := make(chan float32)
		go func() {
			v, err := f.recv(t.Context(), 1, key)
			if err != nil {
				t.Error(err)
			}
			early <- v
		}()
		synctest.Wait()
		for step := int64(1); step <= 2; step++ {
			if _, err := f.run(f.request(g, step, map[string]float32{"x": float32(step)})); err != nil {
				t.Fatal(err)
			}
		}
		if v := <-early; v != 2 {
			t.Errorf("the early receiver got %v, want 2", v)
		}
		if v, err := f.recv(t.Context(), 2, key); err != nil || v != 3 {
			t.Errorf("the late receiver got %v, %v; want 3", v, err)
		}
	})
}

func TestEachValueIsReceivedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.session("s")
		g := f.register("s", sendSum)
		if _, err := f.run(f.request(g, 1, map[string]float32{"x": 1})); err != nil {
			t.Fatal(err)
		}
		key := f.transfer(cpu, peer, "z")
		if _, err := f.recv(t.Context(), 1, key); err != nil {
			t.Fatal(err)
		}
		second := make(chan error)
		go func() {
			_, err := f.recv(t.Context(), 1, key)
			second <- err
		}()
		synctest.Wait()
		if _, err := f.CleanupGraph(t.Context(), &pb.CleanupGraphRequest{StepId: 1}); err != nil {
			t.Fatal(err)
		}
		err := <-second
		expect(t, err, status.Aborted, "The step was cleaned up.")
		if !status.IsDerived(err) {
			t.Error("the error does not follow from another")
		}
	})
}

func TestReceiversOfAStepThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.session("s")
		g := f.register("s", "feed x\nf = TestFail(x)\nsend z f")
		waiting := make(chan error)
		go func() {
			_, err := f.recv(t.Context(), 1, f.transfer(cpu, peer, "z"))
			waiting <- err
		}()
		synctest.Wait()
		_, err := f.run(f.request(g, 1, map[string]float32{"x": 1}))
		expect(t, err, status.InvalidArgument)
		expect(t, <-waiting, status.InvalidArgument, "failed\n\t [[{{node f}}]]")
		_, err = f.recv(t.Context(), 1, f.transfer(cpu, peer, "z"))
		expect(t, err, status.InvalidArgument, "failed")
	})
}

func TestRequestsForTensorsThatAreWrong(t *testing.T) {
	f := newFixture(t)
	good := f.transfer(cpu, peer, "z")
	parts := strings.Split(good, ";")
	with := func(i int, s string) string {
		p := append([]string(nil), parts...)
		p[i] = s
		return strings.Join(p, ";")
	}
	for _, tt := range []struct {
		key  string
		code status.Code
		text string
	}{
		{"", status.InvalidArgument, "Invalid  rendezvous key: "},
		{strings.Join(parts[:4], ";"), status.InvalidArgument, "Invalid  rendezvous key: "},
		{good + ";x", status.InvalidArgument, "Invalid  rendezvous key: "},
		{with(0, "garbage"), status.InvalidArgument, "Invalid  rendezvous key: "},
		{with(1, "xyz"), status.InvalidArgument, "Invalid  rendezvous key: "},
		{with(3, ""), status.InvalidArgument, "Invalid  rendezvous key: "},
		{with(0, strings.Replace(cpu, "CPU:0", "CPU:9", 1)), status.InvalidArgument, "/device:CPU:9 unknown device."},
		{with(0, peer), status.InvalidArgument, "Invalid rendezvous key (src): "},
		{with(1, "00000000deadbeef"), status.Aborted, fmt.Sprintf("RecvTensor expects a different device incarnation: 3735928559 vs. %d. "+
			`Your worker job ("/job:worker/replica:0/task:0") was probably restarted. Check your worker job for the reason why it was restarted.`,
			f.device.Incarnation)},
	} {
		_, err := f.recv(t.Context(), -7, tt.key)
		expect(t, err, tt.code, tt.text)
		if _, restarted := status.From(err).Payloads[status.PayloadWorkerRestarted]; restarted != (tt.code == status.Aborted) {
			t.Errorf("%q: payload of a restart: %v", tt.key, restarted)
		}
	}
	if n := f.NumSteps(); n != 0 {
		t.Errorf("%d steps are left, want none", n)
	}
}

func TestStepsThatAreNeverStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.transfer(cpu, peer, "z")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.recv(ctx, 1, key)
		expect(t, err, status.DeadlineExceeded)
		start := time.Now()
		_, err = f.recv(t.Context(), 2, key)
		expect(t, err, status.Aborted, "Step 2 was not started within 10m0s")
		if took := time.Since(start); took != 10*time.Minute {
			t.Errorf("the request waited %v", took)
		}
		cleaned := make(chan error)
		go func() {
			_, err := f.recv(t.Context(), 3, key)
			cleaned <- err
		}()
		synctest.Wait()
		_, _ = f.CleanupGraph(t.Context(), &pb.CleanupGraphRequest{StepId: 3})
		expect(t, <-cleaned, status.Aborted, "The step was cleaned up.")
		if n := f.NumSteps(); n != 0 {
			t.Errorf("%d steps are left, want none", n)
		}
	})
}

// TestReceiverThatGivesUpEndsTheStep cancels a receiver: its tensor can no longer be delivered.
func TestReceiverThatGivesUpEndsTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.session("s")
		g := f.register("s", "recv x\nfetch y x\nsend z x")
		f.cluster.Intercept(testcluster.Drop("RecvTensor", "worker", 1))
		ran := make(chan error)
		go func() {
			_, err := f.run(f.request(g, 1, nil, "y"))
			ran <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.recv(ctx, 1, f.transfer(cpu, peer, "z"))
		expect(t, err, status.DeadlineExceeded)
		synctest.Wait()
		<-time.After(2 * time.Second)
		_, err = f.recv(t.Context(), 1, f.transfer(cpu, peer, "w"))
		expect(t, err, status.Aborted, "Step 1 cancelled.  Cancelling rendezvous.")
		_, _ = f.CleanupGraph(t.Context(), &pb.CleanupGraphRequest{StepId: 1})
		expect(t, <-ran, status.Aborted)
	})
}

func TestTensorsFromOtherTasks(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	g := f.register("s", "recv x\none = Const() value=float[]{1}\ny = TestAdd(x, one)\nfetch y y")
	other := *f
	other.Worker = f.cluster.Node("worker", 1).Worker
	other.session("s")
	def := f.graph("v = Const() value=float[]{41}\nsend x v")
	for _, n := range def.Node {
		n.Device = peer
		if n.Op == "_Send" {
			n.Attr["send_device"] = &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte(peer)}}
			n.Attr["recv_device"] = &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte(cpu)}}
			n.Attr["send_device_incarnation"] = &pb.AttrValue{Value: &pb.AttrValue_I{I: int64(f.incarnation(peer))}}
		}
	}
	resp, err := other.RegisterGraph(t.Context(), &pb.RegisterGraphRequest{SessionHandle: "s", CreateWorkerSessionCalled: true, GraphDef: def})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.run(other.request(resp.GraphHandle, 1, nil)); err != nil {
		t.Fatal(err)
	}
	if got, err := f.run(f.request(g, 1, nil, "y")); err != nil || got[0] != 42 {
		t.Errorf("got %v, %v; want 42", got, err)
	}
	f.cluster.Intercept(testcluster.Fail("RecvTensor", "worker", 1, status.Unavailablef("Socket closed")))
	_, err = f.run(f.request(g, 2, nil, "y"))
	expect(t, err, status.Unavailable, "Socket closed")
}

func TestKeysOfOtherTasks(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	key := func(from, to string) string {
		return fmt.Sprintf("tensor_name=%q send_device=%q recv_device=%q send_device_incarnation=1", "z", from, to)
	}
	send := f.register("s", "feed x\nz = _Send(x) "+key(peer, cpu))
	_, err := f.run(f.request(send, 1, map[string]float32{"x": 1}))
	expect(t, err, status.InvalidArgument, "Invalid rendezvous key (src): "+kernel.NewKey(peer, 1, cpu, "z").At(kernel.FrameIter{})+" @ /job:worker/replica:0/task:0")
	recv := f.register("s", "z = _Recv() tensor_type=float "+key(cpu, peer))
	_, err = f.run(f.request(recv, 2, nil))
	expect(t, err, status.InvalidArgument, "Invalid rendezvous key (dst): ")
	nowhere := f.register("s", "z = _Recv() tensor_type=float "+key("/job:nobody/replica:0/task:0/device:CPU:0", cpu))
	_, err = f.run(f.request(nowhere, 3, nil))
	expect(t, err, status.NotFound, "/job:nobody/replica:0/task:0")
}

// TestManyReceivers makes a step wait for many tensors of a peer, and the peer for none.
func TestManyReceivers(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	const n = 500
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "feed x%d\nsend z%d x%d\n", i, i, i)
	}
	g := f.register("s", text.String())
	got := make(chan float32, n)
	for i := range n {
		go func() {
			v, err := f.recv(t.Context(), 1, f.transfer(cpu, peer, fmt.Sprintf("z%d", i)))
			if err != nil {
				t.Error(err)
			}
			got <- v - float32(i)
		}()
	}
	feeds := map[string]float32{}
	for i := range n {
		feeds[fmt.Sprintf("x%d", i)] = float32(i)
	}
	if _, err := f.run(f.request(g, 1, feeds)); err != nil {
		t.Fatal(err)
	}
	for range n {
		if d := <-got; d != 0 {
			t.Errorf("a receiver got another's tensor: %v off", d)
		}
	}
}
