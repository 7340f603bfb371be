package grpch2

import (
	"testing"
	"time"
)

func TestWorkerPoolReusesTheLastIdleGoroutine(t *testing.T) {
	p := workerPool{timeout: time.Hour}
	defer p.close()
	if p.take() != nil {
		t.Error("a new pool has an idle goroutine")
	}
	first, second := make(chan job, 1), make(chan job, 1)
	if !p.park(first) || !p.park(second) {
		t.Fatal("two goroutines cannot become idle")
	}
	if p.take() != second { // its stack is in the cache
		t.Error("take does not return the goroutine that became idle last")
	}
	if p.take() != first || p.take() != nil {
		t.Error("a goroutine is lost, or taken twice")
	}
	for range maxIdleWorkers {
		if !p.park(make(chan job, 1)) {
			t.Fatal("fewer than maxIdleWorkers can become idle")
		}
	}
	if p.park(first) {
		t.Error("more than maxIdleWorkers become idle")
	}
	last := p.take()
	p.park(second)
	p.close()
	if _, more := <-second; more {
		t.Error("close does not dismiss an idle goroutine")
	}
	if p.park(last) || p.take() != nil {
		t.Error("a closed pool accepts idle goroutines")
	}
}

func TestWorkerPoolDismissesUnusedGoroutines(t *testing.T) {
	p := workerPool{timeout: time.Hour}
	defer p.close()
	next := make(chan job, 1)
	p.park(next)
	p.take()
	p.park(next)
	p.tick()
	if p.take() != next {
		t.Fatal("a goroutine that was used since the last tick is dismissed")
	}
	p.park(next)
	p.tick()
	p.tick()
	if _, more := <-next; more || p.take() != nil {
		t.Error("a goroutine stays idle although the pool was unused for two ticks")
	}
}
