package rpc

import (
	"context"
	"path"

	"google.golang.org/grpc"
)

// unary describes a method with one request and one response, for a server of type S. The call is best given as a method
// expression: MasterServer.RunStep.
func unary[S, Req, Resp any](fullMethod string, call func(S, context.Context, *Req) (*Resp, error)) grpc.MethodDesc {
	handler := func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		req := new(Req)
		if err := decode(req); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, req any) (any, error) {
			return call(srv.(S), ctx, req.(*Req)) //nolint:errcheck // registration checked the one, decoding made the other
		}
		if intercept == nil {
			return handle(ctx, req)
		}
		return intercept(ctx, req, &grpc.UnaryServerInfo{Server: srv, FullMethod: fullMethod}, handle)
	}
	return grpc.MethodDesc{MethodName: path.Base(fullMethod), Handler: handler}
}

// invoke calls a method over a connection and returns its response.
func invoke[Resp any](
	ctx context.Context, conn grpc.ClientConnInterface, fullMethod string, req any, opts []grpc.CallOption,
) (*Resp, error) {
	resp := new(Resp)
	if err := conn.Invoke(ctx, fullMethod, req, resp, opts...); err != nil {
		return nil, err
	}
	return resp, nil
}
