// Package membudget bounds the memory that the process takes for the requests of its clients.
//
// The operating system ends a process that uses more memory than there is, with all its sessions.
// So code that allocates memory for a request asks first ([Take], [Make], [Reserve]), and fails the
// request if the memory of the process would exceed its limit.
//
// The simple design is a counter of live bytes. It drifts: a tensor whose references leak is freed
// by the garbage collector, which tells no counter, and a string, a decoded message or the memory
// of the runtime itself is in no counter. So the package asks the Go runtime how much memory is in
// use, and counts only what was asked for since the last answer. A reading takes 2 µs. It is due
// when an eighth of what is left was taken, or after 10 ms, so a process that is far from its limit
// pays an atomic addition for each 256 KiB.
//
// Memory that is recycled by free lists is in use all the time, and is not asked for again.
//
// The limit belongs to the process, not to a server in it: all servers of a process share one heap,
// whose garbage belongs to none of them.
package membudget

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/mono"
)

const (
	// grain is the number of bytes that a shard collects before it adds them to the budget. 16
	// shards hold back at most 4 MiB.
	grain = 256 << 10
	// minReserved is the smallest allocation, in bytes, that is counted until it has been made: a
	// reading that comes between the request and the allocation would miss it.
	minReserved = 1 << 20
	// maxAge is the time after which a reading is repeated, because some memory is taken without
	// being asked for.
	maxAge = 10 * time.Millisecond
	// collectPause is the time between garbage collections that gained too little.
	collectPause = time.Second
	// reserveShare is the divisor of the part of the limit that is closed to large allocations. So
	// the small ones of other requests succeed while one request has taken all that it could.
	reserveShare = 16
	// growthShare is the divisor of the part of the limit that is closed to all but small tensors.
	// Tables, queues and loops that grow without end reach their limit and fail. What is left then
	// is for the tensors of other steps, which are freed soon.
	growthShare = 32
	// blindShare is the divisor of the part of the limit that may be taken while another goroutine
	// reads or collects garbage, which takes seconds in a large heap.
	blindShare = 128
)

// bloatShare is the divisor of the limit by which freed memory may exceed it before it is returned
// to the system.
const bloatShare = 64

// pressShare is the divisor of the part of the limit that has to be free for new sessions.
const pressShare = 20

// budget is the account of a process. It may be used concurrently.
type budget struct {
	limit    atomic.Int64 // bytes; 0 for none
	since    atomic.Int64 // bytes taken since the last reading
	due      atomic.Int64 // the next reading is due when since exceeds it
	read     atomic.Int64 // time of the last reading, mono.Nanos
	reserved atomic.Int64 // bytes that are about to be allocated
	room     atomic.Int64 // bytes of the limit that were free at the last reading

	// reads the memory in use, and what the process has mapped; replaced by tests
	used    func() (used, mapped int64)
	collect func() // collects garbage; replaced by tests

	refused atomic.Uint64 // requests for memory that there was not

	mu       sync.Mutex  // serializes readings
	pressed  atomic.Bool // the last reading found less than 1/pressShare left
	fruitful bool        // the last collection gained enough; guarded by mu
	last     int64       // time of the last collection, mono.Nanos; guarded by mu
	// bloated is whether the last reading found that the process has mapped more than its limit,
	// with memory that it has freed. The runtime returns such memory to the system when the heap
	// grows, but not while collections take half of the time, as on a busy machine: then only a
	// collection of the budget does. Guarded by mu.
	bloated bool
}

// process is the account of this process. There is one heap, so there is one account.
var process = newBudget()

func newBudget() *budget { return &budget{used: inUse, collect: collectGarbage, fruitful: true} }

// shards hold back small amounts, each on a cache line of its own.
var shards [16]struct {
	taken atomic.Int64
	_     [56]byte
}

// SetLimit sets the memory limit of the process in bytes; 0 removes it.
func SetLimit(bytes int64) { process.setLimit(bytes) }

// Limit returns the memory limit of the process in bytes; 0 for none.
func Limit() int64 { return process.limit.Load() }

// Refused returns the number of requests for memory that would have exceeded the limit.
func Refused() uint64 { return process.refused.Load() }

// Take asks for n bytes that the caller is about to allocate. It returns false if the process would
// exceed its limit, less the part that is for small tensors. What is freed later need not be
// reported.
func Take(n int64) bool {
	n, due := collectGrain(n)
	return n == 0 || due && process.take(n, growthShare)
}

// TakeRecord is Take for a small thing that stays on the task: a session, a graph, a name.
//
// Take counts small pieces together and refuses only one of them when there is no memory, so a
// client that makes small records would go on. TakeRecord counts each piece by itself once less
// than 1/pressShare of the limit is left. Before, it is as cheap as Take.
func TakeRecord(n int64) bool { return process.takePiece(n, growthShare) }

// AwaitRecord is TakeRecord that waits up to a second for memory, or until ctx ends: garbage that a
// large request has left is not collected at once. The caller holds no lock.
func AwaitRecord(ctx context.Context, n int64) bool {
	return TakeRecord(n) || poll(ctx, func() bool { return TakeRecord(n) })
}

