package executor

import (
	"testing"

	"github.com/weft-ml/weft/internal/numeric/murmur"
)

// TestChildFrame compares an ID with the one in a rendezvous key of TensorFlow 2.21.
func TestChildFrame(t *testing.T) {
	if got := childFrame(rootFrame, 0, murmur.Sum64("wl/while_context")); got != 5189404682685958103 {
		t.Errorf("got %d", got)
	}
}
