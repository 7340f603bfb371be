package rpc

import (
	"context"
	"strings"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

// A WorkerClient calls the WorkerService of a task.
type WorkerClient struct{ caller }

// NewWorkerClient returns a client of the task with the given name at the other end of conn.
func NewWorkerClient(conn *Conn, task string) *WorkerClient {
	return &WorkerClient{caller{conn: conn, remote: task, task: true}}
}

var _ peer.Questioner = (*WorkerClient)(nil)

// Address returns the address of the task, "host:port".
func (c *WorkerClient) Address() string { return c.conn.address }

// Failure returns the error of the last attempt to connect to the task; see [Conn.Failure].
func (c *WorkerClient) Failure() error { return c.conn.Failure() }

// LastHeard returns the time since the task last answered a call; see [Conn.LastHeard].
func (c *WorkerClient) LastHeard() (ago time.Duration, ok bool) { return c.conn.LastHeard() }

// HasMethod implements [peer.Questioner].
func (c *WorkerClient) HasMethod(ctx context.Context, method string, request []byte) (bool, error) {
	out := c.conn.client.Call(ctx, &grpch2.Request{
		Path: method, Data: [][]byte{request}, NewBody: c.conn.limiter.newBody(nil),
	})
	if out.Body != nil {
		out.Body.Discard()
	}
	switch {
	case status.Code(out.Code) == status.Unimplemented:
		return false, nil
	case !out.FromServer:
		return false, c.explain(ctx, method, responseStatus(&out), false)
	}
	return true, nil
}

// HasSession asks the master of the task whether it has a session. Masters of TensorFlow that send
// their name to workers know this question, too.
func (c *WorkerClient) HasSession(ctx context.Context, handle string) (bool, error) {
	_, err := invoke[pb.ListDevicesResponse](ctx, &c.caller, MethodListDevices, &pb.ListDevicesRequest{SessionHandle: handle})
	if status.CodeOf(err) == status.InvalidArgument && strings.Contains(err.Error(), "is not found") {
		return false, nil
	}
	return err == nil, err
}

// GetStatus lists the task's devices.
func (c *WorkerClient) GetStatus(ctx context.Context, req *pb.GetStatusRequest) (*pb.GetStatusResponse, error) {
	return invoke[pb.GetStatusResponse](ctx, &c.caller, MethodGetStatus, req)
}

// CreateWorkerSession creates a master's session on the task.
func (c *WorkerClient) CreateWorkerSession(ctx context.Context, req *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error) {
	return invoke[pb.CreateWorkerSessionResponse](ctx, &c.caller, MethodCreateWorkerSession, req)
}

// DeleteWorkerSession ends the task's part of a session.
func (c *WorkerClient) DeleteWorkerSession(ctx context.Context, req *pb.DeleteWorkerSessionRequest) (*pb.DeleteWorkerSessionResponse, error) {
	return invoke[pb.DeleteWorkerSessionResponse](ctx, &c.caller, MethodDeleteWorkerSession, req)
}

// RegisterGraph registers the task's partition of a graph.
func (c *WorkerClient) RegisterGraph(ctx context.Context, req *pb.RegisterGraphRequest) (*pb.RegisterGraphResponse, error) {
	return invoke[pb.RegisterGraphResponse](ctx, &c.caller, MethodRegisterGraph, req)
}

// DeregisterGraph drops a registered graph.
func (c *WorkerClient) DeregisterGraph(ctx context.Context, req *pb.DeregisterGraphRequest) (*pb.DeregisterGraphResponse, error) {
	return invoke[pb.DeregisterGraphResponse](ctx, &c.caller, MethodDeregisterGraph, req)
}

// RunGraph runs the task's partition of a step.
func (c *WorkerClient) RunGraph(ctx context.Context, req *message.RunGraphRequest) (*message.RunGraphResponse, error) {
	return invoke[message.RunGraphResponse](ctx, &c.caller, MethodRunGraph, req)
}

// StartGraph is the asynchronous form of RunGraph. done is called once, possibly on the goroutine
// that reads the connection, and must not block.
func (c *WorkerClient) StartGraph(ctx context.Context, req *message.RunGraphRequest, done func(*message.RunGraphResponse, error)) {
	start(ctx, &c.caller, MethodRunGraph, req, done)
}

// Flush sends the delayed requests.
func (c *WorkerClient) Flush() { c.conn.client.Flush() }

// StartCleanup is the asynchronous form of CleanupGraph, as StartGraph.
func (c *WorkerClient) StartCleanup(ctx context.Context, req *pb.CleanupGraphRequest, done func(*pb.CleanupGraphResponse, error)) {
	start(ctx, &c.caller, MethodCleanupGraph, req, done)
}

// CleanupGraph drops the state of a step.
func (c *WorkerClient) CleanupGraph(ctx context.Context, req *pb.CleanupGraphRequest) (*pb.CleanupGraphResponse, error) {
	return invoke[pb.CleanupGraphResponse](ctx, &c.caller, MethodCleanupGraph, req)
}

// CleanupAll drops resource containers.
func (c *WorkerClient) CleanupAll(ctx context.Context, req *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error) {
	return invoke[pb.CleanupAllResponse](ctx, &c.caller, MethodCleanupAll, req)
}

// RecvTensor waits for a tensor that the task produces, and returns it.
func (c *WorkerClient) RecvTensor(ctx context.Context, req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	return invoke[message.RecvTensorResponse](ctx, &c.caller, MethodRecvTensor, req)
}

// StartRecv is the asynchronous form of RecvTensor, as StartGraph.
func (c *WorkerClient) StartRecv(ctx context.Context, req *message.RecvTensorRequest, done func(*message.RecvTensorResponse, error)) {
	start(ctx, &c.caller, MethodRecvTensor, req, done)
}

// MarkRecvFinished acknowledges a tensor or buffer.
func (c *WorkerClient) MarkRecvFinished(ctx context.Context, req *pb.MarkRecvFinishedRequest) (*pb.MarkRecvFinishedResponse, error) {
	return invoke[pb.MarkRecvFinishedResponse](ctx, &c.caller, MethodMarkRecvFinished, req)
}

// Logging controls and returns the record of transfers.
func (c *WorkerClient) Logging(ctx context.Context, req *pb.LoggingRequest) (*pb.LoggingResponse, error) {
	return invoke[pb.LoggingResponse](ctx, &c.caller, MethodLogging, req)
}

// Tracing profiles the task.
func (c *WorkerClient) Tracing(ctx context.Context, req *pb.TracingRequest) (*pb.TracingResponse, error) {
	return invoke[pb.TracingResponse](ctx, &c.caller, MethodTracing, req)
}

// RecvBuf waits for a buffer of a collective op, and returns it.
func (c *WorkerClient) RecvBuf(ctx context.Context, req *pb.RecvBufRequest) (*pb.RecvBufResponse, error) {
	return invoke[pb.RecvBufResponse](ctx, &c.caller, MethodRecvBuf, req)
}

// GetStepSequence returns the step ids that all masters are to use.
func (c *WorkerClient) GetStepSequence(ctx context.Context, req *pb.GetStepSequenceRequest) (*pb.GetStepSequenceResponse, error) {
	return invoke[pb.GetStepSequenceResponse](ctx, &c.caller, MethodGetStepSequence, req)
}

// CompleteGroup waits until a collective group has all its members.
func (c *WorkerClient) CompleteGroup(ctx context.Context, req *pb.CompleteGroupRequest) (*pb.CompleteGroupResponse, error) {
	return invoke[pb.CompleteGroupResponse](ctx, &c.caller, MethodCompleteGroup, req)
}

// CompleteInstance agrees on one op of a collective group.
func (c *WorkerClient) CompleteInstance(ctx context.Context, req *pb.CompleteInstanceRequest) (*pb.CompleteInstanceResponse, error) {
	return invoke[pb.CompleteInstanceResponse](ctx, &c.caller, MethodCompleteInstance, req)
}
