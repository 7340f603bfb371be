package samehost

import (
	"context"
	"slices"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/status"
)

// maxProbes is how often a peer is asked whether it accepts batch requests before it is taken for
// another implementation.
const maxProbes = 8

// batchRequest is a request for several tensors of a step.
type batchRequest struct {
	borrower *Borrower
	ctx      context.Context
	peer     *peer
	address  string
	requests []*message.RecvTensorRequest
	routes   Routes
	done     func(i int, resp *message.RecvTensorResponse, err error)
}

// StartRecvAll requests several tensors of one step from the task at an address, in batches if the
// task accepts them. It calls done once for each request, with the arguments of StartRecv. It does
// not block.
func (b *Borrower) StartRecvAll(
	ctx context.Context, address string, requests []*message.RecvTensorRequest, routes Routes,
	done func(i int, resp *message.RecvTensorResponse, err error),
) {
	a := &batchRequest{b, ctx, b.peer(address), address, requests, routes, done}
	acceptsBatches := a.peer.acceptsBatches.Load()
	var single, batched []int
	for i, req := range requests {
		if !acceptsBatches || a.peer.routes.lookup(req.Key) != routeBatch {
			single = append(single, i)
		} else {
			batched = append(batched, i)
		}
	}
	a.requestEach(single)
	for batch := range slices.Chunk(batched, maxBatchKeys) {
		a.requestBatch(batch)
	}
}

// requestEach requests tensors individually.
func (a *batchRequest) requestEach(indices []int) {
	for _, i := range indices {
		a.borrower.StartRecv(a.ctx, a.address, a.requests[i], a.routes, func(resp *message.RecvTensorResponse, err error) { a.done(i, resp, err) })
	}
}

// requestBatch requests tensors in one batch.
func (a *batchRequest) requestBatch(indices []int) {
	if len(indices) == 1 {
		a.requestEach(indices)
		return
	}
	o := offer{moreKeys: make([]string, len(indices)-1)}
	for k, i := range indices[1:] {
		o.moreKeys[k] = a.requests[i].Key
	}
	first := a.requests[indices[0]]
	req := &message.RecvTensorRequest{StepID: first.StepID, Key: first.Key, RequestID: requestid.New(), Transport: o.encode()}
	a.routes.Main.StartRecv(a.ctx, req, func(resp *message.RecvTensorResponse, err error) {
		if err != nil {
			a.fail(indices, err)
			return
		}
		if !a.handleReply(indices, resp) {
			a.fallBack(indices, resp)
		}
	})
}

// fail reports an error for each of the tensors.
func (a *batchRequest) fail(indices []int, err error) {
	for _, i := range indices {
		a.done(i, nil, err)
	}
}

// fallBack handles the response of a task that does not know batch requests: it is the response to
// the first key.
func (a *batchRequest) fallBack(indices []int, resp *message.RecvTensorResponse) {
	a.peer.acceptsBatches.Store(false)
	a.peer.probes.Store(0)
	if !resp.Tensor.Initialized() && !resp.Dead {
		a.fail(indices, status.Internalf("could not parse rpc response: there is no tensor"))
		return
	}
	a.done(indices[0], resp, nil)
	go a.requestEach(indices[1:])
}

// handleReply passes the received tensors on, and requests the others again. It reports false if
// the response is not that to a batch request.
func (a *batchRequest) handleReply(indices []int, resp *message.RecvTensorResponse) bool {
	if resp.Transport == nil || resp.Tensor.Initialized() || resp.Dead {
		return false
	}
	r, err := decodeReply(resp.Transport)
	if err != nil {
		a.fail(indices, status.Internalf("could not parse rpc response: %w", err))
		return true
	}
	if len(r.values) == 0 && len(r.single) == 0 {
		err = errNoProgress
	}
	missing := slices.Clone(indices)
	var single []int
	for k := 0; err == nil && k < len(r.single); k++ {
		single, err = moveIndex(single, missing, r.single[k])
	}
	received := make([]int, 0, len(r.values))
	for k := 0; err == nil && k < len(r.values); k++ {
		received, err = moveIndex(received, missing, r.values[k].Index)
	}
	if err != nil {
		r.release()
		a.fail(indices, status.Internalf("could not parse rpc response: %w", err))
		return true
	}
	for k, i := range received {
		v := &r.values[k]
		a.done(i, &message.RecvTensorResponse{Tensor: v.Tensor, Dead: v.Dead, SendStartMicros: resp.SendStartMicros}, nil)
	}
	missing = slices.DeleteFunc(missing, func(i int) bool { return i < 0 })
	if len(missing)+len(single) > 0 {
		go func() { // the goroutine that delivers the response must not block
			a.requestEach(single)
			if len(missing) > 0 {
				a.requestBatch(missing)
			}
		}()
	}
	return true
}

// moveIndex appends list[at] to another list and marks it as removed. It returns an error if the
// element does not exist or was removed before.
func moveIndex(to, list []int, at int) ([]int, error) {
	if at < 0 || at >= len(list) || list[at] < 0 {
		return to, errMalformed
	}
	to = append(to, list[at])
	list[at] = -1
	return to, nil
}
