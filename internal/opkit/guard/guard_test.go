package guard

import (
	"errors"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

func TestCall(t *testing.T) {
	own := errors.New("own")
	for _, tt := range []struct {
		f    func() error
		want status.Code
	}{
		{func() error { return nil }, status.OK},
		{func() error { return own }, status.Unknown},
		{func() error { panic(&membudget.Exceeded{Bytes: 1}) }, status.ResourceExhausted},
		{func() error { panic("fault") }, status.Internal},
	} {
		if err := Call("a test", tt.f); status.CodeOf(err) != tt.want {
			t.Errorf("got %v, want %v", err, tt.want)
		}
	}
}
