package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

// EagerService is the name of the service for programs of TensorFlow 2, which run operations one by
// one.
const EagerService = "tensorflow.eager.EagerService"

// Full names of the methods of EagerService.
const (
	MethodCreateContext        = "/" + EagerService + "/CreateContext"
	MethodUpdateContext        = "/" + EagerService + "/UpdateContext"
	MethodEnqueue              = "/" + EagerService + "/Enqueue"
	MethodStreamingEnqueue     = "/" + EagerService + "/StreamingEnqueue"
	MethodWaitQueueDone        = "/" + EagerService + "/WaitQueueDone"
	MethodRunComponentFunction = "/" + EagerService + "/RunComponentFunction"
	MethodKeepAlive            = "/" + EagerService + "/KeepAlive"
	MethodCloseContext         = "/" + EagerService + "/CloseContext"
)

// Eager serves EagerService. Errors have codes.
type Eager interface {
	// CreateContext creates a client's context on the task.
	CreateContext(context.Context, *pb.CreateContextRequest) (*pb.CreateContextResponse, error)
	// UpdateContext changes the cluster of a context.
	UpdateContext(context.Context, *pb.UpdateContextRequest) (*pb.UpdateContextResponse, error)
	// Enqueue executes items and waits for them.
	Enqueue(context.Context, *pb.EnqueueRequest) (*pb.EnqueueResponse, error)
	// StreamingEnqueue executes the requests of a stream in order. next returns io.EOF after the
	// last one.
	StreamingEnqueue(ctx context.Context, next func() (*pb.EnqueueRequest, error), send func(*pb.EnqueueResponse) error) error
	// WaitQueueDone waits for the items that were enqueued before.
	WaitQueueDone(context.Context, *pb.WaitQueueDoneRequest) (*pb.WaitQueueDoneResponse, error)
	// RunComponentFunction runs a part of a function that another task runs.
	RunComponentFunction(context.Context, *pb.RunComponentFunctionRequest) (*pb.RunComponentFunctionResponse, error)
	// KeepAlive records that a context is in use.
	KeepAlive(context.Context, *pb.KeepAliveRequest) (*pb.KeepAliveResponse, error)
	// CloseContext drops a context.
	CloseContext(context.Context, *pb.CloseContextRequest) (*pb.CloseContextResponse, error)
}

// RegisterEager registers EagerService with a server. Panics of e are logged.
func RegisterEager(s *Server, e Eager, logger *slog.Logger) {
	unary(s, logger, MethodCreateContext, e.CreateContext)
	unary(s, logger, MethodUpdateContext, e.UpdateContext)
	unary(s, logger, MethodEnqueue, e.Enqueue)
	unary(s, logger, MethodWaitQueueDone, e.WaitQueueDone)
	unary(s, logger, MethodRunComponentFunction, e.RunComponentFunction)
	unary(s, logger, MethodKeepAlive, e.KeepAlive)
	unary(s, logger, MethodCloseContext, e.CloseContext)
	s.Handle(MethodStreamingEnqueue, grpch2.Method{
		NewBody: s.limiter.newBody(nil), Streaming: true, Audience: audience(MethodStreamingEnqueue),
		Serve: func(c *grpch2.Call) { serveEnqueue(c, e, logger) },
	})
}

// serveEnqueue serves one stream of StreamingEnqueue.
func serveEnqueue(c *grpch2.Call, e Eager, logger *slog.Logger) {
	defer replyToPanic(c, logger, MethodStreamingEnqueue)
	next := func() (*pb.EnqueueRequest, error) {
		body, err := c.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case c.Context().Err() != nil:
			return nil, status.FromContext(c.Context(), "waiting for a request")
		case err != nil:
			return nil, status.Internalf("a request cannot be read: %w", err)
		}
		req := &pb.EnqueueRequest{}
		if err := receive(body, req); err != nil {
			return nil, requestError(err)
		}
		return req, nil
	}
	send := func(resp *pb.EnqueueResponse) error {
		data, err := encode(resp)
		if err != nil {
			return err
		}
		if c.Send(data.data...) != nil {
			return status.Cancelledf("the caller has gone")
		}
		return nil
	}
	if err := e.StreamingEnqueue(c.Context(), next, send); err != nil {
		_ = c.Reply(failed(status.From(err)))
		return
	}
	_ = c.Reply(grpch2.Outcome{})
}

// Enqueue executes items in an eager context of the task.
func (c *WorkerClient) Enqueue(ctx context.Context, req *pb.EnqueueRequest) (*pb.EnqueueResponse, error) {
	return invoke[pb.EnqueueResponse](ctx, &c.caller, MethodEnqueue, req)
}

// RunComponentFunction runs the task's part of a function.
func (c *WorkerClient) RunComponentFunction(
	ctx context.Context, req *pb.RunComponentFunctionRequest,
) (*pb.RunComponentFunctionResponse, error) {
	return invoke[pb.RunComponentFunctionResponse](ctx, &c.caller, MethodRunComponentFunction, req)
}
