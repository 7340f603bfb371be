package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/test/hostile"
	"github.com/weft-ml/weft/status"
)

const (
	randomTime    = 8 * time.Second // the longest time of a call of a random program
	randomWorkers = 2               // programs that run side by side
	// randomBatch is the number of programs after which the memory of the server is looked at.
	randomBatch = 400
)

// randomRun sends random programs to one server after the other.
type randomRun struct {
	target   *target
	g        *hostile.Generator
	seed     uint64
	only     bool   // one program, whose graph is printed
	dump     bool   // end a server that stalls the neighbor, for the stacks of its goroutines
	keep     string // folder for programs that have ended a server
	failed   int
	programs int

	mu      sync.Mutex
	codes   map[status.Code]int // guarded by mu; outcomes of steps
	running map[uint64]bool     // guarded by mu; programs that run now
	over    bool                // guarded by mu; the server has taken more memory than it may
}

// runRandom runs the random programs of a seed for a time, from number first, or only that one. It
// returns the number of faults.
func runRandom(ctx context.Context, r *randomRun, first uint64, d time.Duration) int {
	g, err := hostile.NewGenerator(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	r.g, r.codes, r.running = g, map[status.Code]int{}, map[uint64]bool{}
	for next := first; ctx.Err() == nil; {
		next = r.batch(ctx, next)
		if r.only {
			break
		}
	}
	fmt.Fprintf(os.Stdout, "seed %d: %d programs, %d faults\n", r.seed, r.programs, r.failed)
	for _, code := range slices.Sorted(maps.Keys(r.codes)) {
		fmt.Fprintf(os.Stdout, "%8d %v\n", r.codes[code], code)
	}
	return r.failed
}

// fault reports what a server has done wrong, with the programs that may be the reason.
func (r *randomRun) fault(programs []uint64, format string, args ...any) {
	r.failed++
	fmt.Fprintf(os.Stdout, "FAIL seed %d, programs %v: %s\n", r.seed, programs, fmt.Sprintf(format, args...))
	if r.keep == "" {
		return
	}
	for _, n := range programs {
		p := r.g.Program(r.seed, n)
		data, err := proto.Marshal(p.Graph)
		if err == nil {
			err = os.WriteFile(filepath.Join(r.keep, fmt.Sprintf("hostile-%d-%d.pb", r.seed, n)), data, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// batch runs programs against a server of its own, and returns the number of the next one.
func (r *randomRun) batch(ctx context.Context, first uint64) uint64 {
	begin := time.Now()
	dir, err := os.MkdirTemp("", "weft-hostile")
	if err != nil {
		r.fault(nil, "%v", err)
		return first + 1
	}
	defer os.RemoveAll(dir)
	s, err := startServer(r.target, fmt.Sprint("random", first), []string{"--file-root=files=" + dir})
	if err != nil {
		r.fault(nil, "starting the server: %v", err)
		return first + 1
	}
	defer s.stop()
	n, err := startNeighbor(context.WithoutCancel(ctx), s.address)
	if err != nil {
		r.fault(nil, "the neighbor: %v", err)
		return first + 1
	}
	watch, endWatch := context.WithCancel(ctx)
	defer endWatch()
	if r.dump {
		go r.dumpStalled(watch, s, n)
	}
	last := first + randomBatch
	if r.only {
		last = first + 1
	}
	var next atomic.Uint64
	next.Store(first)
	var workers sync.WaitGroup
	for range randomWorkers {
		workers.Go(func() {
			for ctx.Err() == nil && !s.isOver() {
				number := next.Add(1) - 1
				if number >= last {
					return
				}
				r.one(ctx, s, number)
			}
		})
	}
	workers.Wait()
	endWatch()
	done := min(next.Load(), last)
	r.programs += int(done - first)
	p99 := n.takeP99()
	longest := n.longest()
	err = n.stop()
	if s.hasEnded() {
		r.fault(r.suspects(done), "the server ended: %s", s.reason())
		clear(r.running)
		return done
	}
	if err != nil {
		r.fault(r.suspects(done), "the neighbor: %v", err)
	}
	clear(r.running)
	if err := reset(context.WithoutCancel(ctx), s.address); err != nil {
		r.fault(nil, "afterwards: %v", err)
	}
	left := s.settle(ctx)
	if longest > neighborStall {
		r.fault(nil, "a step of the neighbor took %v", longest)
	}
	if left > leftLimit && ctx.Err() == nil {
		r.fault(nil, "%d MiB are left", left>>20)
	}
	r.over = false
	fmt.Fprintf(os.Stdout, "programs %d to %d: %.0f s, peak %d MiB, left %d MiB, neighbor p99 %.1f ms, longest %.1f ms\n",
		first, done-1, time.Since(begin).Seconds(), s.peak()>>20, left>>20, ms(p99), ms(longest))
	return done
}

// dumpStalled makes a server print the stacks of its goroutines and end, when a step of the
// neighbor takes half of the time that it may, or when little of the memory group is left.
func (r *randomRun) dumpStalled(ctx context.Context, s *server, n *neighbor) {
	for ctx.Err() == nil && !s.isOver() {
		pause(ctx, 10*time.Millisecond)
		stalled := time.Since(time.Unix(0, n.begin.Load())) > neighborStall/2
		if ctx.Err() == nil && (stalled || s.resident() > r.target.memory/100*93) {
			_ = s.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
			<-s.ended
			fmt.Fprintln(os.Stdout, s.log.String())
			return
		}
	}
}

// isOver reports whether the server has ended by itself, without waiting for it.
func (s *server) isOver() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// suspects returns the programs that ran when the server ended.
func (r *randomRun) suspects(next uint64) []uint64 {
	out := slices.Sorted(maps.Keys(r.running))
	if len(out) == 0 && next > 0 {
		out = []uint64{next - 1}
	}
	return out
}

// one runs a program.
func (r *randomRun) one(ctx context.Context, s *server, number uint64) {
	p := r.g.Program(r.seed, number)
	r.mu.Lock()
	r.running[number] = true
	r.mu.Unlock()
	if r.only {
		fmt.Fprintf(os.Stdout, "%s\n%s\n", strings.Join(p.Changes, "\n"), p.Graph)
	}
	err := r.run(ctx, s, p, number)
	if s.isOver() || ctx.Err() != nil {
		return // it remains among those that run
	}
	if r.only || os.Getenv("HOSTILE_V") != "" && err != nil {
		fmt.Fprintf(os.Stdout, "outcome: %v %.300v\n", status.CodeOf(err), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && s.peak() > r.target.memory {
		r.over = true
		r.fault(slices.Sorted(maps.Keys(r.running)), "%d MiB were resident", s.peak()>>20)
	}
	delete(r.running, number)
	r.codes[status.CodeOf(err)]++
}

func (r *randomRun) run(ctx context.Context, s *server, p *hostile.Program, number uint64) error {
	c, err := dial(ctx, s.address)
	if err != nil {
		return err
	}
	defer c.close()
	switch number % 8 {
	case 0, 1:
		return c.eager(p, number)
	case 2:
		return c.damaged(r.g, r.seed, number)
	}
	return c.program(p)
}
