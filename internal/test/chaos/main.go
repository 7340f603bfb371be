// Command chaos trains on a cluster of processes while it kills, stops and starves them, and checks
// that nothing was lost or doubled:
//
//	go run ./internal/test/chaos -weft bin/weft-failpoints -seed 1 -duration 30m
//
// Each task is reached through a proxy in this process, which cuts, slows and swallows bytes. Two
// synchronous training programs, in the way of SyncReplicasOptimizer, go on from their checkpoints.
// Four clients use a counter and a queue, whose histories are checked for linearizability.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weft-ml/weft/cluster"
)

func main() {
	var c chaos
	flag.StringVar(&c.weft, "weft", "bin/weft-failpoints", "program, built with -tags failpoints")
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()), "seed of the faults")
	flag.DurationVar(&c.duration, "duration", 10*time.Minute, "time during which faults happen")
	flag.StringVar(&c.dir, "dir", "", "folder for logs and checkpoints; a temporary one if empty")
	flag.StringVar(&c.only, "only", "", "names of the faults, separated by commas; all if empty")
	flag.IntVar(&c.count, "count", 0, "number of faults; 0 for as many as the duration allows")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c.out = os.Stdout
	err := c.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

type chaos struct {
	weft, dir, only string
	seed            uint64
	duration        time.Duration
	count           int

	out      io.Writer
	log      *slog.Logger
	tasks    map[cluster.Task]*process
	training *training
	clients  *clients
	recovery map[string][]time.Duration // from the end of a fault, by its name

	mu   sync.Mutex
	died []string // processes that ended although no fault has ended them; guarded by mu
}

// processDied notes a process that no fault has ended, and ends the run.
func (c *chaos) processDied(how string, end context.CancelCauseFunc) {
	c.log.Error("a process died", "how", how)
	c.mu.Lock()
	c.died = append(c.died, how)
	c.mu.Unlock()
	end(errors.New(how))
}

// deaths returns an error if processes died that no fault has ended.
func (c *chaos) deaths() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.died) == 0 {
		return nil
	}
	return errors.New(strings.Join(c.died, "\n"))
}

