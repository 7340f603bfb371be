package rpc

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/status"
)

// Server serves methods over the network.
type Server struct {
	*grpch2.Server
	limiter *ReceiveLimiter
}

// ErrServerStopped is the result of Serve after the server was stopped.
var ErrServerStopped = grpch2.ErrServerStopped

// NewServer returns a server without methods. Its requests share a limiter with all other receives
// of the task.
func NewServer(limiter *ReceiveLimiter, logger *slog.Logger) *Server {
	s := &Server{grpch2.NewServer(logger), limiter}
	s.Identify = identify
	return s
}

// identify returns the caller on a connection with a user-agent.
func identify(nc net.Conn, agent string) grpch2.Caller {
	release := peer.OfAgent(agent)
	ctx := peer.NewContext(context.Background(), release)
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		ctx = peer.WithAddress(ctx, tcp.AddrPort().Addr().Unmap())
	}
	if p := principalOf(nc); p != nil {
		ctx = trust.NewContext(ctx, p)
	}
	return grpch2.Caller{
		Context: ctx, Name: nameOf(nc), RawMessages: release.Has(peer.RawMessages),
		ResetsIdleStreams: release.Has(peer.ResetsIdleStreams),
	}
}

// nameOf returns the name of a caller for observers: its principal, or its IP address.
func nameOf(nc net.Conn) string {
	if p := principalOf(nc); p != nil {
		return p.String()
	}
	host, _, err := net.SplitHostPort(nc.RemoteAddr().String())
	if err != nil {
		return nc.RemoteAddr().Network()
	}
	return host
}

// shortMethods are the methods that are called in every step and usually return quickly.
var shortMethods = map[string]bool{
	MethodRunStep: true, MethodRunCallable: true, MethodRunGraph: true, MethodRecvTensor: true, MethodCleanupGraph: true,
}

// audience returns the kind of callers of a method.
func audience(method string) grpch2.Audience {
	switch {
	case method == MethodCreateSession || method == MethodExtendSession:
		return grpch2.GraphClients
	case strings.HasPrefix(method, "/"+WorkerService+"/"), strings.HasPrefix(method, "/"+EagerService+"/"):
		return grpch2.Tasks
	}
	return grpch2.Clients
}

// unary registers a method with one request and one response. A panic of call is logged and
// answered with an Internal error.
func unary[Req, Resp any](s *Server, logger *slog.Logger, method string, call func(context.Context, *Req) (*Resp, error)) {
	withRollback(s, logger, method, call, nil)
}

// withRollback is unary for a method that creates an object for its caller. rollback removes the
// object if the caller does not receive the response.
func withRollback[Req, Resp any](
	s *Server, logger *slog.Logger, method string, call func(context.Context, *Req) (*Resp, error), rollback func(*Resp),
) {
	s.Handle(method, grpch2.Method{NewBody: s.limiter.newBody(requestTensors[method]), Short: shortMethods[method], Audience: audience(method), Serve: func(c *grpch2.Call) {
		defer replyToPanic(c, logger, method)
		if err := failpoint.Hit("rpc/serve"); err != nil {
			c.Request().Discard()
			_ = c.Reply(failed(status.From(err)))
			return
		}
		req := new(Req)
		body := c.Request().(*receiveBuffer) //nolint:forcetypeassert // see newBody
		defer body.finish()
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
		if rollback == nil {
			_ = c.Reply(outcome)
			return
		}
		c.ReplyWithRollback(outcome, func() { rollback(resp) })
	}})
}

// replyToPanic logs a panic of a handler and replies with an Internal error, or with one that there
// is no memory. Handlers defer it.
func replyToPanic(c *grpch2.Call, logger *slog.Logger, method string) {
	switch v := recover().(type) {
	case nil:
	case *membudget.Exceeded:
		_ = c.Reply(failed(status.ResourceExhaustedf("there is no memory for %d more bytes of a request (--memory-limit)", v.Bytes)))
	default:
		logger.ErrorContext(c.Context(), "panic in a handler", "method", method, "panic", v, "stack", string(debug.Stack()))
		_ = c.Reply(failed(status.Internalf("panic while serving %s: %v", method, v)))
	}
}

// requestError returns TensorFlow's error for a request that cannot be decoded.
func requestError(err error) *status.Error {
	if errors.Is(err, errMalformed) {
		return status.Internalf("Unable to parse request")
	}
	return status.From(err)
}

// respond encodes a response. Its bytes share memory with data until they are sent.
func respond(req, resp any) (out grpch2.Outcome, data encoded) {
	data, err := encode(resp)
	if err == nil {
		err = failpoint.Hit("rpc/encode-response")
	}
	if err != nil {
		return failed(encodeError(req, err)), data
	}
	out.Data = data.data
	if failure := bodyError(resp); failure != nil {
		out.Trailer = bodyPayloads(failure)
	}
	return out, data
}

// encodeError returns the error for a tensor that cannot be encoded.
func encodeError(req any, err error) *status.Error {
	out := status.Internalf("Failed to encode tensor to byte buffer: %w", err)
	if r, ok := req.(*message.RecvTensorRequest); ok {
		return out.Annotate(" (request_id: %d step_id: %d rendezvous_key: %s)", r.RequestID, r.StepID, r.Key)
	}
	return out
}

// failed encodes an error.
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

// bodyPayloads returns the payloads of an error in the body of a response, which has no field for
// them.
func bodyPayloads(err *status.Error) []grpch2.Field {
	if payloads := encodePayloads(err.Payloads); payloads != nil {
		return []grpch2.Field{{Name: bodyPayloadTrailer, Value: string(payloads)}}
	}
	return nil
}
