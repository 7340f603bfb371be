package gctune

import "testing"

func TestGrowthPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 1200, 1 << 20: 1200, 4 << 20: 1200, 16 << 20: 300, 48 << 20: 100, 1 << 30: 100} {
		if got := growthPercent(live); got != want {
			t.Errorf("a live heap of %d bytes gets GOGC=%d, want %d", live, got, want)
		}
	}
}