func (c *chaos) run(ctx context.Context) (err error) {
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "weft-chaos-"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				os.RemoveAll(c.dir)
			}
		}()
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "seed %d, %v, logs in %s\n", c.seed, c.duration, c.dir)
	log, err := os.Create(filepath.Join(c.dir, "chaos.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c.log = slog.New(slog.NewTextHandler(log, nil))
	c.recovery = map[string][]time.Duration{}
	if c.tasks, err = newTasks(c.weft, c.dir, map[string]int{"ps": 2, "worker": 2}); err != nil {
		return err
	}
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer c.stop()
	for _, p := range c.tasks {
		p.died = func(_ *process, how string) { c.processDied(how, abort) }
		if err := p.start(""); err != nil {
			return err
		}
	}
	spec, err := cluster.Parse(c.tasks[cluster.Task{Job: "ps"}].spec)
	if err != nil {
		return err
	}
	targets := []string{"grpc://" + spec["worker"][0], "grpc://" + spec["worker"][1]}
	c.training = &training{spec: spec, targets: targets, dir: filepath.Join(c.dir, "checkpoints"), log: c.log}
	c.clients = &clients{targets: targets, log: c.log, clearing: &c.training.clearing}

	working, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	for i := range targets {
		running.Go(func() { c.training.run(working, i) })
	}
	running.Go(func() { c.clients.run(working) })
	err = c.faults(ctx)
	if _, ok := c.recovered(ctx, 2*time.Minute); !ok && err == nil {
		err = fmt.Errorf("no steps any more after the last fault")
	}
	end()
	running.Wait()
	if died := c.deaths(); died != nil {
		return died // what follows from it is not reported
	}
	if err != nil {
		return err
	}
	return c.report(ctx)
}

// faults makes faults until their time or number is over.
func (c *chaos) faults(ctx context.Context) error {
	if _, ok := c.recovered(ctx, 2*time.Minute); !ok {
		return fmt.Errorf("training does not begin")
	}
	from := slices.DeleteFunc(slices.Clone(events), func(e event) bool {
		return c.only != "" && !slices.Contains(strings.Split(c.only, ","), e.name)
	})
	r := rand.New(rand.NewPCG(c.seed, 0))
	names := make([]cluster.Task, 0, len(c.tasks))
	for t := range c.tasks {
		names = append(names, t)
	}
	slices.SortFunc(names, func(a, b cluster.Task) int { return strings.Compare(a.String(), b.String()) })
	end := time.Now().Add(c.duration)
	for n := 0; time.Now().Before(end) && ctx.Err() == nil && (c.count == 0 || n < c.count); n++ {
		e, p := pick(r, from), c.tasks[names[r.IntN(len(names))]]
		c.log.Info("fault", "number", n, "name", e.name, "task", p.task)
		if err := e.do(ctx, p, r); err != nil {
			return fmt.Errorf("%s of %v: %w", e.name, p.task, err)
		}
		// half of the faults hit a cluster that has not recovered from the last one
		if r.IntN(2) == 0 || c.count > 0 {
			took, ok := c.recovered(ctx, 3*time.Minute)
			if !ok && ctx.Err() == nil {
				return fmt.Errorf("no recovery within 3 minutes after %s of %v (fault %d)", e.name, p.task, n)
			}
			c.recovery[e.name] = append(c.recovery[e.name], took)
			c.log.Info("recovered", "number", n, "after", took)
		} else {
			c.recovery[e.name] = append(c.recovery[e.name], -1)
		}
		pause(ctx, time.Duration(r.IntN(1000))*time.Millisecond)
	}
	return nil
}

// recovered waits until both the training and the clients have made a step that ended after now.
func (c *chaos) recovered(ctx context.Context, limit time.Duration) (time.Duration, bool) {
	start := time.Now()
	for time.Since(start) < limit && ctx.Err() == nil {
		if c.training.last.Load() > start.UnixNano() && c.clients.last.Load() > start.UnixNano() {
			return time.Since(start), true
		}
		pause(ctx, 10*time.Millisecond)
	}
	return time.Since(start), false
}

// report prints what has happened, and returns an error if something is wrong.
func (c *chaos) report(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var all []time.Duration
	total := 0
	for _, e := range events {
		times := c.recovery[e.name]
		total += len(times)
		known := slices.DeleteFunc(slices.Clone(times), func(d time.Duration) bool { return d < 0 })
		all = append(all, known...)
		if len(times) > 0 {
			fmt.Fprintf(c.out, "%-10s %4d  recovery %s\n", e.name, len(times), percentiles(known))
		}
	}
	fmt.Fprintf(c.out, "%-10s %4d  recovery %s\n", "all", total, percentiles(all))
	steps, drift, err := c.training.check(ctx)
	if err != nil {
		return fmt.Errorf("reading the result of training: %w", err)
	}
	t, k := c.training, c.clients
	fmt.Fprintf(c.out, "training: global step %d, %d steps of the chief, %d programs started again, %d sessions of the chief, %d resets; the variable is %d steps off\n",
		steps, t.steps.Load(), t.restarts.Load(), t.restores.Load(), t.resets.Load(), drift)
	fmt.Fprintf(c.out, "clients: %d operations, %d with an unknown outcome, %d epochs, %d with a reset, %d histories checked, %d too hard to check, %d wrong\n",
		k.ops.Load(), k.unknown.Load(), k.epochs.Load(), k.skipped.Load(), k.checked.Load(), k.open.Load(), len(k.broken))
	if len(k.broken) > 0 {
		return fmt.Errorf("%s", strings.Join(k.broken, "\n"))
	}
	if least, most := driftBounds(t.restores.Load()); drift < least || drift > most {
		return fmt.Errorf("the variable is %d steps off the global step; with %d sessions of the chief it is between %d and %d", drift, t.restores.Load(), least, most)
	}
	return nil
}

// driftBounds returns by how many steps the variable may be ahead of the global step after a number
// of sessions of the chief. An update adds to the variable first and to the global step then. Both
// belong to one step of the session, but to no transaction, as in TensorFlow. So
//
//   - a session that ends during an update leaves the variable one step ahead. That includes the
//     last one, which the end of the run cancels;
//   - a checkpoint reads the two one after the other. If an update falls between, the session that
//     restores it begins with one of them a step further. The first session restores none.
//
// A step that is made twice or lost has no such bound: it shows when faults are many and sessions
// few, and in the histories of the clients, which are exact.
func driftBounds(sessions int64) (least, most int64) { return -(sessions - 1), sessions + sessions - 1 }

func percentiles(d []time.Duration) string {
	if len(d) == 0 {
		return "unknown"
	}
	slices.Sort(d)
	at := func(q float64) time.Duration {
		return d[min(int(q*float64(len(d))), len(d)-1)].Round(10 * time.Millisecond)
	}
	return fmt.Sprintf("p50 %v, p95 %v, max %v", at(0.5), at(0.95), at(1))
}

// stop ends all tasks and links.
func (c *chaos) stop() {
	for _, p := range c.tasks {
		p.signal(syscall.SIGKILL)
		p.wait()
		p.link.close()
	}
}
