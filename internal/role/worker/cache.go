package worker

import (
	"context"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
)

// maxCached bounds the responses that are kept.
const maxCached = 1 << 16

// responseCache keeps the responses to requests for tensors until their receivers say that they
// have them, so that a request which a transport repeats is answered once more: the tensor itself
// is handed out only once. A response also goes with its step.
type responseCache struct {
	mu   sync.Mutex
	byID map[int64]*cached // guarded by mu; by request
}

// cached is a response, or one that is still waited for.
type cached struct {
	step   int64
	cancel context.CancelFunc // gives up the wait
	over   chan struct{}      // closed when the rest is set
	resp   any
	err    error
}

func newResponseCache() *responseCache { return &responseCache{byID: map[int64]*cached{}} }

// remember answers a request from the cache. The first time, answer is called; it goes on if the
// caller, whose connection may be lost, leaves.
func remember[Resp any](
	ctx context.Context, c *responseCache, request, step int64, answer func(context.Context) (*Resp, error),
) (*Resp, error) {
	c.mu.Lock()
	entry := c.byID[request]
	if entry == nil {
		if len(c.byID) >= maxCached {
			c.mu.Unlock()
			return nil, status.ResourceExhaustedf("%d responses have not been acknowledged", maxCached)
		}
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		entry = &cached{step: step, cancel: cancel, over: make(chan struct{})}
		c.byID[request] = entry
		go func() {
			defer close(entry.over)
			resp, err := answer(own)
			entry.resp, entry.err = resp, err
		}()
	}
	c.mu.Unlock()
	select {
	case <-entry.over:
	case <-ctx.Done():
		return nil, status.FromContext(ctx, "waiting for a tensor").Derive()
	}
	if entry.err != nil {
		return nil, entry.err
	}
	resp, ok := entry.resp.(*Resp)
	if !ok {
		return nil, status.InvalidArgumentf("request %d was another one before", request)
	}
	return resp, nil
}

// drop forgets the response to a request.
func (c *responseCache) drop(request int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry := c.byID[request]; entry != nil {
		entry.cancel()
		delete(c.byID, request)
	}
}

// dropStep forgets the responses of a step.
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

// MarkRecvFinished says that a response which was to be acknowledged has arrived.
func (w *Worker) MarkRecvFinished(_ context.Context, req *pb.MarkRecvFinishedRequest) (*pb.MarkRecvFinishedResponse, error) {
	if w.cache != nil {
		w.cache.drop(req.GetRequestId())
	}
	return &pb.MarkRecvFinishedResponse{}, nil
}

// recvCached is recvTensor with the response cache. What is kept is left to the garbage collector,
// as repeated answers may still be on their way when it is dropped.
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

// ackTimeout bounds how long a peer is told that its response has arrived. It forgets the response
// with its step anyway.
const ackTimeout = 10 * time.Second

// acknowledge tells a peer that its response has arrived. Nobody but Close waits for that.
func (w *Worker) acknowledge(peer Peer, request int64) {
	w.acks.Go(func() {
		ctx, cancel := context.WithTimeout(w.life, ackTimeout)
		defer cancel()
		if _, err := peer.MarkRecvFinished(ctx, &pb.MarkRecvFinishedRequest{RequestId: request}); err != nil {
			w.Log.Debug("a task keeps a response that has arrived", "error", err)
		}
	})
}
