package worker

import (
	"context"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/status"
)

// Errors that no receiver acknowledges make room for other responses, and the end of a session ends
// those of its steps.
func TestResponsesWithoutAcknowledgement(t *testing.T) {
	c := newResponseCache()
	ask := func(request, step int64, err error) error {
		_, got := remember(t.Context(), c, request, step, func(context.Context) (*int, error) { return new(int), err })
		return got
	}
	refused := status.InvalidArgumentf("unknown device")
	for i := range int64(maxCached - 1) {
		if err := ask(i+1, 1, refused); status.CodeOf(err) != status.InvalidArgument {
			t.Fatal(err)
		}
	}
	for i := range int64(2) {
		if err := ask(-i-1, 7, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.byID); n != 2 {
		t.Errorf("%d responses are left, want 2", n)
	}
	s := newSteps(nil, nil)
	s.cache = c
	owner := newSession("s", cluster.Task{}, nil, nil)
	s.mu.Lock()
	s.addLocked(7).session = owner
	s.mu.Unlock()
	s.endSession(owner, status.Abortedf("the session has ended"))
	if n := len(c.byID); n != 0 {
		t.Errorf("%d responses are left of a session that has ended", n)
	}
}
