package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// source gives regions of a device that has so much memory.
type source struct {
	memory  int
	last    uintptr
	regions map[uintptr]int
	sizes   []int // of all regions so far
}

func (s *source) Alloc(size int) (driver.Mem, error) {
	if size > s.memory {
		return driver.Mem{}, driver.ErrOutOfMemory
	}
	s.memory -= size
	s.last++
	if s.regions == nil {
		s.regions = map[uintptr]int{}
	}
	s.regions[s.last] = size
	s.sizes = append(s.sizes, size)
	return driver.Mem{Base: s.last, Size: size}, nil
}

func (s *source) Free(m driver.Mem) error {
	if s.regions[m.Base] != m.Size || m.Off != 0 {
		return fmt.Errorf("%+v is no region", m)
	}
	s.memory += m.Size
	delete(s.regions, m.Base)
	return nil
}

const mib = 1 << 20

func alloc(t *testing.T, p *Pool, size int) driver.Mem {
	t.Helper()
	m, err := p.TryAlloc(size)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// check verifies that chunks fill their regions, that bins have exactly the free ones, that no two
// free chunks are neighbours, and that the statistics agree.
func (p *Pool) check(t *testing.T) {
	t.Helper()
	free, used, inUse, reserved := 0, 0, 0, 0
	for _, first := range p.regions {
		end := 0
		for c := first; c != nil; c = c.next {
			if c.mem.Off != end || c.mem.Size%Granule != 0 || c.mem.Size <= 0 || c.mem.Base != first.mem.Base {
				t.Fatalf("chunk %+v, where the chunk before ends at %d", c.mem, end)
			}
			end += c.mem.Size
			if c.next != nil && (c.next.prev != c || c.asked == 0 && c.next.asked == 0) {
				t.Fatalf("chunk %+v and the next are not linked, or both free", c.mem)
			}
			if c.asked > 0 {
				used++
				inUse += c.mem.Size
				if p.used[place{c.mem.Base, c.mem.Off}] != c {
					t.Fatalf("chunk %+v is not found", c.mem)
				}
				continue
			}
			free++
			if !slices.Contains(p.bins[binOf(c.mem.Size)], c) {
				t.Fatalf("chunk %+v is in no bin", c.mem)
			}
		}
		reserved += end
	}
	inBins := 0
	for _, b := range p.bins {
		inBins += len(b)
		if !slices.IsSortedFunc(b, order) {
			t.Fatal("a bin is not sorted")
		}
	}
	if s := p.stats; inBins != free || used != len(p.used) || s.InUse != int64(inUse) || s.Reserved != int64(reserved) || s.InUse > s.PeakInUse {
		t.Fatalf("%d chunks in bins, %d free; %d of %d used; %+v", inBins, free, used, len(p.used), s)
	}
}

func TestSizesAreRounded(t *testing.T) {
	p := New(&source{memory: mib}, Options{Limit: mib})
	a, b := alloc(t, p, 1), alloc(t, p, 257)
	if a != (driver.Mem{Base: 1, Size: 1}) || b != (driver.Mem{Base: 1, Off: 256, Size: 257}) {
		t.Errorf("%+v, %+v", a, b)
	}
	if c := alloc(t, p, 256); c.Off != 768 {
		t.Errorf("%+v", c)
	}
	if m := alloc(t, p, 0); m != (driver.Mem{}) {
		t.Errorf("no bytes: %+v", m)
	}
	p.Free(driver.Mem{})
	p.check(t)
}

func TestBestFitAndJoin(t *testing.T) {
	p := New(&source{memory: mib}, Options{Limit: mib})
	var m []driver.Mem
	for _, size := range []int{1024, 256, 512, 256, 768, 256} {
		m = append(m, alloc(t, p, size))
	}
	p.Free(m[0])
	p.Free(m[2])
	p.Free(m[4])
	if got := alloc(t, p, 600); got.Off != m[4].Off {
		t.Errorf("600 bytes are at %d, and not in the piece of 768 at %d", got.Off, m[4].Off)
	}
	if got := alloc(t, p, 512); got.Off != m[2].Off {
		t.Errorf("512 bytes are at %d", got.Off)
	}
	p.Free(m[1]) // between a free and a used chunk
	if got := alloc(t, p, 1280); got.Off != 0 {
		t.Errorf("joined chunk: %+v", got)
	}
	p.check(t)
}

func TestRegions(t *testing.T) {
	for name, tt := range map[string]struct {
		o      Options
		memory int
		allocs []int
		want   []int
	}{
		"all at once":          {Options{Limit: 100 * mib}, 100 * mib, []int{1}, []int{100 * mib}},
		"limit is rounded":     {Options{Limit: mib + 100}, 100 * mib, []int{1}, []int{mib}},
		"growth":               {Options{Limit: 100 * mib, Growth: true}, 100 * mib, []int{1, 2 * mib, 4 * mib, mib}, []int{2 * mib, 4 * mib, 8 * mib}},
		"growth to a size":     {Options{Limit: 100 * mib, Growth: true}, 100 * mib, []int{33 * mib, 40 * mib}, []int{64 * mib, 36 * mib}},
		"less is there":        {Options{Limit: 100 * mib}, 80 * mib, []int{1}, []int{76441344}},
		"largest":              {Options{Limit: 100 * mib, Largest: 40 * mib}, 100 * mib, []int{30 * mib, 30 * mib, 15 * mib}, []int{40 * mib, 40 * mib, 20 * mib}},
		"limit in small steps": {Options{Limit: 3 * mib, Growth: true}, 100 * mib, []int{2 * mib, 512}, []int{2 * mib, mib}},
	} {
		s := &source{memory: tt.memory}
		p := New(s, tt.o)
		for _, size := range tt.allocs[:len(tt.allocs)-1] {
			alloc(t, p, size)
		}
		_, err := p.TryAlloc(tt.allocs[len(tt.allocs)-1])
		if name == "growth to a size" {
			if !errors.Is(err, driver.ErrOutOfMemory) {
				t.Errorf("%s: %v", name, err)
			}
			alloc(t, p, 36*mib)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(s.sizes, tt.want) {
			t.Errorf("%s: regions of %v, want %v", name, s.sizes, tt.want)
		}
		p.check(t)
	}
}

func TestUnusedRegionsAreReclaimed(t *testing.T) {
	s := &source{memory: 16 * mib}
	p := New(s, Options{Limit: 16 * mib, Growth: true})
	a, b := alloc(t, p, 2*mib), alloc(t, p, 4*mib)
	p.Free(a)
	p.Free(b)
	if m := alloc(t, p, 15*mib); m.Size != 15*mib || len(s.regions) != 1 {
		t.Errorf("%+v, %d regions", m, len(s.regions))
	}
	p.check(t)
}

func TestErrors(t *testing.T) {
	p := New(&source{memory: mib}, Options{Name: "GPU_0_bfc", Limit: mib})
	m := alloc(t, p, 400<<10)
	_, err := p.TryAlloc(700 << 10)
	const want = "pool GPU_0_bfc: 716800 bytes: 409600 of 1048576 are in use, the largest free piece has 638976: out of device memory"
	if err == nil || err.Error() != want || !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := p.Alloc(t.Context(), 2*mib); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("more than the limit: %v", err)
	}
	if _, err := p.TryAlloc(-1); err == nil {
		t.Error("a negative size is accepted")
	}
	if err := p.Close(); err == nil {
		t.Error("closed with memory in use")
	}
	p.Free(m)
	func() {
		defer func() {
			if p := recover(); p == nil || !strings.Contains(p.(string), "not in use") {
				t.Errorf("a second Free: %v", p)
			}
		}()
		p.Free(m)
	}()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestAllocWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(&source{memory: mib}, Options{Limit: mib, Retry: DefaultRetry})
		m := alloc(t, p, mib)
		start := time.Now()
		if _, err := p.Alloc(t.Context(), 512); !errors.Is(err, driver.ErrOutOfMemory) || time.Since(start) != DefaultRetry {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.AfterFunc(3*time.Second, func() { p.Free(m) })
		start = time.Now()
		if _, err := p.Alloc(t.Context(), 512); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Alloc(ctx, mib); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled: %v", err)
		}
		if s := p.Stats(); s.Waits != 3 || s.Allocs != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestStats(t *testing.T) {
	p := New(&source{memory: mib}, Options{Name: "GPU_1_bfc", Limit: mib})
	a := alloc(t, p, 1000)
	b := alloc(t, p, 300)
	p.Free(a)
	want := Stats{Allocs: 2, InUse: 512, PeakInUse: 1536, LargestAlloc: 1024, Limit: mib, Reserved: mib, PeakReserved: mib, LargestFree: mib - 1536}
	if got := p.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	p.ResetPeak()
	if got := p.Stats().PeakInUse; got != 512 {
		t.Errorf("peak %d", got)
	}
	for _, line := range []string{"GPU_1_bfc: chunks from 512 bytes: 1 of 1 in use, 512 of 512 bytes, 300 asked for\n", "1 regions with 1048576 bytes"} {
		if dump := p.Dump(); !strings.Contains(dump, line) {
			t.Errorf("no %q in:\n%s", line, dump)
		}
	}
	p.Free(b)
}

// TestRandomPrograms allocates and frees at random, and compares with a map of who owns which byte.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit := (1 + r.IntN(64)) << 16
		s := &source{memory: limit * (1 + r.IntN(2)) / (1 + r.IntN(2))}
		o := Options{Limit: int64(limit), Growth: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			o.Largest = int64(limit / (1 + r.IntN(4)))
		}
		p := New(s, o)
		var held []driver.Mem
		failed := 0
		for range 400 {
			if len(held) > 0 && r.IntN(5) < 2 {
				i := r.IntN(len(held))
				p.Free(held[i])
				held = slices.Delete(held, i, i+1)
				continue
			}
			size := 1 + r.IntN(1<<(4+r.IntN(14)))
			m, err := p.TryAlloc(size)
			if err != nil {
				failed++
				continue
			}
			for _, h := range held {
				if m.Base == h.Base && m.Off < h.Off+h.Size && h.Off < m.Off+m.Size {
					t.Fatalf("seed %d: %+v and %+v overlap", seed, m, h)
				}
			}
			if m.Size != size || m.Off%Granule != 0 || m.Off+m.Size > s.regions[m.Base] {
				t.Fatalf("seed %d: %d bytes: %+v", seed, size, m)
			}
			held = append(held, m)
			p.check(t)
		}
		for _, m := range held {
			p.Free(m)
		}
		p.check(t)
		if st := p.Stats(); st.InUse != 0 || int(st.Allocs)+failed > 400 || st.Reserved > st.Limit {
			t.Fatalf("seed %d: %+v", seed, st)
		}
		if err := p.Close(); err != nil || len(s.regions) > 0 {
			t.Fatalf("seed %d: %v, %d regions are left", seed, err, len(s.regions))
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	p := New(&source{memory: mib}, Options{Limit: mib, Retry: time.Minute})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 200 {
				m, err := p.Alloc(t.Context(), 1+(w*977+i*131)%200_000)
				if err != nil {
					t.Error(err)
					return
				}
				p.Free(m)
			}
		})
	}
	wg.Wait()
	p.check(t)
}

func BenchmarkAllocFree(b *testing.B) {
	p := New(&source{memory: 64 * mib}, Options{Limit: 64 * mib})
	var held [64]driver.Mem
	for i := 0; b.Loop(); i++ {
		p.Free(held[i%64])
		held[i%64], _ = p.TryAlloc(1 + i*7919%300_000)
	}
}
