package membudget

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
)

// testBudget returns a budget of 1 GiB for a process that uses as much as the returned pointer
// says. A collection reduces it to live.
func testBudget(live int64) (b *budget, inUse *int64, collections *int) {
	b, inUse, collections = newBudget(), new(int64), new(int)
	b.used = func() (used, mapped int64) { return *inUse, *inUse }
	b.collect = func() { *inUse = min(*inUse, live); *collections++ }
	b.setLimit(1 << 30)
	return b, inUse, collections
}

func TestLimit(t *testing.T) {
	b, inUse, _ := testBudget(1 << 40)
	const piece = 1 << 20
	taken := 0
	for b.take(piece, 0) {
		*inUse += piece
		taken++
	}
	if taken < 1020 || taken > 1024 {
		t.Errorf("%d MiB are taken of 1024", taken)
	}
	if b.take(piece, 0) {
		t.Error("more is taken than there is")
	}
	*inUse -= 100 * piece
	if !b.take(piece, 0) {
		t.Error("nothing is taken after memory was given back")
	}
}

// Memory that was not asked for counts, at the latest maxAge after it was taken.
func TestMemoryThatIsNotAskedFor(t *testing.T) {
	b, inUse, _ := testBudget(1 << 40)
	if !b.take(1, 0) {
		t.Fatal("nothing is taken")
	}
	*inUse = 2 << 30
	for begin := mono.Nanos(); b.take(1, 0); {
		if mono.Nanos()-begin > int64(10*maxAge) {
			t.Fatal("the memory was not found")
		}
	}
}

// A collection that gains enough may be repeated at once, and another one only after collectPause.
func TestCollections(t *testing.T) {
	b, inUse, collections := testBudget(1 << 29)
	for i := range 3 {
		*inUse = 1 << 30
		b.due.Store(0)
		if !b.take(1<<20, 0) || *collections != i+1 {
			t.Errorf("garbage: %d collections, want %d", *collections, i+1)
		}
	}
	b, inUse, collections = testBudget(1 << 30)
	*inUse = 1 << 30
	for range 3 {
		if b.take(1<<20, 0) {
			t.Error("more is taken than there is")
		}
	}
	if *collections != 1 {
		t.Errorf("no garbage: %d collections, want 1", *collections)
	}
}

// Freed memory that the process keeps beyond its limit is returned to the system.
func TestBloat(t *testing.T) {
	b, inUse, collections := testBudget(1 << 40)
	*inUse = 1 << 29
	mapped := int64(1<<30 + 1<<25)
	b.used = func() (used, all int64) { return *inUse, mapped }
	b.collect = func() { *collections++; mapped = *inUse }
	for range 3 {
		b.due.Store(0)
		if !b.take(1<<20, 0) || *collections != 1 {
			t.Fatalf("%d collections, want 1", *collections)
		}
	}
	mapped = 1<<30 + 1<<25
	b.collect = func() { *collections++ }
	for range 3 {
		b.due.Store(0)
		if !b.take(1<<20, 0) || *collections != 2 {
			t.Fatalf("memory that is not returned: %d collections, want 2", *collections)
		}
	}
}

// What grows leaves memory for the small tensors of others, which wait for more.
func TestGrowthLeavesMemory(t *testing.T) {
	b, inUse, _ := testBudget(1 << 40)
	const piece = 1 << 18
	for b.take(piece, growthShare) {
		*inUse += piece
	}
	if *inUse < 1<<30-1<<30/growthShare-piece || *inUse > 1<<30-1<<30/growthShare {
		t.Errorf("%d MiB are taken", *inUse>>20)
	}
	if !b.takeSmall(piece) {
		t.Error("nothing is left for a small tensor")
	}
	*inUse = 1 << 30
	var mu sync.Mutex // guards inUse
	b.used = func() (used, mapped int64) {
		mu.Lock()
		defer mu.Unlock()
		return *inUse, *inUse
	}
	time.AfterFunc(100*time.Millisecond, func() {
		mu.Lock()
		defer mu.Unlock()
		*inUse = 1 << 29
	})
	b.since.Store(1 << 30)
	if !b.takeSmall(piece) {
		t.Error("a small tensor does not wait for memory")
	}
}

