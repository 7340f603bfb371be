package farmhash

import (
	"strings"
	"testing"
)

// TestFingerprint64 compares with fingerprints computed by TensorFlow, for each length class and
// its boundaries.
func TestFingerprint64(t *testing.T) {
	for s, want := range map[string]uint64{
		"": 0x9ae16a3b2f90404f, "a": 0xb3454265b6df75e3, "hello": 0xb48be5a931380ce8, "0123456789abcdef0": 0x6deb36b4a021a909,
		strings.Repeat("x", 40): 0xebf8e8aeac993c94, strings.Repeat("x", 64): 0x5ffb3c754f6913b8,
		strings.Repeat("x", 65): 0x447cb9fd96f25f39, strings.Repeat("0123456789", 20): 0x861a2ca290dc8395,
	} {
		if got := Fingerprint64([]byte(s)); got != want {
			t.Errorf("the fingerprint of %q is %#x, want %#x", s, got, want)
		}
	}
}
