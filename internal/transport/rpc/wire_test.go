package rpc

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// sliced returns bytes in buffers of the given size.
func sliced(b []byte, size int) [][]byte {
	var out [][]byte
	for len(b) > size {
		out, b = append(out, b[:size]), b[size:]
	}
	return append(out, b)
}

// A pair is a message in both forms.
type pair struct {
	ours  any
	proto proto.Message
}

// large is above the size that is copied next to other fields.
var large = func() []float32 {
	vals := make([]float32, 5000)
	for i := range vals {
		vals[i] = float32(i)
	}
	return vals
}()

// tensors returns one tensor for each encoding of elements.
func tensors() []tensor.Tensor {
	matrix, _ := tensor.FromSlice(tensor.Shape{50, 100}, large)
	empty, _ := tensor.FromSlice(tensor.Shape{3, 0, 1 << 40}, []float64{})
	noStrings, _ := tensor.FromSlice(tensor.Shape{0, 2}, []string{})
	return []tensor.Tensor{
		tensor.Scalar(int32(-7)), tensor.Vector[int64](1, -1, math.MinInt64), matrix, empty, tensor.Vector(true, false),
		tensor.Scalar(complex(1, -2)), tensor.Vector(tensor.Float16Of(0.5)), tensor.Scalar(tensor.Int4Elem(-3)),
		tensor.Vector("ab", "", string(make([]byte, 3000))), tensor.Scalar(""), noStrings,
		tensor.Scalar(&tensor.Handle{Device: "/job:ps/replica:0/task:0/device:CPU:0", Container: "c", Name: "v", HashCode: 1 << 63}),
	}
}

func named(ts []tensor.Tensor) (ours []message.NamedTensor, protos []*pb.NamedTensorProto) {
	for i, p := range protosOf(ts) {
		name := string(rune('a'+i)) + ":0"
		ours = append(ours, message.NamedTensor{Name: name, Tensor: ts[i]})
		protos = append(protos, &pb.NamedTensorProto{Name: name, Tensor: p})
	}
	return ours, protos
}

func protosOf(ts []tensor.Tensor) []*pb.TensorProto {
	out := make([]*pb.TensorProto, len(ts))
	for i := range ts {
		p, err := pbconv.TensorToWire(&ts[i])
		if err != nil {
			panic(err)
		}
		out[i] = p
	}
	return out
}

func pairs() []pair { return slices.Concat(pairsOf(tensors()), pairsOf(tensors()[:2])) }

func pairsOf(ts []tensor.Tensor) []pair {
	ours, protos := named(ts)
	options := &pb.RunOptions{TimeoutInMs: 77}
	metadata := &pb.RunMetadata{StepStats: &pb.StepStats{DevStats: []*pb.DeviceStepStats{{Device: "d"}}}}
	body := status.New(status.Aborted, "why")
	transport := &anypb.Any{TypeUrl: "u", Value: []byte("v")}
	out := []pair{
		{&message.RunStepRequest{}, &pb.RunStepRequest{}},
		{
			&message.RunStepRequest{
				Session: "s", Feeds: ours, Fetches: []string{"x:0", ""}, Targets: []string{"t"}, Options: options, PartialRun: "0",
				StoreErrorsInBody: true, RequestID: -5,
			},
			&pb.RunStepRequest{
				SessionHandle: "s", Feed: protos, Fetch: []string{"x:0", ""}, Target: []string{"t"}, Options: options,
				PartialRunHandle: "0", StoreErrorsInResponseBody: true, RequestId: -5,
			},
		},
		{&message.RunStepResponse{Tensors: ours, Metadata: metadata}, &pb.RunStepResponse{Tensor: protos, Metadata: metadata}},
		{&message.RunStepResponse{Err: body}, &pb.RunStepResponse{StatusCode: pb.Code_ABORTED, StatusErrorMessage: "why"}},
		{
			&message.RunCallableRequest{Session: "s", Handle: 3, Feeds: ts, RequestID: 9},
			&pb.RunCallableRequest{SessionHandle: "s", Handle: 3, Feed: protosOf(ts), RequestId: 9},
		},
		{&message.RunCallableResponse{Fetches: ts, Metadata: metadata}, &pb.RunCallableResponse{Fetch: protosOf(ts), Metadata: metadata}},
		{
			&message.RunGraphRequest{
				Session: "s", SessionCreated: true, GraphHandle: "g", StepID: 1 << 56, Send: ours, RecvKeys: []string{"k"},
				Exec: &pb.ExecutorOpts{RecordTimeline: true}, IsPartial: true, IsLastPartial: true, StoreErrorsInBody: true, RequestID: 4,
			},
			&pb.RunGraphRequest{
				SessionHandle: "s", CreateWorkerSessionCalled: true, GraphHandle: "g", StepId: 1 << 56, Send: protos,
				RecvKey: []string{"k"}, ExecOpts: &pb.ExecutorOpts{RecordTimeline: true}, IsPartial: true, IsLastPartialRun: true,
				StoreErrorsInResponseBody: true, RequestId: 4,
			},
		},
		{
			&message.RunGraphResponse{
				Recv: ours, StepStats: metadata.StepStats, CostGraph: &pb.CostGraphDef{}, PartitionGraphs: []*pb.GraphDef{{Version: 3}}, Err: body,
			},
			&pb.RunGraphResponse{
				Recv: protos, StepStats: metadata.StepStats, CostGraph: &pb.CostGraphDef{}, PartitionGraph: []*pb.GraphDef{{Version: 3}},
				StatusCode: pb.Code_ABORTED, StatusErrorMessage: "why",
			},
		},
		{
			&message.RecvTensorRequest{StepID: 5, Key: "k", RequestID: 6, Transport: transport},
			&pb.RecvTensorRequest{StepId: 5, RendezvousKey: "k", RequestId: 6, TransportOptions: transport},
		},
		{
			&message.RecvTensorResponse{SendStartMicros: 1 << 50, Transport: transport},
			&pb.RecvTensorResponse{SendStartMicros: 1 << 50, TransportOptions: transport},
		},
	}
	for _, transport := range []*anypb.Any{{}, {TypeUrl: "t"}, {Value: bytes.Repeat([]byte{1, 2, 3}, inlineContent)}} {
		out = append(out, pair{
			&message.RecvTensorResponse{Transport: transport, RequireAck: true},
			&pb.RecvTensorResponse{TransportOptions: transport, RequireAck: true},
		})
	}
	for i, p := range protosOf(ts) {
		out = append(out, pair{
			&message.RecvTensorResponse{Tensor: ts[i], SendStartMicros: 8, RequireAck: true},
			&pb.RecvTensorResponse{Tensor: p, SendStartMicros: 8, RequireAck: true},
		})
	}
	return out
}

