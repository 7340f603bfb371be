package rpc

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/message"
)

// codec is what gRPC calls for the bytes of a message. Our own messages are encoded before gRPC has them and decoded
// after it let go of them, so that errors are ours to word; any other, such as those of the health service, is an
// ordinary protocol buffer.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// An outbound message is encoded and waits to be sent.
type outbound struct {
	data  mem.BufferSlice
	taken bool // by gRPC, which frees data
}

// An inbound message receives what is decoded.
type inbound struct {
	msg any
	err error
}

// Marshal returns the bytes of v.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if out, ok := v.(*outbound); ok {
		out.taken = true
		return out.data, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal reads v from data, which it borrows.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if in, ok := v.(*inbound); ok {
		in.err = decode(data, in.msg)
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// encode returns the bytes of a message. Those of a tensor are shared with it, by references of their own.
func encode(msg any) (mem.BufferSlice, error) {
	w := newWriter()
	switch m := msg.(type) {
	case *message.RunStepRequest:
		w.runStepRequest(m)
	case *message.RunStepResponse:
		w.runStepResponse(m)
	case *message.RunCallableRequest:
		w.runCallableRequest(m)
	case *message.RunCallableResponse:
		w.runCallableResponse(m)
	case *message.RunGraphRequest:
		w.runGraphRequest(m)
	case *message.RunGraphResponse:
		w.runGraphResponse(m)
	case *message.RecvTensorRequest:
		w.recvTensorRequest(m)
	case *message.RecvTensorResponse:
		w.recvTensorResponse(m)
	case protobuf.Message:
		b, err := protobuf.Marshal(m)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	default:
		return nil, fmt.Errorf("rpc: a %T cannot be sent", msg)
	}
	return w.finish()
}

// decode reads a message, which owns its tensors and shares nothing with data.
func decode(data mem.BufferSlice, msg any) error {
	d := decoder{reader: reader{next: data, left: data.Len()}}
	switch m := msg.(type) {
	case *message.RunStepRequest:
		d.runStepRequest(m)
	case *message.RunStepResponse:
		d.runStepResponse(m)
	case *message.RunCallableRequest:
		d.runCallableRequest(m)
	case *message.RunCallableResponse:
		d.runCallableResponse(m)
	case *message.RunGraphRequest:
		d.runGraphRequest(m)
	case *message.RunGraphResponse:
		d.runGraphResponse(m)
	case *message.RecvTensorRequest:
		d.recvTensorRequest(m)
	case *message.RecvTensorResponse:
		d.recvTensorResponse(m)
	case protobuf.Message:
		if protobuf.Unmarshal(d.rest(), m) != nil {
			return errMalformed
		}
	default:
		return fmt.Errorf("rpc: a %T cannot be received", msg)
	}
	err := d.outcome()
	if owner, ok := msg.(releaser); ok && err != nil {
		owner.Release()
	}
	return err
}

// A releaser is a message that owns tensors.
type releaser interface{ Release() }
