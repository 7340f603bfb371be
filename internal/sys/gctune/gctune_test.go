package gctune

import "testing"

func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 1200, 1 << 20: 1200, 4 << 20: 1200, 16 << 20: 300, 48 << 20: 100, 1 << 30: 100} {
		if got := growth(live); got != want {
			t.Errorf("%d bytes in use may grow by %d%%, want %d", live, got, want)
		}
	}
}
