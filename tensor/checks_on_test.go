//go:build invariants

package tensor

import "testing"

func TestFreedMemoryIsPoisoned(t *testing.T) {
	x := mustAlloc(t, Int32, 4)
	view := Values[int32](&x)
	view[0] = 1
	x.Release()
	if view[0] == 1 {
		t.Error("freed elements still have their values")
	}
}

func TestDoubleReleaseIsFound(t *testing.T) {
	x := mustAlloc(t, Int32, 4)
	y := x
	x.Release()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	y.Release()
}