// TakeSmall is TakeRecord for what is freed soon, such as the small message of a step that runs. It
// may use all of the limit. Unlike [Reserve] it does not wait.
func TakeSmall(n int64) bool { return process.takePiece(n, 0) }

// takePiece takes n bytes of all of the limit but a share; a share of 0 is none.
func (b *budget) takePiece(n, share int64) bool {
	bytes, ok := n, true
	if !b.pressed.Load() || n >= grain {
		bytes, ok = collectGrain(n)
	}
	return bytes == 0 || ok && b.take(bytes, share)
}

// collectGrain adds n bytes to a shard. It returns the bytes of the shard once they are a grain,
// and 0 before. It returns false if a failpoint refuses them.
func collectGrain(n int64) (bytes int64, ok bool) {
	if failpoint.Hit("membudget/take") != nil {
		return n, false
	}
	if n < grain {
		s := &shards[rand.Uint32()%uint32(len(shards))]
		if s.taken.Add(n) < grain {
			return 0, true
		}
		n = s.taken.Swap(0)
	}
	return n, true
}

// Reserve is Take for an allocation of n bytes that alloc makes. alloc is called only if Reserve
// returns true.
//
// It is for tensors. An allocation below 1 MiB may use all of the limit, and waits up to a second
// for memory: a step that has taken what there was fails meanwhile, and the steps of others go on.
func Reserve(n int64, alloc func()) bool {
	if n < minReserved {
		if bytes, ok := collectGrain(n); bytes > 0 && (!ok || !process.takeSmall(bytes)) {
			return false
		}
		alloc()
		return true
	}
	process.reserved.Add(n)
	defer process.reserved.Add(-n)
	if !process.takeLarge() {
		return false
	}
	alloc()
	process.since.Add(n)
	return true
}

// Hold asks for n bytes that are allocated until release is called, which the caller must do once,
// also by other goroutines. So two that ask for memory at the same time are not both promised what
// there is once. release is nil if there is not enough.
func Hold(n int64) (release func()) {
	if n < minReserved {
		if !Take(n) {
			return nil
		}
		return func() {}
	}
	process.reserved.Add(n)
	if !process.takeLarge() {
		process.reserved.Add(-n)
		return nil
	}
	return func() { process.reserved.Add(-n) }
}

// AwaitHold is Hold that waits up to a second for memory, or until ctx ends. It counts a small n as
// AwaitRecord does. The caller holds no lock.
func AwaitHold(ctx context.Context, n int64) (release func()) {
	if n < minReserved {
		if !AwaitRecord(ctx, n) {
			return nil
		}
		return func() {}
	}
	if release = Hold(n); release == nil {
		poll(ctx, func() bool {
			release = Hold(n)
			return release != nil
		})
	}
	return release
}

// Exceeded is the panic value of [Make]. The executor returns it as the error of the node.
type Exceeded struct{ Bytes int64 }

func (e *Exceeded) Error() string { return "out of memory" }

// Make returns a slice of n zero elements. It panics with an [*Exceeded] if there is no memory for
// it. It is for the scratch memory of kernels, on the goroutine that executes the kernel or in a
// loop of package parallel, which passes panics on.
func Make[T any, N ~int | ~int32 | ~int64](n N) []T {
	// a product could overflow; a negative n is large
	if uint64(n) <= uint64((minMade-1)/max(1, unsafe.Sizeof(*new(T)))) {
		return make([]T, n)
	}
	return makeLarge[T](int(n))
}

// MakeCap returns an empty slice with room for n elements. It panics as [Make] does.
func MakeCap[T any, N ~int | ~int32 | ~int64](n N) []T { return Make[T](n)[:0] }

func makeLarge[T any](n int) []T {
	var out []T
	size := int64(unsafe.Sizeof(*new(T)))
	if n < 0 || size > 0 && int64(n) > math.MaxInt64/size {
		panic(&Exceeded{math.MaxInt64})
	}
	if !Reserve(int64(n)*size, func() { out = make([]T, n) }) {
		panic(&Exceeded{int64(n) * size})
	}
	return out
}

// Append appends a value to s. It panics with an [*Exceeded] if s must grow and there is no memory.
// It is as fast as append where s need not grow.
func Append[T any](s []T, v T) []T {
	if len(s) == cap(s) {
		takeGrowth[T](2 * cap(s))
	}
	return append(s, v)
}

// AppendAll appends values to s, as [Append] does.
func AppendAll[T any](s []T, v ...T) []T {
	if n := len(s) + len(v); n > cap(s) {
		takeGrowth[T](max(n, 2*cap(s)))
	}
	return append(s, v...)
}

// takeGrowth asks for n elements of a slice that grows.
func takeGrowth[T any](n int) {
	if size := int64(n) * int64(unsafe.Sizeof(*new(T))); size >= minMade {
		MustTake(size)
	}
}