// While a goroutine collects garbage, another one takes a little memory without waiting.
func TestTakeDuringCollection(t *testing.T) {
	b, inUse, _ := testBudget(1 << 29)
	*inUse = 1 << 30
	collecting, done := make(chan struct{}), make(chan struct{})
	b.collect = func() {
		close(collecting)
		<-done
	}
	var ended sync.WaitGroup
	ended.Go(func() { b.take(1, 0) })
	<-collecting
	b.since.Store(0)
	b.due.Store(-1)
	if !b.take(1<<10, 0) {
		t.Error("1 KiB is refused during a collection")
	}
	close(done)
	ended.Wait()
}

func TestNoLimit(t *testing.T) {
	b, inUse, collections := testBudget(0)
	b.setLimit(0)
	*inUse = 1 << 40
	if !b.take(1<<40, 0) || *collections > 0 {
		t.Error("a process without a limit cannot take memory")
	}
}

func TestMake(t *testing.T) {
	defer SetLimit(Limit())
	used, _ := inUse()
	SetLimit(used + 64<<20)
	if got := Make[int32](1 << 20); len(got) != 1<<20 {
		t.Errorf("%d elements", len(got))
	}
	for _, n := range []int{1 << 30, 1 << 60, 1 << 61, 1<<61 + 1, 1<<63 - 1, -1} {
		func() {
			defer func() {
				err, _ := recover().(error)
				if over, ok := errors.AsType[*Exceeded](err); !ok {
					t.Errorf("%d elements: panic with %v, %v", n, err, over)
				}
			}()
			_ = Make[int64](n)
		}()
	}
	if got := MakeCap[byte](int64(100)); len(got) != 0 || cap(got) != 100 {
		t.Errorf("%d elements, room for %d", len(got), cap(got))
	}
}

func TestAppend(t *testing.T) {
	var s []int
	for i := range 10_000 {
		s = Append(s, i)
	}
	if len(s) != 10_000 || s[9_999] != 9_999 {
		t.Error("elements are missing")
	}
}

func TestMeter(t *testing.T) {
	var m Meter
	if got := m.Join([]string{"a", "b", ""}, "-"); got != "a-b-" {
		t.Errorf("got %q", got)
	}
	if m.pending != 4 {
		t.Errorf("%d bytes are counted, want 4", m.pending)
	}
}

func BenchmarkTake(b *testing.B) {
	defer SetLimit(Limit())
	SetLimit(1 << 40)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			Take(1000)
		}
	})
}

func BenchmarkReading(b *testing.B) {
	for b.Loop() {
		inUse()
	}
}

// Small pieces are counted together while there is memory, and one by one when little is left. So
// not one more of them passes.
func TestPieces(t *testing.T) {
	b, inUse, _ := testBudget(1 << 40)
	*inUse = 1<<30 - 1<<30/growthShare + 1
	for range 2 { // the first reading finds that little is left
		b.take(grain, growthShare)
	}
	for range 100 {
		if b.takePiece(100, growthShare) {
			t.Fatal("a record is kept of the memory that is for steps")
		}
		if !b.takePiece(100, 0) {
			t.Fatal("a step cannot use what is left")
		}
	}
	*inUse = 1 << 30
	b.due.Store(0)
	for range 100 {
		if b.takePiece(100, 0) {
			t.Fatal("more is taken than there is")
		}
	}
	*inUse = 1 << 20
	if !b.takePiece(100, growthShare) || !b.takePiece(100, 0) {
		t.Error("nothing is taken after memory was given back")
	}
	if b.pressed.Load() {
		t.Error("pieces are still counted one by one")
	}
}

// While another goroutine reads, records pass only if the last reading has found room for them.
func TestBlind(t *testing.T) {
	b, inUse, _ := testBudget(1 << 40)
	records := int64(1<<30 - 1<<30/growthShare)
	if !b.passesBlind(100, records) {
		t.Error("nothing passes before the first reading")
	}
	for _, tt := range []struct {
		used    int64
		records bool
	}{{1 << 29, true}, {records + 1, false}, {1 << 30, false}} {
		*inUse = tt.used
		b.due.Store(0)
		b.take(1, growthShare)
		b.since.Store(0)
		if got := b.passesBlind(100, records); got != tt.records {
			t.Errorf("%d bytes in use: a record passes: %v", tt.used, got)
		}
		if !b.passesBlind(100, 1<<30) {
			t.Errorf("%d bytes in use: a small tensor waits", tt.used)
		}
	}
}

func BenchmarkTakeRecord(b *testing.B) {
	defer SetLimit(Limit())
	SetLimit(1 << 40)
	for b.Loop() {
		TakeRecord(500)
	}
}
