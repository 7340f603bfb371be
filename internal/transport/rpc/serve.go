package rpc

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

// Server serves methods over the network.
type Server struct {
	*grpch2.Server
	limiter *ReceiveLimiter
}

// ErrServerStopped is what a server's Serve returns after it has been stopped.
var ErrServerStopped = grpch2.ErrServerStopped

// NewServer returns a server without methods, whose requests share a limiter with what else arrives
// at the task.
func NewServer(limiter *ReceiveLimiter, logger *slog.Logger) *Server {
	return &Server{grpch2.NewServer(logger), limiter}
}

// short are the methods that are called in every step and mostly take little time.
var short = map[string]bool{
	MethodRunStep: true, MethodRunCallable: true, MethodRunGraph: true, MethodRecvTensor: true, MethodCleanupGraph: true,
}

// unary adds a method with one request and one response. Whatever call does, the process lives: a
// panic is logged and answered as an Internal error.
func unary[Req, Resp any](s *Server, logger *slog.Logger, method string, call func(context.Context, *Req) (*Resp, error)) {
	undoable(s, logger, method, call, nil)
}

// undoable is unary for a method that makes something which nobody would ever drop if its caller
// did not learn of it.
func undoable[Req, Resp any](
	s *Server, logger *slog.Logger, method string, call func(context.Context, *Req) (*Resp, error), undo func(*Resp),
) {
	s.Handle(method, grpch2.Method{NewBody: s.limiter.rooms(requestTensors[method]), Short: short[method], Serve: func(c *grpch2.Call) {
		defer func() {
			if v := recover(); v != nil {
				logger.ErrorContext(c.Context(), "panic in a handler", "method", method, "panic", v, "stack", string(debug.Stack()))
				_ = c.Reply(failed(status.Internalf("panic while serving %s: %v", method, v)))
			}
		}()
		req := new(Req)
		body := c.Request().(*arrival) //nolint:forcetypeassert // see rooms
		defer body.leave()
		if err := body.decode(req); err != nil {
			_ = c.Reply(failed(requestError(err)))
			return
		}
		defer release(req)
		resp, err := call(c.Context(), req)
		if err != nil {
			_ = c.Reply(failed(status.From(err)))
			return
		}
		defer release(resp)
		outcome, data := respond(req, resp)
		defer data.Free()
		if undo == nil {
			_ = c.Reply(outcome)
			return
		}
		c.ReplyWithRollback(outcome, func() { undo(resp) })
	}})
}

// requestError is what TensorFlow answers to a request that it cannot read.
func requestError(err error) *status.Error {
	if errors.Is(err, errMalformed) {
		return status.Internalf("Unable to parse request")
	}
	return status.From(err)
}

// respond returns a response as it is answered, and the bytes that it shares until they are sent.
func respond(req, resp any) (out grpch2.Outcome, data encoded) {
	data, err := encode(resp)
	if err != nil {
		return failed(encodeError(req, err)), data
	}
	out.Data = data.data
	if failure := bodyError(resp); failure != nil {
		out.Trailer = bodyPayloads(failure)
	}
	return out, data
}

// encodeError says which tensor could not be sent.
func encodeError(req any, err error) *status.Error {
	out := status.Internalf("Failed to encode tensor to byte buffer: %w", err)
	if r, ok := req.(*message.RecvTensorRequest); ok {
		return out.Annotate(" (request_id: %d step_id: %d rendezvous_key: %s)", r.RequestID, r.StepID, r.Key)
	}
	return out
}

// failed returns an error as it is answered.
func failed(err *status.Error) grpch2.Outcome {
	out := grpch2.Outcome{Code: uint32(err.Code), Text: statusMessage(err.Message)}
	if payloads := encodePayloads(err.Payloads); payloads != nil {
		details := append(encodeStatus(err.Code, out.Text), payloads...)
		out.Trailer = []grpch2.Field{{Name: payloadTrailer, Value: string(details)}}
	}
	return out
}

func release(msg any) {
	if owner, ok := msg.(releaser); ok {
		owner.Release()
	}
}

// bodyError returns the error in the body of a response, or nil.
func bodyError(resp any) *status.Error {
	switch resp := resp.(type) {
	case *message.RunStepResponse:
		return resp.Err
	case *message.RunGraphResponse:
		return resp.Err
	}
	return nil
}

// bodyPayloads returns the payloads of an error in the body of a response, which has no place for
// them.
func bodyPayloads(err *status.Error) []grpch2.Field {
	if payloads := encodePayloads(err.Payloads); payloads != nil {
		return []grpch2.Field{{Name: bodyPayloadTrailer, Value: string(payloads)}}
	}
	return nil
}
