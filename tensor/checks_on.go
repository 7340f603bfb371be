//go:build invariants

package tensor

import (
	"fmt"
	"sync/atomic"
)

// held is how many buffers have references.
var held atomic.Int64

func countHeld(n int64) { held.Add(n) }

// Held returns how many counted buffers somebody holds, for tests that look for leaks; 0 without
// -tags invariants.
func Held() int64 { return held.Load() }

// checkRefs panics when a reference was released that nobody held.
func checkRefs(n int32) {
	if n < 0 {
		panic(fmt.Sprintf("tensor: buffer released %d times too often", -n))
	}
}

// poison fills freed memory, so that a use after the last release shows as absurd values.
func poison(mem []byte) {
	for i := range mem {
		mem[i] = 0xdb
	}
}
