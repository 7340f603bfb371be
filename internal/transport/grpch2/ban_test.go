package grpch2

import "testing"

// refused counts the calls until a ban is over.
func refused(t *testing.T, b *ban) int {
	t.Helper()
	for n := range 2 * banMost {
		if b.over() {
			return n
		}
	}
	t.Fatal("a ban does not end")
	return 0
}

func TestBansGrowWhileCallsLoseTheTurn(t *testing.T) {
	var b ban
	if n := refused(t, &b); n != 0 {
		t.Errorf("%d calls are refused before one lost the turn", n)
	}
	for want := banLeast; want <= banMost; want *= 2 {
		b.lost()
		if n := refused(t, &b); n != want {
			t.Fatalf("a ban of %d calls, want %d", n, want)
		}
	}
	b.lost()
	if n := refused(t, &b); n != banMost {
		t.Errorf("a ban of %d calls, want at most %d", n, banMost)
	}
}

func TestBansShrinkWhileCallsKeepTheTurn(t *testing.T) {
	var b ban
	for range 4 {
		b.lost()
	}
	refused(t, &b)
	for range 2 * banKept {
		b.keep()
	}
	b.lost()
	if n, want := refused(t, &b), 4*banLeast; n != want { // 8, halved twice and doubled
		t.Errorf("a ban of %d calls, want %d", n, want)
	}
}
