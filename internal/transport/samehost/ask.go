package samehost

import (
	"context"
	"slices"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/status"
)

// greetings is how often a peer is asked whether it takes requests for several tensors before it is
// taken for one of another implementation.
const greetings = 8

// asking is a request for several tensors of a step.
type asking struct {
	borrower *Borrower
	ctx      context.Context
	peer     *peer
	address  string
	requests []*message.RecvTensorRequest
	ways     Routes
	done     func(i int, resp *message.RecvTensorResponse, err error)
}

// StartRecvAll asks the task at an address for several tensors of one step, as StartRecv does for
// each: together, as far as the task takes such requests. It calls done once for each.
func (b *Borrower) StartRecvAll(
	ctx context.Context, address string, requests []*message.RecvTensorRequest, ways Routes,
	done func(i int, resp *message.RecvTensorResponse, err error),
) {
	a := &asking{b, ctx, b.peer(address), address, requests, ways, done}
	batches := a.peer.batches.Load()
	var each, others []int
	for i, req := range requests {
		if !batches || a.peer.known.of(req.Key) != together {
			each = append(each, i)
		} else {
			others = append(others, i)
		}
	}
	a.askEach(each)
	for some := range slices.Chunk(others, maxBatch) {
		a.ask(some)
	}
}

// askEach asks for tensors one by one.
func (a *asking) askEach(indices []int) {
	for _, i := range indices {
		a.borrower.StartRecv(a.ctx, a.address, a.requests[i], a.ways, func(resp *message.RecvTensorResponse, err error) { a.done(i, resp, err) })
	}
}

// ask asks for tensors together.
func (a *asking) ask(indices []int) {
	if len(indices) == 1 {
		a.askEach(indices)
		return
	}
	o := offer{also: make([]string, len(indices)-1)}
	for k, i := range indices[1:] {
		o.also[k] = a.requests[i].Key
	}
	first := a.requests[indices[0]]
	req := &message.RecvTensorRequest{StepID: first.StepID, Key: first.Key, RequestID: requestid.New(), Transport: o.encode()}
	a.ways.Main.StartRecv(a.ctx, req, func(resp *message.RecvTensorResponse, err error) {
		if err != nil {
			a.fail(indices, err)
			return
		}
		if !a.answered(indices, resp) {
			a.alone(indices, resp)
		}
	})
}

func (a *asking) fail(indices []int, err error) {
	for _, i := range indices {
		a.done(i, nil, err)
	}
}

// alone takes the answer of a task that knows nothing of requests for several tensors.
func (a *asking) alone(indices []int, resp *message.RecvTensorResponse) {
	a.peer.batches.Store(false)
	a.peer.greeted.Store(0)
	if !resp.Tensor.Initialized() && !resp.Dead {
		a.fail(indices, status.Internalf("could not parse rpc response: there is no tensor"))
		return
	}
	a.done(indices[0], resp, nil)
	go a.askEach(indices[1:])
}

// answered passes on what has come, and asks for the rest. It reports false if the response is an
// ordinary one.
func (a *asking) answered(indices []int, resp *message.RecvTensorResponse) bool {
	if resp.Transport == nil || resp.Tensor.Initialized() || resp.Dead {
		return false
	}
	r, err := decodeReply(resp.Transport)
	if err != nil {
		a.fail(indices, status.Internalf("could not parse rpc response: %w", err))
		return true
	}
	if len(r.values) == 0 && len(r.alone) == 0 {
		err = errNoProgress
	}
	left := slices.Clone(indices)
	var alone []int
	for k := 0; err == nil && k < len(r.alone); k++ {
		alone, err = taken(alone, left, r.alone[k])
	}
	came := make([]int, 0, len(r.values))
	for k := 0; err == nil && k < len(r.values); k++ {
		came, err = taken(came, left, r.values[k].Index)
	}
	if err != nil {
		r.release()
		a.fail(indices, status.Internalf("could not parse rpc response: %w", err))
		return true
	}
	for k, i := range came {
		v := &r.values[k]
		a.done(i, &message.RecvTensorResponse{Tensor: v.Tensor, Dead: v.Dead, SendStartMicros: resp.SendStartMicros}, nil)
	}
	left = slices.DeleteFunc(left, func(i int) bool { return i < 0 })
	if len(left)+len(alone) > 0 {
		go func() { // who brought the response must not wait
			a.askEach(alone)
			if len(left) > 0 {
				a.ask(left)
			}
		}()
	}
	return true
}

// taken moves an element of a list, which must be there still, to the end of another.
func taken(to, list []int, at int) ([]int, error) {
	if at < 0 || at >= len(list) || list[at] < 0 {
		return to, errMalformed
	}
	to = append(to, list[at])
	list[at] = -1
	return to, nil
}
