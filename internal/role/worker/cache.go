package worker

import (
	"context"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
)

// maxCached bounds the responses that wait for an acknowledgement.
const maxCached = 1 << 16

// responseCache keeps the responses to requests for tensors until their receivers acknowledge them.
// A request that a transport repeats is then answered again, although the rendezvous returns a
// tensor only once. A response is also dropped with its step.
type responseCache struct {
	mu   sync.Mutex
	byID map[int64]*cached // by request ID; guarded by mu
}

// cached is a response, or a pending one.
type cached struct {
	step   int64
	caller cluster.Task       // that has made the request
	cancel context.CancelFunc // cancels the wait for the response
	done   chan struct{}      // closed when resp and err are set
	resp   any
	err    error
}

func newResponseCache() *responseCache { return &responseCache{byID: map[int64]*cached{}} }

// remember answers a request from the cache. The first request calls answer, which continues if the
// caller gives up, because its connection may have been lost.
func remember[Resp any](
	ctx context.Context, c *responseCache, request, step int64, answer func(context.Context) (*Resp, error),
) (*Resp, error) {
	c.mu.Lock()
	entry := c.byID[request]
	if entry == nil {
		if len(c.byID) >= maxCached {
			c.dropFailedLocked()
		}
		if len(c.byID) >= maxCached {
			c.mu.Unlock()
			return nil, status.ResourceExhaustedf("%d responses have not been acknowledged", maxCached)
		}
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		entry = &cached{step: step, caller: callerOf(ctx), cancel: cancel, done: make(chan struct{})}
		c.byID[request] = entry
		go func() {
			defer close(entry.done)
			resp, err := answer(own)
			entry.resp, entry.err = resp, err
		}()
	}
	c.mu.Unlock()
	if entry.caller != callerOf(ctx) {
		return nil, status.Errorf(status.PermissionDenied, "request ID %d is that of another task", request)
	}
	select {
	case <-entry.done:
	case <-ctx.Done():
		return nil, status.FromContext(ctx, "waiting for a tensor").Derive()
	}
	if entry.err != nil {
		return nil, entry.err
	}
	resp, ok := entry.resp.(*Resp)
	if !ok {
		return nil, status.InvalidArgumentf("request ID %d was used for another request", request)
	}
	return resp, nil
}

// dropFailedLocked removes the responses that are errors. Receivers need not acknowledge them.
func (c *responseCache) dropFailedLocked() {
	for request, entry := range c.byID {
		select {
		case <-entry.done:
			if entry.err != nil {
				entry.cancel()
				delete(c.byID, request)
			}
		default:
		}
	}
}

// drop removes the response to a request of a task.
func (c *responseCache) drop(request int64, caller cluster.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry := c.byID[request]; entry != nil && entry.caller == caller {
		entry.cancel()
		delete(c.byID, request)
	}
}

// dropStep removes the responses of a step.
func (c *responseCache) dropStep(step int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for request, entry := range c.byID {
		if entry.step == step {
			entry.cancel()
			delete(c.byID, request)
		}
	}
}

// MarkRecvFinished acknowledges a response.
func (w *Worker) MarkRecvFinished(ctx context.Context, req *pb.MarkRecvFinishedRequest) (*pb.MarkRecvFinishedResponse, error) {
	if w.cache != nil {
		w.cache.drop(req.GetRequestId(), callerOf(ctx))
	}
	return &pb.MarkRecvFinishedResponse{}, nil
}

// recvCached is recvTensor with the response cache. Cached tensors are left to the garbage
// collector, because repeated answers may still be in flight when they are dropped.
func (w *Worker) recvCached(ctx context.Context, req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	resp, err := remember(ctx, w.cache, req.RequestID, req.StepID, func(ctx context.Context) (*message.RecvTensorResponse, error) {
		return w.recvTensor(ctx, req)
	})
	if err != nil {
		return nil, err
	}
	out := *resp
	out.Tensor, out.RequireAck = resp.Tensor.Retain(), true
	return &out, nil
}

// ackTimeout bounds an acknowledgement. Without one, the peer drops the response with its step.
const ackTimeout = 10 * time.Second

// acknowledge notifies a peer that its response has arrived. It does not wait; Close does.
func (w *Worker) acknowledge(peer Peer, request int64) {
	w.acks.Go(func() {
		ctx, cancel := context.WithTimeout(w.ctx, ackTimeout)
		defer cancel()
		if _, err := peer.MarkRecvFinished(ctx, &pb.MarkRecvFinishedRequest{RequestId: request}); err != nil {
			w.Log.Debug("a response could not be acknowledged", "error", err)
		}
	})
}
