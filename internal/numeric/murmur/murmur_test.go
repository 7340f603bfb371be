package murmur

import "testing"

// TestSum64 compares with hashes computed by TensorFlow 2.21.
func TestSum64(t *testing.T) {
	for s, want := range map[string]uint64{
		"": 9328806548029283899, "a": 2996632905371535868, "abcdefgh": 3429851175771700306, "abcdefghi": 6766191100966087061,
		"N10tensorflow3VarE":             17454915466513971685,
		"N10tensorflow14QueueInterfaceE": 9040823170352039474,
		"N10tensorflow5StackE":           11783358439878174618,
	} {
		if got := Sum64(s); got != want {
			t.Errorf("Sum64(%q) = %d, want %d", s, got, want)
		}
	}
}
