package samehost

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// taskFunc is a function that implements Task.
type taskFunc func(ctx context.Context, req *message.RecvTensorRequest, done Done)

func (f taskFunc) StartRecv(ctx context.Context, req *message.RecvTensorRequest, done Done) {
	f(ctx, req, done)
}

// store is a task with the tensors of one step, which become available in random order.
type store struct {
	lender   *Lender // nil for a task of another implementation
	borrower *Borrower
	table    *rendezvous.Table

	mu    sync.Mutex
	calls int // guarded by mu
}

func newStore(t *testing.T, batches bool) *store {
	t.Helper()
	s := &store{borrower: NewBorrower(slog.New(slog.DiscardHandler)), table: rendezvous.New()}
	if batches {
		s.lender = NewLender(slog.New(slog.DiscardHandler))
		t.Cleanup(s.lender.Close)
	}
	t.Cleanup(s.borrower.Close)
	return s
}

func (s *store) call(ctx context.Context, req *message.RecvTensorRequest, done Done) {
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	go func() { done(s.answer(ctx, req)) }()
}

// requestCount returns the number of requests so far.
func (s *store) requestCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *store) answer(ctx context.Context, req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	resp := &message.RecvTensorResponse{SendStartMicros: 5}
	if s.lender != nil {
		if keys := s.lender.BatchKeys(req); keys != nil {
			values, err := s.table.AwaitSome(ctx, keys)
			if err != nil {
				return nil, err
			}
			for _, v := range s.lender.PackBatch(values, resp) {
				if err := s.table.SendText(keys[v.Index], v.Tensor, v.Dead); err != nil {
					return nil, err
				}
			}
			return resp, nil
		}
	}
	var err error
	resp.Tensor, resp.Dead, err = s.table.Await(ctx, req.Key)
	if err == nil && s.lender != nil {
		s.lender.Lend(req, resp)
	}
	return resp, err
}

// recvAll requests n tensors and returns the response or error of each.
func (s *store) recvAll(ctx context.Context, n int) ([]*message.RecvTensorResponse, []error) {
	resps, errs := make([]*message.RecvTensorResponse, n), make([]error, n)
	requests := make([]*message.RecvTensorRequest, n)
	for i := range requests {
		requests[i] = &message.RecvTensorRequest{StepID: 1, Key: fmt.Sprint(i), RequestID: int64(i) + 1}
	}
	var open sync.WaitGroup
	open.Add(n)
	s.borrower.StartRecvAll(ctx, "peer", requests, Routes{taskFunc(s.call), taskFunc(s.call)}, func(i int, resp *message.RecvTensorResponse, err error) {
		resps[i], errs[i] = resp, err
		open.Done()
	})
	open.Wait()
	return resps, errs
}

// put makes tensor i available. Every 50 tensors include a string, a large, a dead and an empty
// one.
func (s *store) put(t *testing.T, i int) {
	v := tensor.Vector(float32(i), 1)
	dead := false
	switch i % 50 {
	case 7:
		v = tensor.Vector(fmt.Sprint(i))
	case 8:
		v = tensor.Vector(make([]float32, maxBatchedSize)...)
	case 9:
		v, dead = tensor.Tensor{}, true
	case 10:
		v = tensor.Vector[float64]()
	}
	if err := s.table.SendText(fmt.Sprint(i), v, dead); err != nil {
		t.Error(err)
	}
}

func TestRecvAll(t *testing.T) {
	const n = 300
	for name, batches := range map[string]bool{"with batches": true, "without batches": false} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, batches)
			for round := range 3 {
				order := rand.Perm(n)
				for _, i := range order[:n/2] {
					s.put(t, i)
				}
				var late sync.WaitGroup
				late.Go(func() {
					for _, i := range order[n/2:] {
						s.put(t, i)
					}
				})
				before := s.requestCount()
				resps, errs := s.recvAll(t.Context(), n)
				late.Wait()
				for i, resp := range resps {
					if errs[i] != nil {
						t.Fatal(errs[i])
					}
					check(t, i, resp)
				}
				if calls := s.requestCount() - before; batches && round > 0 && calls > n {
					t.Errorf("%d requests for %d tensors", calls, n)
				}
				if s.table.Parked() != 0 {
					t.Error("a tensor was not received")
				}
			}
			if s.borrower.peer("peer").acceptsBatches.Load() != batches {
				t.Error("the borrower is wrong about the capability of its peer")
			}
		})
	}
}

func check(t *testing.T, i int, resp *message.RecvTensorResponse) {
	t.Helper()
	dtype, size := tensor.Float32, 2
	switch i % 50 {
	case 7:
		dtype, size = tensor.String, 1
	case 8:
		size = maxBatchedSize
	case 10:
		dtype, size = tensor.Float64, 0
	}
	switch x := &resp.Tensor; {
	case resp.Dead != (i%50 == 9):
		t.Errorf("tensor %d is dead: %v", i, resp.Dead)
	case resp.Dead:
	case x.DType() != dtype || x.NumElements() != size:
		t.Errorf("tensor %d is %v %v", i, x.DType(), x.Shape())
	case size == 2 && tensor.Values[float32](x)[0] != float32(i):
		t.Errorf("tensor %d is %v", i, tensor.Values[float32](x))
	}
}

// An error of a batch request is reported for each of its tensors.
func TestRecvAllFails(t *testing.T) {
	s := newStore(t, true)
	s.borrower.peer("peer").acceptsBatches.Store(true)
	s.table.Abort(status.Unavailablef("gone"))
	_, errs := s.recvAll(t.Context(), 5)
	for _, err := range errs {
		if status.CodeOf(err) != status.Unavailable {
			t.Errorf("got %v", err)
		}
	}
}

// Invalid responses fail the step, and each callback is called.
func TestInvalidBatchResponses(t *testing.T) {
	two := tensor.Vector[float32](1, 2)
	value := func(i int) rendezvous.Value { return rendezvous.Value{Index: i, Tensor: two} }
	for name, options := range map[string]*anypb.Any{
		"nothing":         (&reply{}).encode(),
		"other type":      {TypeUrl: "x"},
		"garbage":         {TypeUrl: replyType, Value: []byte{0x42, 1, 0xff}},
		"out of range":    (&reply{values: []rendezvous.Value{value(3)}}).encode(),
		"twice":           (&reply{values: []rendezvous.Value{value(1), value(1)}}).encode(),
		"single, range":   (&reply{single: []int{77}}).encode(),
		"single and sent": (&reply{values: []rendezvous.Value{value(2)}, single: []int{2}}).encode(),
	} {
		s := newStore(t, true)
		s.borrower.peer("peer").acceptsBatches.Store(true)
		var open sync.WaitGroup
		open.Add(3)
		requests := make([]*message.RecvTensorRequest, 3)
		for i := range requests {
			requests[i] = &message.RecvTensorRequest{Key: fmt.Sprint(i)}
		}
		call := func(_ context.Context, _ *message.RecvTensorRequest, done Done) {
			done(&message.RecvTensorResponse{Transport: options}, nil)
		}
		s.borrower.StartRecvAll(t.Context(), "peer", requests, Routes{taskFunc(call), taskFunc(call)}, func(_ int, _ *message.RecvTensorResponse, err error) {
			if status.CodeOf(err) != status.Internal {
				t.Errorf("%s: got %v", name, err)
			}
			open.Done()
		})
		open.Wait()
	}
}
