package rpc

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/sys/tensormem"
	"github.com/weft-ml/weft/tensor"
)

// deliver fills a buffer in pieces of the given size.
func deliver(a *receiveBuffer, wire []byte, size int) {
	for len(wire) > 0 {
		room := a.Buffer()
		n := copy(room[:min(size, len(room))], wire)
		a.Advance(n)
		wire = wire[n:]
	}
}

func vector(n int) tensor.Tensor {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i)
	}
	return tensor.Vector(v...)
}

// TestReceiveBuffer receives messages with tensors of all sizes: only large ones are placed.
func TestReceiveBuffer(t *testing.T) {
	limiter := NewReceiveLimiter(nil)
	big, small := minPlaced/4, 100
	for _, tt := range []struct {
		method string
		paths  map[string]tensorPath
		msg    any
		placed int
	}{
		{MethodRecvTensor, responseTensors, &message.RecvTensorResponse{Tensor: vector(big), SendStartMicros: 1 << 51}, 1},
		{MethodRecvTensor, responseTensors, &message.RecvTensorResponse{Tensor: vector(10 * big)}, 1},
		{MethodRecvTensor, responseTensors, &message.RecvTensorResponse{Tensor: vector(small)}, 0},
		{MethodRunStep, requestTensors, &message.RunStepRequest{Session: "s", RequestID: -7, Feeds: []message.NamedTensor{
			{Name: "a", Tensor: vector(small)}, {Name: "b", Tensor: vector(big)}, {Name: "c", Tensor: vector(big + 1)},
			{Name: "d", Tensor: vector(small)}, {Name: "e", Tensor: vector(3 * big)}, {Name: "f", Tensor: tensor.Vector("x", "y")},
		}}, 3},
		{MethodRunCallable, requestTensors, &message.RunCallableRequest{Feeds: []tensor.Tensor{vector(big), vector(small), vector(big)}}, 2},
		{MethodRunGraph, responseTensors, &message.RunGraphResponse{Recv: []message.NamedTensor{{Name: "a", Tensor: vector(big)}}}, 1},
		{MethodRunStep, responseTensors, &message.RunStepResponse{Tensors: []message.NamedTensor{{Name: "a", Tensor: vector(big)}}}, 1},
		{"", nil, &message.RunStepRequest{Feeds: []message.NamedTensor{{Name: "a", Tensor: vector(2 * big)}}}, 0},
	} {
		data, err := encode(tt.msg)
		if err != nil {
			t.Fatal(err)
		}
		wire := slices.Concat(data.data...)
		data.Free()
		for _, cut := range []int{1 << 30, 16 << 10, scanSize, 1000} {
			a := limiter.newBuffer(tt.paths[tt.method], len(wire))
			deliver(a, wire, cut)
			if len(a.placed) != tt.placed {
				t.Errorf("%s: %d tensors are in their place, want %d", tt.method, len(a.placed), tt.placed)
			}
			if !bytes.Equal(slices.Concat(a.data...), wire) {
				t.Fatalf("%s: the message has changed", tt.method)
			}
			got := fresh(tt.msg)
			if err := receive(a, got); err != nil {
				t.Fatalf("%s: %v", tt.method, err)
			}
			if diff := cmp.Diff(tt.msg, got, compareMessages...); diff != "" && len(wire) < minPlaced {
				t.Error(diff)
			}
			if again, err := encode(got); err != nil || !bytes.Equal(slices.Concat(again.data...), wire) {
				t.Errorf("%s: what was read is not what was sent: %v", tt.method, err)
			}
			if owner, ok := got.(releaser); ok {
				owner.Release()
			}
		}
	}
	if n := limiter.announced.Load(); n != 0 {
		t.Errorf("%d bytes are still to come", n)
	}
}

// TestReceiveBufferEnds discards an incomplete message, and receives one that announces too much
// memory.
func TestReceiveBufferEnds(t *testing.T) {
	limiter := NewReceiveLimiter(nil)
	data, err := encode(&message.RecvTensorResponse{Tensor: vector(minPlaced)})
	if err != nil {
		t.Fatal(err)
	}
	wire := slices.Concat(data.data...)
	a := limiter.newBuffer(responseTensors[MethodRecvTensor], len(wire))
	deliver(a, wire[:len(wire)/2], 1<<20)
	if limiter.announced.Load() == 0 {
		t.Error("nothing is promised")
	}
	a.Discard()
	if n := limiter.announced.Load(); n != 0 {
		t.Errorf("%d bytes are still to come", n)
	}
	limiter.announced.Add(maxAnnounced)
	defer limiter.announced.Add(-maxAnnounced)
	a = limiter.newBuffer(responseTensors[MethodRecvTensor], len(wire))
	deliver(a, wire, 1<<20)
	defer a.Discard()
	if len(a.placed) > 0 {
		t.Error("a tensor was placed beyond the limit")
	}
}

// FuzzReceiveBuffer receives arbitrary bytes as any message. They must be unchanged.
func FuzzReceiveBuffer(f *testing.F) {
	tensormem.SetLimit(1 << 20)
	f.Cleanup(func() { tensormem.SetLimit(1 << 38) })
	data, err := encode(&message.RunCallableRequest{Feeds: []tensor.Tensor{vector(minPlaced / 4), vector(3)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(slices.Concat(data.data...)[:200], byte(1), uint16(500))
	f.Fuzz(func(t *testing.T, head []byte, path byte, cut uint16) {
		limiter := NewReceiveLimiter(nil)
		wire := append(slices.Clone(head), make([]byte, 2*minPlaced)...)
		paths := []tensorPath{{2, 2, 4}, {3, 4}, {3, 2, 4}, {1, 4}, {1, 2, 4}}
		a := limiter.newBuffer(paths[int(path)%len(paths)], len(wire))
		deliver(a, wire, int(cut)+1)
		if !bytes.Equal(slices.Concat(a.data...), wire) {
			t.Error("the message has changed")
		}
		_ = receive(a, &message.RunCallableRequest{}) // any outcome but a panic
		if n := limiter.announced.Load(); n != 0 {
			t.Errorf("%d bytes are still to come", n)
		}
	})
}
