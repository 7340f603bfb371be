package parallel

import "testing"

func TestPace(t *testing.T) {
	const short, long = int64(between), 10 * int64(between)
	var p Yielder
	if p.due(1) || p.due(short) {
		t.Error("the core is offered by who has just begun")
	}
	if !p.due(1 + short) {
		t.Error("the core is not offered in time")
	}
	p.back(1000*short, 1000*short+1)
	if p.due(1001*short) || !p.due(1001*short+1) {
		t.Error("an offer that nobody took does not lead to another in time")
	}
	p.back(2000*short, 2000*short+long)
	if p.due(2000*short+3*long-1) || !p.due(2000*short+3*long) {
		t.Error("who had to wait does not compute for twice as long before the next offer")
	}
}

func BenchmarkOffer(b *testing.B) {
	var p Yielder
	for b.Loop() {
		p.MaybeYield()
	}
}
