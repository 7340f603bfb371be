package parallel

import "testing"

func TestYielderSchedule(t *testing.T) {
	const short, long = int64(yieldInterval), 10 * int64(yieldInterval)
	var y Yielder
	if y.due(1) || y.due(short) {
		t.Error("a yield is due within the first interval")
	}
	if !y.due(1 + short) {
		t.Error("no yield is due after the first interval")
	}
	y.record(1000*short, 1000*short+1)
	if y.due(1001*short) || !y.due(1001*short+1) {
		t.Error("after a yield that no thread took, the next is not due in one interval")
	}
	y.record(2000*short, 2000*short+long)
	if y.due(2000*short+3*long-1) || !y.due(2000*short+3*long) {
		t.Error("after a yield that another thread took, the next is not due after twice the wait")
	}
}

func BenchmarkMaybeYield(b *testing.B) {
	var y Yielder
	for b.Loop() {
		y.MaybeYield()
	}
}