// The protocol library decodes our messages.
func TestEncodedAsProto(t *testing.T) {
	for _, p := range pairs() {
		data, err := encode(p.ours)
		if err != nil {
			t.Fatalf("%T: %v", p.ours, err)
		}
		got := p.proto.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(slices.Concat(data.data...), got); err != nil {
			t.Fatalf("%T: %v", p.ours, err)
		}
		// The shape of a scalar may be missing or empty.
		if diff := cmp.Diff(p.proto, got, protocmp.Transform(), protocmp.IgnoreEmptyMessages(), protocmp.IgnoreDefaultScalars()); diff != "" {
			t.Errorf("%T: %s", p.ours, diff)
		}
		data.Free()
	}
}

// We decode messages of the protocol library, in buffers of any size.
func TestDecodedFromProto(t *testing.T) {
	for _, p := range pairs() {
		wire, err := proto.Marshal(p.proto)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{1, 2, 7, 1000, len(wire) + 1} {
			got := fresh(p.ours)
			if err := decode(sliced(wire, size), got); err != nil {
				t.Fatalf("%T in buffers of %d: %v", got, size, err)
			}
			if diff := cmp.Diff(p.ours, got, compareMessages...); diff != "" {
				t.Errorf("%T in buffers of %d: %s", got, size, diff)
			}
		}
	}
}

// A truncated message is malformed or another message. Decoding never reads beyond its end.
func TestTruncated(t *testing.T) {
	for _, p := range pairs() {
		wire, err := proto.Marshal(p.proto)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(wire); n += 1 + n/100 {
			decode(sliced(wire[:n], 5), fresh(p.ours)) //nolint:errcheck // either is right
		}
	}
}

// fresh returns an empty message of the type of msg.
func fresh(msg any) any {
	switch msg.(type) {
	case *message.RunStepRequest:
		return &message.RunStepRequest{}
	case *message.RunStepResponse:
		return &message.RunStepResponse{}
	case *message.RunCallableRequest:
		return &message.RunCallableRequest{}
	case *message.RunCallableResponse:
		return &message.RunCallableResponse{}
	case *message.RunGraphRequest:
		return &message.RunGraphRequest{}
	case *message.RunGraphResponse:
		return &message.RunGraphResponse{}
	case *message.RecvTensorRequest:
		return &message.RecvTensorRequest{}
	}
	return &message.RecvTensorResponse{}
}

var compareMessages = []cmp.Option{
	protocmp.Transform(),
	cmp.Comparer(func(a, b tensor.Tensor) bool {
		pa, errA := pbconv.TensorToWire(&a)
		pb, errB := pbconv.TensorToWire(&b)
		return (errA == nil) == (errB == nil) && proto.Equal(pa, pb)
	}),
	cmp.Comparer(func(a, b *status.Error) bool {
		return a == b || a != nil && b != nil && a.Code == b.Code && a.Message == b.Message
	}),
}

func TestTensorTooLarge(t *testing.T) {
	// Elements that are never accessed take no memory.
	half, err := tensor.FromBytes(tensor.Uint8, tensor.Shape{1<<30 + 10}, make([]byte, 1<<30+10), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = encode(&message.RunCallableResponse{Fetches: []tensor.Tensor{half, half}})
	if status.CodeOf(err) != status.Internal {
		t.Errorf("got error %v", err)
	}
}
