package executor_test

import (
	"sync"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
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
