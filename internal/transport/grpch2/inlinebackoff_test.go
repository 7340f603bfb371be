package grpch2

import "testing"

// refusedCalls counts the calls until a backoff ends.
func refusedCalls(t *testing.T, b *inlineBackoff) int {
	t.Helper()
	for n := range 2 * maxInlineBackoff {
		if b.allow() {
			return n
		}
	}
	t.Fatal("a backoff does not end")
	return 0
}

func TestBackoffDoublesWithEachLostToken(t *testing.T) {
	var b inlineBackoff
	if n := refusedCalls(t, &b); n != 0 {
		t.Errorf("%d calls are refused before the first lost token", n)
	}
	for want := minInlineBackoff; want <= maxInlineBackoff; want *= 2 {
		b.grow()
		if n := refusedCalls(t, &b); n != want {
			t.Fatalf("a backoff of %d calls, want %d", n, want)
		}
	}
	b.grow()
	if n := refusedCalls(t, &b); n != maxInlineBackoff {
		t.Errorf("a backoff of %d calls, want at most %d", n, maxInlineBackoff)
	}
}

func TestBackoffShrinksWithSuccesses(t *testing.T) {
	var b inlineBackoff
	for range 4 {
		b.grow()
	}
	refusedCalls(t, &b)
	for range 2 * callsToHalve {
		b.succeed()
	}
	b.grow()
	// 8, halved twice and doubled
	if n, want := refusedCalls(t, &b), 4*minInlineBackoff; n != want {
		t.Errorf("a backoff of %d calls, want %d", n, want)
	}
}
