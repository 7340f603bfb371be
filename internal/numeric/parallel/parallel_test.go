package parallel

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func setThreads(t testing.TB, n int) {
	t.Helper()
	old := SetThreads(n)
	t.Cleanup(func() { SetThreads(old) })
}

// record runs a loop and returns its blocks in order.
func record(n, grain int) [][2]int {
	var mu sync.Mutex
	var got [][2]int
	For(n, grain, func(lo, hi int) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, [2]int{lo, hi})
	})
	slices.SortFunc(got, func(a, b [2]int) int { return a[0] - b[0] })
	return got
}

func TestForBlocks(t *testing.T) {
	tests := []struct {
		n, grain int
		want     string
	}{
		{0, 4, "[]"},
		{-1, 4, "[]"},
		{3, 4, "[[0 3]]"},
		{4, 4, "[[0 4]]"},
		{9, 4, "[[0 4] [4 8] [8 9]]"},
		{2, 0, "[[0 1] [1 2]]"},
	}
	for _, threads := range []int{1, 2, 5} {
		setThreads(t, threads)
		for _, tt := range tests {
			got := record(tt.n, tt.grain)
			if fmt.Sprint(got) != tt.want {
				t.Errorf("%d threads: For(%d, %d) ran %v, want %v", threads, tt.n, tt.grain, got, tt.want)
			}
			if Blocks(tt.n, tt.grain) != len(got) {
				t.Errorf("Blocks(%d, %d) = %d, want %d", tt.n, tt.grain, Blocks(tt.n, tt.grain), len(got))
			}
		}
	}
}

func TestForEveryIterationOnce(t *testing.T) {
	setThreads(t, 4)
	counts := make([]int, 10_000)
	for range 200 {
		For(len(counts), 37, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				counts[i]++
			}
		})
	}
	for i, c := range counts {
		if c != 200 {
			t.Fatalf("iteration %d ran %d times in 200 loops", i, c)
		}
	}
}

// barrierBody returns a body that blocks until n calls of it are in progress.
func barrierBody(n int) func(lo, hi int) {
	var entered sync.WaitGroup
	entered.Add(n)
	return func(lo, hi int) {
		entered.Done()
		entered.Wait()
	}
}

func TestForUsesIdleWorkers(t *testing.T) {
	setThreads(t, 4)
	for range 50 {
		For(4, 1, barrierBody(4))
	}
}

func TestForNested(t *testing.T) {
	setThreads(t, 3)
	var sum atomic.Int64
	For(20, 1, func(lo, hi int) {
		For(50, 3, func(lo, hi int) {
			For(7, 2, func(lo, hi int) { sum.Add(int64(hi - lo)) })
		})
	})
	if got := sum.Load(); got != 20*17*7 {
		t.Errorf("nested loops ran %d iterations, want %d", got, 20*17*7)
	}
}

func TestForFromManyGoroutines(t *testing.T) {
	setThreads(t, 3)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for n := range 100 {
				total := 0
				parts := make([]int, Blocks(n, 3))
				For(n, 3, func(lo, hi int) { parts[lo/3] = hi - lo })
				for _, p := range parts {
					total += p
				}
				if total != n {
					t.Errorf("loop over %d ran %d iterations", n, total)
				}
			}
		})
	}
	wg.Wait()
}

func TestForPanicOnCaller(t *testing.T) {
	setThreads(t, 2)
	defer func() {
		if v := recover(); v != "boom" {
			t.Errorf("recovered %v, want boom", v)
		}
	}()
	caller := goroutineID()
	for range 1000 {
		For(64, 1, func(lo, hi int) {
			if goroutineID() == caller {
				panic("boom")
			}
		})
	}
}

func TestForPanicOnWorker(t *testing.T) {
	setThreads(t, 2)
	boom := errors.New("boom")
	defer func() {
		p, ok := recover().(*Panic)
		if !ok {
			t.Fatal("the caller does not panic with a *Panic")
		}
		if p.Value != boom || !errors.Is(p, boom) || len(p.Stack) == 0 { //nolint:errorlint // the identical value must arrive
			t.Errorf("panic is %v", p)
		}
		For(2, 1, barrierBody(2)) // the pool still works
	}()
	caller := goroutineID()
	barrier := barrierBody(2)
	For(2, 1, func(lo, hi int) {
		barrier(lo, hi)
		if goroutineID() != caller {
			panic(boom)
		}
	})
}

func TestSetThreads(t *testing.T) {
	setThreads(t, 1)
	before := runtime.NumGoroutine()
	if old := SetThreads(5); old != 1 {
		t.Errorf("SetThreads(5) = %d, want 1", old)
	}
	if Threads() != 5 {
		t.Errorf("Threads() = %d, want 5", Threads())
	}
	For(5, 1, barrierBody(5))
	SetThreads(1)
	// workers may not have ended yet
	for runtime.NumGoroutine() > before {
		runtime.Gosched()
	}
	SetThreads(0)
	if Threads() != runtime.GOMAXPROCS(0) {
		t.Errorf("SetThreads(0) gave %d threads, want GOMAXPROCS", Threads())
	}
}

func TestSetThreadsDuringLoops(t *testing.T) {
	setThreads(t, 2)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 100 {
			SetThreads(1 + i%4)
		}
	})
	for range 4 {
		wg.Go(func() {
			for range 200 {
				var sum atomic.Int64
				For(100, 1, func(lo, hi int) { sum.Add(1) })
				if sum.Load() != 100 {
					t.Errorf("a loop of 100 blocks ran %d", sum.Load())
				}
			}
		})
	}
	wg.Wait()
}

type emptyBody struct{ _ int }

func (*emptyBody) Range(lo, hi int) {}

// goroutineID returns the first line of the stack, which identifies the goroutine.
func goroutineID() string {
	var buf [32]byte
	n := runtime.Stack(buf[:], false)
	return string(buf[:n])
}

func BenchmarkRunEmpty(b *testing.B) {
	var body emptyBody
	for b.Loop() {
		Run(4, 1, &body)
	}
}

func BenchmarkRun20us(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprint("threads=", threads), func(b *testing.B) {
			setThreads(b, threads)
			var sink atomic.Int64
			for b.Loop() {
				For(4, 1, func(lo, hi int) {
					x := int64(lo)
					for i := range int64(20_000) {
						x ^= x<<1 + i
					}
					sink.Store(x)
				})
			}
		})
	}
}
