package membudget

import (
	"testing"
	"time"
)

// Memory without a holder does not make a charge fail.
func TestChargeAfterGarbage(t *testing.T) {
	old := garbage.collect
	garbage.fruitful = true // other tests have had charges refused
	t.Cleanup(func() { garbage.collect, garbage.fruitful = old, true })
	var dropped []*Charge
	collections := 0
	garbage.collect = func() {
		collections++
		for _, c := range dropped {
			c.End()
		}
		dropped = nil
	}
	refused := 0
	a := NewAccount(nil, "session", "--max-session-memory", 100, func() { refused++ })
	charge := func(n int64, want *Account) *Charge {
		t.Helper()
		c, over := a.Charge(n)
		if over != want {
			t.Fatalf("a charge of %d bytes: got %v, want %v", n, over, want)
		}
		return c
	}
	held := charge(60, nil)
	charge(60, a)
	if collections != 1 || refused != 1 {
		t.Errorf("%d collections and %d refusals, want one of each", collections, refused)
	}
	dropped = append(dropped, held)
	charge(60, nil) // although the last collection was in vain
	if collections != 2 || refused != 1 {
		t.Errorf("%d collections and %d refusals, want 2 and 1", collections, refused)
	}
	garbage.fruitful = false
	garbage.next += int64(time.Hour)
	charge(60, a)
	if collections != 2 {
		t.Error("the collector did not rest")
	}
}
