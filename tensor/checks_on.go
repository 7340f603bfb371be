//go:build invariants

package tensor

import (
	"fmt"
	"sync/atomic"
)

// held is the number of counted buffers with references.
var held atomic.Int64

func countHeld(n int64) { held.Add(n) }

// heldBuffers returns the number of counted buffers with references, for leak tests; 0 without
// -tags invariants.
func heldBuffers() int64 { return held.Load() }

// checkRefs panics if more references were released than existed.
func checkRefs(n int32) {
	if n < 0 {
		panic(fmt.Sprintf("tensor: buffer released %d times too often", -n))
	}
}

// poison fills freed memory, so that a use after the last release is visible as absurd values.
func poison(mem []byte) {
	for i := range mem {
		mem[i] = 0xdb
	}
}
