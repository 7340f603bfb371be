//go:build !invariants

package tensor

func checkRefs(int32) {}

func poison([]byte) {}

func countHeld(int64) {}

// Held returns how many counted buffers somebody holds, for tests that look for leaks; 0 without
// -tags invariants.
func Held() int64 { return 0 }
