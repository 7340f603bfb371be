package rpc

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// encoded is an encoded message in pieces. The elements of large tensors are shared with the
// tensors, which it holds until it is freed.
type encoded struct {
	data [][]byte
	held []tensor.Tensor
}

// Free releases the tensors.
func (e *encoded) Free() {
	for i := range e.held {
		e.held[i].Release()
	}
	e.held = nil
}

// encode returns the wire format of a message.
func encode(msg any) (encoded, error) {
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
	case proto.Message:
		if n := proto.Size(m); n >= minCounted && !membudget.Take(int64(n)) {
			return encoded{}, errNoAnswer
		}
		b, err := proto.Marshal(m)
		return encoded{data: [][]byte{b}}, err
	default:
		return encoded{}, fmt.Errorf("rpc: a %T cannot be sent", msg)
	}
	return w.finish()
}

// errNoAnswer is the error for a message for whose encoding there is no memory.
var errNoAnswer = status.ResourceExhaustedf("There is not enough memory to encode the message (--memory-limit).")

// decode decodes a message, which owns its tensors and shares no memory with data.
func decode(data [][]byte, msg any) error { return decodePlaced(data, nil, msg, nil, nil) }

// receive decodes a received message and gives its grant back.
func receive(body grpch2.Body, msg any) error {
	b := body.(*receiveBuffer) //nolint:forcetypeassert // see rooms
	defer b.finish()
	return b.decode(msg)
}

// decode decodes a received message and keeps its grant.
func (rb *receiveBuffer) decode(msg any) error {
	defer rb.release()
	if rb.refused {
		return errNoMemory
	}
	return decodePlaced(rb.data, rb.placed, msg, rb.limiter.quota, &rb.held)
}

// decodePlaced decodes a message. It takes over the placed tensors whose memory is among the data.
// If keep is not nil, it is set to a function that gives the memory of a message back that has been
// asked for; else decodePlaced calls it at its end. It may stay nil.
func decodePlaced(data [][]byte, placed []tensor.Tensor, msg any, q *quota.Quota, keep *func()) error {
	d := decoder{reader: newReader(data), placed: placed}
	d.quota = q
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
	case proto.Message:
		rest := d.rest()
		held, err := admitMessage(m, rest, q)
		if err != nil {
			return err
		}
		if keep == nil {
			defer held()
		} else {
			*keep = held
		}
		if (proto.UnmarshalOptions{RecursionLimit: maxNesting}).Unmarshal(rest, m) != nil {
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
