package main

import "testing"

func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 1600, 1 << 20: 1600, 4 << 20: 800, 16 << 20: 200, 32 << 20: 100, 1 << 30: 100} {
		if got := growth(live); got != want {
			t.Errorf("%d bytes in use may grow by %d%%, want %d", live, got, want)
		}
	}
}
