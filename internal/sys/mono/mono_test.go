package mono_test

import (
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
)

func TestClockNeverGoesBack(t *testing.T) {
	last := mono.Now()
	for range 1000 {
		now := mono.Now()
		if now < last || mono.Nanos() < int64(now) {
			t.Fatalf("read %v after %v", now, last)
		}
		last = now
	}
}

func TestTimeAndOfAreInverse(t *testing.T) {
	for _, at := range []time.Duration{0, 1, time.Hour, -time.Hour} {
		if got := mono.Of(mono.Time(at)); got != at {
			t.Errorf("Of(Time(%v)) = %v", at, got)
		}
	}
}

func BenchmarkNanos(b *testing.B) {
	for b.Loop() {
		mono.Nanos()
	}
}
