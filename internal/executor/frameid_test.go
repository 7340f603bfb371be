package executor

import "testing"

func TestHashName(t *testing.T) {
	for name, want := range map[string]uint64{
		"": 9328806548029283899, "a": 2996632905371535868, "abcdefgh": 3429851175771700306, "abcdefghi": 6766191100966087061,
	} {
		if got := hashName(name); got != want {
			t.Errorf("hashName(%q) = %d, want %d", name, got, want)
		}
	}
}

// TestChildFrame checks an id that TensorFlow 2.21 sent over the wire.
func TestChildFrame(t *testing.T) {
	if got := childFrame(rootFrame, 0, hashName("wl/while_context")); got != 5189404682685958103 {
		t.Errorf("got %d", got)
	}
}
