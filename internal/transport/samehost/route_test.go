package samehost

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A tensor that was large is requested over the connection for large tensors, until it is small or
// that connection fails.
func TestRouteOfLargeTensors(t *testing.T) {
	b := NewBorrower(slog.New(slog.DiscardHandler))
	defer b.Close()
	var used []string
	size, failure := int64(0), error(nil)
	task := func(name string) Task {
		return taskFunc(func(_ context.Context, _ *message.RecvTensorRequest, done Done) {
			used = append(used, name)
			if failure != nil {
				done(nil, failure)
				return
			}
			done(&message.RecvTensorResponse{Tensor: random(tensor.Uint8, tensor.Shape{size})}, nil)
		})
	}
	routes := Routes{Main: task("main"), Large: task("large")}
	recv := func(iteration int) {
		req := &message.RecvTensorRequest{Key: fmt.Sprintf("here;1;there;edge;0:%d", iteration)}
		b.StartRecv(t.Context(), "peer", req, routes, func(*message.RecvTensorResponse, error) {})
	}
	for i, step := range []struct {
		size    int64
		failure error
		want    string
	}{
		{minLeased - 1, nil, "main"},
		{minLeased, nil, "main"},
		{minLeased, nil, "large"},
		{10, nil, "large"},
		{minLeased, nil, "main"},
		{minLeased, status.Unavailablef("gone"), "large"},
		{minLeased, nil, "main"},
		{minLeased, nil, "large"},
	} {
		size, failure = step.size, step.failure
		recv(i)
		if got := used[len(used)-1]; got != step.want || len(used) != i+1 {
			t.Errorf("request %d used %v, want %s", i, used[i:], step.want)
		}
	}
}

// Tensors that do not fit a batch are requested individually at once.
func TestRouteOfTensorsOutsideBatches(t *testing.T) {
	s := newStore(t, true)
	const n = 20 // two of them do not fit a batch
	for round := range 4 {
		s.calls = 0
		for i := range n {
			s.put(t, i)
		}
		resps, errs := s.recvAll(t.Context(), n)
		for i := range resps {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			check(t, i, resps[i])
		}
		if round > 1 && s.calls != 3 {
			t.Errorf("%d requests in round %d", s.calls, round)
		}
	}
}

func TestRouteCache(t *testing.T) {
	var c routeCache
	key := func(i int) string { return fmt.Sprintf("a;b;c;edge_%d;0:0", i) }
	for i := range 2*maxRoutes + 10 {
		c.record(key(i), routeLarge)
		c.record(key(i), routeLarge)
	}
	if n := len(c.routes); n != 10 || c.lookup(key(2*maxRoutes)) != routeLarge || c.lookup(key(0)) != routeBatch {
		t.Errorf("%d routes are cached", n)
	}
	for i := range 2*maxRoutes + 10 {
		c.record(key(i), routeBatch)
	}
	if c.count.Load() != 0 || len(c.routes) != 0 {
		t.Errorf("%d routes are left", len(c.routes))
	}
	c.record("no key", routeSingle)
	c.clear()
	if c.lookup("no key") != routeBatch {
		t.Error("clear keeps a route")
	}
	if got := []string{edge("a;b;c;d;0:0"), edge(""), edge("x")}; !slices.Equal(got, []string{"a;b;c;d", "", "x"}) {
		t.Errorf("the edges are %q", got)
	}
}
