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

// A tensor that was large is asked for where no small message waits for it, until it is small, or
// that fails.
func TestLargeTensorsGoTheirWay(t *testing.T) {
	b := NewBorrower(slog.New(slog.DiscardHandler))
	defer b.Close()
	var asked []string
	size, fails := int64(0), error(nil)
	way := func(name string) Task {
		return caller(func(_ context.Context, _ *message.RecvTensorRequest, done Done) {
			asked = append(asked, name)
			if fails != nil {
				done(nil, fails)
				return
			}
			done(&message.RecvTensorResponse{Tensor: random(tensor.Uint8, tensor.Shape{size})}, nil)
		})
	}
	ways := Routes{Main: way("main"), Large: way("large")}
	recv := func(iteration int) {
		req := &message.RecvTensorRequest{Key: fmt.Sprintf("here;1;there;edge;0:%d", iteration)}
		b.StartRecv(t.Context(), "there", req, ways, func(*message.RecvTensorResponse, error) {})
	}
	for i, step := range []struct {
		size  int64
		fails error
		want  string
	}{
		{minLent - 1, nil, "main"},
		{minLent, nil, "main"},
		{minLent, nil, "large"},
		{10, nil, "large"},
		{minLent, nil, "main"},
		{minLent, status.Unavailablef("gone"), "large"},
		{minLent, nil, "main"},
		{minLent, nil, "large"},
	} {
		size, fails = step.size, step.fails
		recv(i)
		if got := asked[len(asked)-1]; got != step.want || len(asked) != i+1 {
			t.Errorf("request %d took %v, want %s", i, asked[i:], step.want)
		}
	}
}

// Tensors that are known not to travel with others are not asked for with them.
func TestKnownTensorsAreAskedForAlone(t *testing.T) {
	s := newStore(t, true)
	const n = 20 // of which two do not
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

func TestKnown(t *testing.T) {
	var k known
	key := func(i int) string { return fmt.Sprintf("a;b;c;edge_%d;0:0", i) }
	for i := range 2*maxKnown + 10 {
		k.learn(key(i), large)
		k.learn(key(i), large)
	}
	if n := len(k.habits); n != 10 || k.of(key(2*maxKnown)) != large || k.of(key(0)) != together {
		t.Errorf("%d are known", n)
	}
	for i := range 2*maxKnown + 10 {
		k.learn(key(i), together)
	}
	if k.count.Load() != 0 || len(k.habits) != 0 {
		t.Errorf("%d are left", len(k.habits))
	}
	k.learn("no key", alone)
	k.forget()
	if k.of("no key") != together {
		t.Error("something is remembered")
	}
	if got := []string{edge("a;b;c;d;0:0"), edge(""), edge("x")}; !slices.Equal(got, []string{"a;b;c;d", "", "x"}) {
		t.Errorf("the edges are %q", got)
	}
}