// minMade is the smallest slice, in bytes, that Make counts. The next reading finds smaller ones.
const minMade = 16 << 10

// MustTake is Take that panics with an [*Exceeded], as [Make] does. It is for memory that the
// caller allocates by other means, such as the text of strings.
func MustTake(n int64) {
	if !Take(n) {
		panic(&Exceeded{n})
	}
}

func (b *budget) setLimit(bytes int64) {
	b.limit.Store(bytes)
	b.due.Store(0)
	b.room.Store(bytes) // until the first reading
	b.pressed.Store(false)
}

// takeLarge reports whether the reserved bytes fit into the part of the limit that is open to large
// allocations.
func (b *budget) takeLarge() bool {
	limit := b.limit.Load()
	if limit == 0 || b.isEarly(limit/reserveShare) {
		return true
	}
	return b.admit(0, limit-limit/reserveShare)
}

// isEarly reports whether no reading is due, even if margin bytes more were taken.
func (b *budget) isEarly(margin int64) bool {
	return b.since.Load()+b.reserved.Load()+margin <= b.due.Load() && mono.Nanos()-b.read.Load() < int64(maxAge)
}

// take adds n bytes, and reports whether the process stays below its limit, less a share of it. A
// share of 0 is none.
func (b *budget) take(n, share int64) bool {
	limit := b.limit.Load()
	if limit == 0 {
		return true
	}
	b.since.Add(n)
	if b.isEarly(0) {
		return true
	}
	if share > 0 {
		limit -= limit / share
	}
	return b.admit(n, limit)
}

// takeSmall is take of all of the limit, which waits for memory. Kernels that allocate have no
// context.
func (b *budget) takeSmall(n int64) bool {
	return b.take(n, 0) || poll(context.Background(), func() bool { return b.take(n, 0) })
}

// admit reads how much memory is in use, and reports whether n bytes more are below the limit,
// after a garbage collection if need be.
func (b *budget) admit(n, limit int64) bool {
	if !b.mu.TryLock() {
		if b.passesBlind(n, limit) {
			return true // the next reading finds it
		}
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	fits := b.fits(n, limit)
	if fits && !b.bloated {
		return true
	}
	if now := mono.Nanos(); b.fruitful || now-b.last >= int64(collectPause) {
		b.collect()
		fits = b.fits(n, limit)
		b.fruitful, b.last = fits && !b.bloated, mono.Nanos()
	}
	if fits {
		return true
	}
	b.refused.Add(1)
	return false
}

// passesBlind reports whether n bytes may be taken up to limit while another goroutine reads or
// collects garbage. What stays, such as a record, has a lower limit than small tensors. The last
// reading must have found room for it: collections follow each other when little is left, and the
// records that pass during each of them would add up.
func (b *budget) passesBlind(n, limit int64) bool {
	all, taken := b.limit.Load(), b.since.Load()+n
	return n < minReserved && taken <= all/blindShare && (limit == all || taken <= b.room.Load()-(all-limit))
}

// fits reads how much memory is in use. The caller holds b.mu.
func (b *budget) fits(n, limit int64) bool {
	used, mapped := b.used()
	left := limit - used - b.reserved.Load() - n
	all := b.limit.Load()
	b.bloated = mapped > all+all/bloatShare
	b.pressed.Store(all-limit+left+n < all/pressShare)
	b.room.Store(all - limit + left + n)
	b.read.Store(mono.Nanos())
	b.since.Store(0)
	// In the part that is for small tensors each request reads: what a reading allows to them must
	// not let records pass.
	b.due.Store(max(0, min(left, all-all/growthShare-used)/8))
	return left >= 0
}

// A Meter counts memory that is taken in small pieces. It belongs to one goroutine.
type Meter struct{ pending int64 }

// meterGrain is the number of bytes that a meter collects before it asks for them.
const meterGrain = 64 << 10

// Take is the function [Take] for n bytes, delayed until many have been collected.
func (m *Meter) Take(n int) bool {
	m.pending += int64(n)
	if m.pending < meterGrain {
		return true
	}
	n, m.pending = int(m.pending), 0
	return Take(int64(n))
}

// MustTakeEntry asks for the memory of a new entry of a map, with n bytes that its key and value
// refer to. It panics as [Make] does.
func (m *Meter) MustTakeEntry(n int) { m.MustTake(mapEntry + n) }

// mapEntry is the memory of an entry of a map with small keys and values, in bytes: slots of 16 to
// 32 bytes, 7/16 of them used after a map has grown, and the smaller map that it grew from.
const mapEntry = 96

// MustTake is Take that panics with an [*Exceeded], as [Make] does.
func (m *Meter) MustTake(n int) {
	if !m.Take(n) {
		panic(&Exceeded{int64(n)})
	}
}

// Join is strings.Join, whose result it counts. It panics as [Make] does.
func (m *Meter) Join(parts []string, separator string) string {
	n := len(separator) * max(0, len(parts)-1)
	for _, s := range parts {
		n += len(s)
	}
	m.MustTake(n)
	return strings.Join(parts, separator)
}
