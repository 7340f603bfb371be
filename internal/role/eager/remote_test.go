package eager

import (
	"context"
	"testing"
	"time"

	"github.com/weft-ml/weft/status"
)

// A peer answers CANCELLED if its deadline expires before the caller's timer fires.
func TestOverdue(t *testing.T) {
	cause := status.DeadlineExceededf("Deadline Exceeded")
	past, cancel := context.WithTimeoutCause(t.Context(), -time.Second, cause)
	defer cancel()
	future, cancel := context.WithTimeoutCause(t.Context(), time.Hour, cause)
	defer cancel()
	cancelled, other := status.Cancelledf("Dequeue operation was cancelled"), status.Internalf("broken")
	for _, test := range []struct {
		ctx       context.Context
		err, want error
	}{
		{past, cancelled, cause},
		{past, other, other},
		{future, cancelled, cancelled},
		{t.Context(), cancelled, cancelled},
	} {
		if got := overdue(test.ctx, test.err); got != test.want { //nolint:errorlint // exact
			t.Errorf("got %v, want %v", got, test.want)
		}
	}
}
