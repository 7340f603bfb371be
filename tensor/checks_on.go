//go:build invariants

package tensor

import "fmt"

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
