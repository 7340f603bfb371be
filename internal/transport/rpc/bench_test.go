package rpc

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/tensor"
)

// frame is the frame size of most other implementations.
const frame = 16 << 10

var sizes = []int64{8, 1 << 10, 64 << 10, 16 << 20}

func zeros(b *testing.B, bytes int64) tensor.Tensor {
	t, err := tensor.Zeros(tensor.Uint8, tensor.Shape{bytes})
	if err != nil {
		b.Fatal(err)
	}
	return t
}

func BenchmarkEncodeRecvTensor(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			resp := &message.RecvTensorResponse{Tensor: zeros(b, n), SendStartMicros: 1 << 50}
			b.SetBytes(n)
			b.ReportAllocs()
			for b.Loop() {
				data, err := encode(resp)
				if err != nil {
					b.Fatal(err)
				}
				data.Free()
			}
		})
	}
}

func BenchmarkDecodeRecvTensor(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := zeros(b, n)
			data, err := encode(&message.RecvTensorResponse{Tensor: t, SendStartMicros: 1 << 50})
			if err != nil {
				b.Fatal(err)
			}
			cut := sliced(slices.Concat(data.data...), frame)
			b.SetBytes(n)
			b.ReportAllocs()
			for b.Loop() {
				var resp message.RecvTensorResponse
				if err := decode(cut, &resp); err != nil {
					b.Fatal(err)
				}
				resp.Release()
			}
		})
	}
}

// The same with the protocol library, for comparison.
func BenchmarkDecodeRecvTensorProto(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := zeros(b, n)
			data, err := encode(&message.RecvTensorResponse{Tensor: t, SendStartMicros: 1 << 50})
			if err != nil {
				b.Fatal(err)
			}
			cut := sliced(slices.Concat(data.data...), frame)
			b.SetBytes(n)
			b.ReportAllocs()
			for b.Loop() {
				var resp pb.RecvTensorResponse
				if err := proto.Unmarshal(slices.Concat(cut...), &resp); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sender is a worker that answers every RecvTensor with the same tensor.
type sender struct {
	Worker
	tensor tensor.Tensor
}

func (s sender) RecvTensor(context.Context, *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	return &message.RecvTensorResponse{Tensor: s.tensor.Retain()}, nil
}

// BenchmarkCall measures whole calls over a loopback connection, both ends in this process.
func BenchmarkCall(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := sender{echo{}, zeros(b, n)}
			conn := serveWith(b, func(g *Server) { RegisterWorker(g, s, discard) })
			client := NewWorkerClient(conn, "/job:ps/replica:0/task:0")
			req := &message.RecvTensorRequest{StepID: 1 << 50, Key: "/job:ps/replica:0/task:0/device:CPU:0;0123456789abcdef;/job:worker/replica:0/task:0/device:CPU:0;edge_1_v;0:0", RequestID: 1 << 60}
			b.SetBytes(n)
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.RecvTensor(b.Context(), req)
				if err != nil {
					b.Fatal(err)
				}
				resp.Release()
			}
		})
	}
}
