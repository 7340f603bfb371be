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

// TestNamedFrameIDs compares the ID of a loop with the one in a rendezvous key of TensorFlow
// 1.15.5, and checks the form of a nested one.
func TestNamedFrameIDs(t *testing.T) {
	root := &frame{info: &frameInfo{root: true}}
	outer := &frame{info: &frameInfo{name: "while/while_context"}}
	outer.setID(NamedFrameIDs, root, 0)
	if outer.id != 1496156560211570566 {
		t.Errorf("got %d", outer.id)
	}
	inner := &frame{info: &frameInfo{name: "inner"}}
	inner.setID(NamedFrameIDs, outer, 3)
	if want := ";0;while/while_context;3;inner"; inner.name != want || inner.id != murmur.Sum64(want) {
		t.Errorf("got %q", inner.name)
	}
}
