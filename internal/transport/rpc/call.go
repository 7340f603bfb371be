package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/mono"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

// waitPolicy tells how long a call waits for a peer that cannot be reached or does not answer.
type waitPolicy struct {
	wait   bool          // wait for a connection; other calls fail at once
	within time.Duration // bound of the whole call; 0 for that of its context
}

// cleanupTimeout bounds calls that clean up: a peer that cannot be reached has nothing to clean up.
const cleanupTimeout = 10 * time.Second

// waitPolicies lists the methods that wait for a peer to come up: those with which clients and
// masters start, because the tasks of a cluster start in any order, and those that clean up.
// TensorFlow's clients wait with every call, and forever. But when a peer has died, so have the
// sessions and steps that the other methods need.
var waitPolicies = map[string]waitPolicy{
	MethodCreateSession:       {wait: true},
	MethodListDevices:         {wait: true},
	MethodReset:               {wait: true},
	MethodGetStatus:           {wait: true},
	MethodCompleteGroup:       {wait: true},
	MethodCompleteInstance:    {wait: true},
	MethodCleanupGraph:        {wait: true, within: cleanupTimeout},
	MethodCleanupAll:          {wait: true, within: cleanupTimeout},
	MethodDeleteWorkerSession: {within: cleanupTimeout},
}

// A caller makes calls to one peer.
type caller struct {
	conn   *Conn
	remote string // name of the peer, for errors
	task   bool   // the peer is a task of the cluster, called by another task
}

// invoke calls a method and waits for its response, which owns its tensors. It borrows the request.
func invoke[Resp any](ctx context.Context, c *caller, method string, req any) (*Resp, error) {
	data, err := encode(req)
	if err != nil {
		return nil, status.From(err)
	}
	ctx, cancel := bounded(ctx, method)
	defer cancel()
	out := c.conn.client.Call(ctx, c.request(method, &data))
	data.Free()
	return response[Resp](ctx, c, method, &out)
}

// start is the asynchronous form of invoke. It borrows the request until done is called. done is
// called once, possibly on the goroutine that reads the connection, and must not block.
func start[Resp any](ctx context.Context, c *caller, method string, req any, done func(*Resp, error)) {
	data, err := encode(req)
	if err != nil {
		done(nil, status.From(err))
		return
	}
	ctx, cancel := bounded(ctx, method)
	r := c.request(method, &data)
	r.MayDelay = canWait(req)
	c.conn.client.Start(ctx, r, func(out grpch2.Response) {
		defer cancel()
		data.Free()
		done(response[Resp](ctx, c, method, &out))
	})
}

// canWait reports whether a request may be delayed until the next flush.
func canWait(req any) bool {
	switch req := req.(type) {
	case *message.RunGraphRequest:
		return req.CanWait
	case *pb.CleanupGraphRequest:
		return true
	}
	return false
}

// bounded returns the context of a call, with the timeout of its method.
func bounded(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	if within := waitPolicies[method].within; within > 0 {
		return context.WithTimeout(ctx, within)
	}
	return ctx, func() {}
}

func (c *caller) request(method string, data *encoded) *grpch2.Request {
	return &grpch2.Request{Path: method, Data: data.data, WaitForReady: waitPolicies[method].wait, NewBody: c.conn.limiter.newBody(responseTensors[method])}
}

// response decodes the outcome of a call.
func response[Resp any](ctx context.Context, c *caller, method string, out *grpch2.Response) (*Resp, error) {
	if out.FromServer {
		c.conn.heard.Store(int64(mono.Now()))
	}
	if out.Code != uint32(status.OK) {
		return nil, c.explain(ctx, method, responseStatus(out), out.FromServer)
	}
	resp := new(Resp)
	err := failpoint.Hit("rpc/decode-response")
	if err != nil {
		out.Body.Discard()
	} else {
		err = receive(out.Body, resp)
	}
	if err != nil {
		return nil, c.explain(ctx, method, responseError(err), true)
	}
	if failure := bodyError(resp); failure != nil {
		failure.Payloads = decodePayloads(out.Trailer, bodyPayloadTrailer)
	}
	return resp, nil
}

// explain adds the name of the peer to an error, in the form of TensorFlow's masters and workers.
// If the peer has not answered, the error is about the connection.
func (c *caller) explain(ctx context.Context, method string, err *status.Error, answered bool) *status.Error {
	if ctx.Err() != nil && !answered && (err.Code == status.Cancelled || err.Code == status.DeadlineExceeded) {
		what := fmt.Sprintf("calling %s on %s", method, c.remote)
		if c.task {
			what += " at " + c.conn.address
		}
		return ended(ctx, fmt.Sprintf("%s (%s)", what, c.conn.state()))
	}
	if !answered && err.Code == status.Unavailable {
		out := *err
		out.Message = fmt.Sprintf("%s is unavailable: %s", c.remote, err.Message)
		err = &out
	}
	if c.task {
		err = err.Annotate("\nAdditional GRPC error information from remote target %s while calling %s:\n:%v",
			c.remote, method, err.Code)
	}
	return err
}

// ended returns the error of a call whose context has ended.
func ended(ctx context.Context, what string) *status.Error {
	err := status.FromContext(ctx, what)
	switch {
	case err.Code == status.Cancelled:
		return err.Derive()
	case !strings.Contains(err.Message, what): // the deadline has a cause of its own
		return err.Annotate(" (while %s)", what)
	}
	return err
}

// responseError returns TensorFlow's error for a response that cannot be decoded.
func responseError(err error) *status.Error {
	if errors.Is(err, errMalformed) {
		return status.Internalf("could not parse rpc response")
	}
	return status.Internalf("could not parse rpc response: %w", err)
}
