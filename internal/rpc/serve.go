package rpc

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weft-ml/weft/internal/message"
	"github.com/weft-ml/weft/status"
)

// unary describes a method with one request and one response. Whatever call does, the process lives: a panic is logged
// and answered as an Internal error.
func unary[Req, Resp any](
	logger *slog.Logger, fullMethod string, call func(context.Context, *Req) (*Resp, error),
) grpc.MethodDesc {
	handler := func(_ any, ctx context.Context, read func(any) error, intercept grpc.UnaryServerInterceptor) (_ any, err error) {
		defer func() {
			if v := recover(); v != nil {
				logger.ErrorContext(ctx, "panic in a handler", "method", fullMethod, "panic", v, "stack", string(debug.Stack()))
				err = failed(ctx, status.Internalf("panic while serving %s: %v", fullMethod, v))
			}
		}()
		req := new(Req)
		in := inbound{msg: req}
		if err := read(&in); err != nil {
			return nil, err
		}
		if in.err != nil {
			return nil, failed(ctx, requestError(in.err))
		}
		defer release(req)
		handle := func(ctx context.Context, req any) (any, error) {
			return respond(ctx, call, req.(*Req))
		}
		if intercept == nil {
			return handle(ctx, req)
		}
		return intercept(ctx, req, &grpc.UnaryServerInfo{FullMethod: fullMethod}, handle)
	}
	return grpc.MethodDesc{MethodName: path.Base(fullMethod), Handler: handler}
}

// requestError is what TensorFlow answers to a request that it cannot read.
func requestError(err error) *status.Error {
	if errors.Is(err, errMalformed) {
		return status.Internalf("Unable to parse request")
	}
	return status.From(err)
}

// respond makes the call and encodes its response, whose tensors it releases.
func respond[Req, Resp any](ctx context.Context, call func(context.Context, *Req) (*Resp, error), req *Req) (any, error) {
	resp, err := call(ctx, req)
	if err != nil {
		return nil, failed(ctx, status.From(err))
	}
	defer release(resp)
	if failure := bodyError(resp); failure != nil {
		sendBodyPayloads(ctx, failure)
	}
	data, err := encode(resp)
	if err != nil {
		return nil, failed(ctx, encodeError(req, err))
	}
	return &outbound{data: data}, nil
}

// encodeError says which tensor could not be sent.
func encodeError(req any, err error) *status.Error {
	out := status.Internalf("Failed to encode tensor to byte buffer: %w", err)
	if r, ok := req.(*message.RecvTensorRequest); ok {
		return out.Annotate(" (request_id: %d step_id: %d rendezvous_key: %s)", r.RequestID, r.StepID, r.Key)
	}
	return out
}

// failed returns an error as a handler returns it to gRPC, and hands its payloads to gRPC.
func failed(ctx context.Context, err *status.Error) error {
	out, trailer := toGRPC(err)
	if trailer != nil {
		// An error here means that the call is over: nobody misses the trailer.
		_ = grpc.SetTrailer(ctx, trailer)
	}
	return out.Err()
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

// sendBodyPayloads sends the payloads of an error in the body of a response, which has no place for them.
func sendBodyPayloads(ctx context.Context, err *status.Error) {
	if payloads := encodePayloads(err.Payloads); payloads != nil {
		// An error here means that the call is over: nobody misses the trailer.
		_ = grpc.SetTrailer(ctx, metadata.Pairs(bodyPayloadTrailer, string(payloads)))
	}
}
