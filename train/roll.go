package train

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	// beatPeriod is the time between two entries of a worker.
	beatPeriod = time.Second
	// startPeriod is the same until all workers have begun. They wait for an entry of worker 0.
	startPeriod = 50 * time.Millisecond
	// silenceLimit is the silence after which a worker counts as lost. It is that of a connection
	// without an answer to a PING (the flag --keepalive-timeout of servers).
	silenceLimit = 20 * time.Second
	// reportTimeout bounds the last entry of a worker that has failed: worker 0 may be lost, too.
	reportTimeout = 3 * time.Second
	// causeWait is the time that a worker waits for the entry of the worker that has failed first.
	causeWait = 3 * beatPeriod
	// connectTimeout bounds the first steps, which fail while a task still takes another one for
	// lost. Tasks try again within a second.
	connectTimeout = 10 * time.Second
	// missingPeriod is the time between two log lines about workers that have not begun.
	missingPeriod = 10 * time.Second
)

// States of an entry.
const (
	entryWaiting = "waiting" // for the other workers
	entryAlive   = "alive"
	entryDone    = "done"
	entryFailed  = "failed"
)

// entry is what a worker tells the others.
type entry struct {
	Run   int64 // identifies the call of Fit; at least 1 and exact in a float64
	Beat  int64 // grows with each entry
	State string
	Code  status.Code
	Text  string // error of a failed worker
	Root  int    // worker whose failure this is: the own index, unless it follows from another one
	// state of the worker's entry before this run, and its run
	PriorState string
	PriorRun   int64
}

// roll lets the workers of an all-reduce know that one of them has failed, since the others would
// wait for it. Each worker puts an entry into a table on the task of worker 0 once per beatPeriod,
// and reads those of the others.
//
// The connections of the tasks do not suffice for that. They end with a task, but the program of a
// worker may fail while its task goes on. And in a ring only the next worker has a connection that
// waits for the lost task.
type roll struct {
	own     int
	workers int
	text    op.Output // fed with the own entry
	put     *graph.Node
	all     op.Output // entries of all workers, "" without one
	hello   op.Output // needs a tensor of each worker
	log     *slog.Logger

	watching sync.WaitGroup // the goroutine of watch
	stop     context.CancelFunc
	sess     Session
	found    chan struct{} // closed when failed is set
	led      chan int64    // receives the run of worker 0 once
	leader   int64         // that run, 0 if it is not known; owned by watch
	seen     []sighting    // by worker; owned by watch

	mu     sync.Mutex
	mine   entry   // own entry; guarded by mu
	agreed []int64 // runs of all workers, nil until they are known; guarded by mu
	failed error   // failure of another worker; guarded by mu
	root   int     // worker of failed; guarded by mu
}

// sighting is the last entry of a worker.
type sighting struct {
	entry
	first   entry     // entry at the first look
	changed time.Time // time of the last change
}

func newRoll(s *op.Scope, own, workers int, log *slog.Logger) *roll {
	r := &roll{own: own, workers: workers, log: log, found: make(chan struct{}), led: make(chan int64, 1)}
	if r.log == nil {
		r.log = slog.Default() //nolint:forbidigo // the caller has passed none
	}
	s = s.WithDevice("/job:worker/task:0").SubScope("fit_workers")
	table := op.MutableHashTableV2(s, tensor.Int64, tensor.String, op.MutableHashTableV2SharedName("weft_fit_workers"))
	keys := make([]int64, workers)
	for i := range keys {
		keys[i] = int64(i)
	}
	r.text = op.Placeholder(s, tensor.String, op.PlaceholderShape(tensor.MakePartial(1)))
	r.put = op.LookupTableInsertV2(s, table, op.Const(s, []int64{int64(own)}), r.text)
	r.all = op.LookupTableFindV2(s, table, op.Const(s, keys), op.Const(s, ""))
	var times []op.Output
	for i := range workers {
		times = append(times, op.Timestamp(s.WithDevice(fmt.Sprintf("/job:worker/task:%d", i))))
	}
	r.hello = op.AddN(s.WithDevice(fmt.Sprintf("/job:worker/task:%d", own)), times)
	r.mine = entry{Run: 1 + rand.Int64N(1<<52), State: entryWaiting, Root: own}
	return r
}

// begin reads the entries of the others, adds the own one, and starts watch, which calls fail with
// the failure of another worker. It waits for worker 0, and returns a number that all workers get
// and that no earlier call of Fit had. The caller must call end.
func (r *roll) begin(ctx context.Context, sess Session, fail func(error)) (int64, error) {
	r.sess = sess
	entries, err := r.connect(ctx)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	for i, e := range entries {
		r.seen = append(r.seen, sighting{entry: e, first: e, changed: now})
		if i == r.own {
			r.mine.PriorState, r.mine.PriorRun = e.State, e.Run
		}
	}
	if err := retry(ctx, r.write); err != nil {
		return 0, err
	}
	watching, stop := context.WithCancel(ctx)
	r.stop = stop
	r.watching.Go(func() { r.watch(watching, fail) })
	if r.own == 0 {
		return r.mine.Run, nil
	}
	select {
	case run := <-r.led:
		return run, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// connect makes the connections between the own task and the others, and reads the entries.
func (r *roll) connect(ctx context.Context) (entries []entry, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		if _, err := r.sess.Run(ctx, nil, []op.Output{r.hello}, nil); err != nil {
			return err
		}
		entries, err = r.read(ctx)
		return err
	})
	return entries, err
}

// retry calls f until it no longer fails because a task is lost, for connectTimeout.
func retry(ctx context.Context, f func(context.Context) error) error {
	deadline := time.Now().Add(connectTimeout)
	for {
		err := f(ctx)
		if err == nil || !isPreemption(err) || time.Now().After(deadline) || sleep(ctx, startPeriod) != nil {
			return err
		}
	}
}

// end stops watch, and tells the others how this worker has ended. It returns the error of another
// worker instead of one that may follow from it.
func (r *roll) end(ctx context.Context, err error) error {
	if r.stop == nil {
		return err
	}
	root, known := r.failure()
	if err != nil && known == nil && mayFollow(err) {
		r.report(ctx, err, r.own)
		// The error may follow from the failure of another worker, whose entry comes later.
		select {
		case <-r.found:
			root, known = r.failure()
		case <-time.After(causeWait):
		case <-ctx.Done():
		}
	}
	r.stop()
	r.watching.Wait()
	switch {
	case err != nil && known != nil && (root != r.own || mayFollow(err)):
		err = known
	case err != nil && ctx.Err() == nil && mayFollow(err):
		root, err = r.own, r.naming(err)
	default:
		root = r.own
	}
	r.report(ctx, err, root)
	return err
}

// naming returns err with the name of the task of this worker. The error of a step that the task
// has cancelled because it ends names no task.
func (r *roll) naming(err error) error {
	task := cluster.Task{Job: "worker", Index: r.own}.String()
	if strings.Contains(err.Error(), task) {
		return err
	}
	return status.Errorf(status.CodeOf(err), "train: a step of worker %d on %s has failed: %w",
		r.own, task, err)
}

// mayFollow reports whether an error may follow from the failure of another worker.
func mayFollow(err error) bool {
	return status.IsDerived(err) || isPreemption(err) || status.CodeOf(err) == status.Cancelled
}

// ownTaskEnds reports whether a step was cancelled because the task of this worker closes its
// sessions. The error of a step that another task has cancelled names that task.
func ownTaskEnds(err error) bool {
	return status.CodeOf(err) == status.Cancelled && !strings.Contains(err.Error(), "/task:")
}

// report puts the last entry into the table, or nothing if worker 0 cannot be reached.
func (r *roll) report(ctx context.Context, err error, root int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	r.mu.Lock()
	r.mine.State = entryDone
	if err != nil {
		r.mine.State, r.mine.Code, r.mine.Text, r.mine.Root = entryFailed, status.CodeOf(err), err.Error(), root
	}
	r.mu.Unlock()
	if err := r.write(ctx); err != nil {
		r.log.Debug("cannot tell the other workers how this one has ended", "error", err)
	}
}

// agree sets the runs of all workers.
func (r *roll) agree(runs []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agreed = runs
	r.mine.State = entryAlive
}

// failure returns the worker that a failure follows from, and the failure.
func (r *roll) failure() (root int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.root, r.failed
}

// watch adds an entry per period and reads those of the others, until ctx ends or another worker
// has failed.
func (r *roll) watch(ctx context.Context, fail func(error)) {
	logged := time.Now()
	for {
		period := beatPeriod
		if r.runs() == nil {
			period = startPeriod
		}
		if sleep(ctx, period) != nil {
			return
		}
		now := time.Now()
		err := r.write(ctx)
		root := 0
		var entries []entry
		if err == nil {
			entries, err = r.read(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && ownTaskEnds(err):
			root, err = r.own, r.naming(err)
		case err != nil:
			err = status.Errorf(status.CodeOf(err), "train: worker 0, which has the list of the workers, is lost: %w", err)
		default:
			root, err = r.look(now, entries)
		}
		if err != nil {
			r.mu.Lock()
			r.failed, r.root = err, root
			r.mu.Unlock()
			close(r.found)
			fail(err)
			return
		}
		if now.Sub(logged) >= missingPeriod {
			logged = now
			r.logMissing()
		}
	}
}

// runs returns the runs of all workers, nil until they are known.
func (r *roll) runs() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.agreed
}

// look compares the entries with those that it has seen last. It returns the failure of a worker,
// and the worker that it follows from.
func (r *roll) look(now time.Time, entries []entry) (root int, failure error) {
	r.mu.Lock()
	agreed, ended := r.agreed, r.mine.State == entryFailed
	r.mu.Unlock()
	for i, e := range entries {
		s := &r.seen[i]
		if e != s.entry {
			s.entry, s.changed = e, now
		}
		if i == 0 && r.leader == 0 && s.State == entryWaiting && s.entry != s.first {
			r.leader = s.Run
			r.led <- s.Run
		}
		if i == r.own || ended && s.State != entryFailed {
			continue // after the own failure only that of another worker is a cause
		}
		err := s.failure(now, i, agreed)
		if i == 0 && err == nil && agreed == nil && r.leader != 0 && s.Run != r.leader {
			err = again(i)
		}
		if err != nil && (failure == nil || s.Root == i) {
			failure, root = err, s.Root
		}
	}
	return root, failure
}

// failure returns the failure of worker i, or nil.
func (s *sighting) failure(now time.Time, i int, agreed []int64) error {
	switch {
	case s.entry == s.first && agreed == nil, s.State == entryDone:
		return nil // not begun, or already ended
	case agreed == nil && s.Run == s.first.Run && s.first.State == entryFailed:
		return nil // an earlier call of Fit, which has found the cause of its failure
	case agreed != nil && s.Run != agreed[i]:
		if s.PriorRun == agreed[i] && s.PriorState == entryDone {
			return nil // the next call of Fit
		}
		return again(i)
	case s.State == entryFailed && s.Root != i:
		return status.Errorf(s.Code, "%s", s.Text)
	case s.State == entryFailed && (s.Code == status.Unavailable || s.Code == status.Aborted):
		return status.Errorf(s.Code, "train: worker %d has lost another task: %s", i, s.Text)
	case s.State == entryFailed:
		return status.Errorf(s.Code, "train: worker %d has failed: %s", i, s.Text)
	case now.Sub(s.changed) > silenceLimit:
		return status.Unavailablef("train: worker %d was lost: it has been silent for %v", i, now.Sub(s.changed).Round(time.Second))
	}
	return nil
}

// again returns the error for a worker that calls Fit again before the others.
func again(worker int) error {
	return status.Unavailablef("train: worker %d was lost, and has been started again", worker)
}

// logMissing logs the workers that have not begun. Once the runs are agreed, all have.
func (r *roll) logMissing() {
	if r.runs() != nil {
		return
	}
	for i := range r.seen {
		s := &r.seen[i]
		switch {
		case i == r.own || s.entry != s.first:
		case s.State == entryFailed:
			r.log.Warn("waiting for a worker to call Fit again", "worker", i, "failed", s.Text)
		default:
			r.log.Warn("waiting for a worker to call Fit", "worker", i)
		}
	}
}

// write puts the own entry into the table.
func (r *roll) write(ctx context.Context) error {
	r.mu.Lock()
	r.mine.Beat++
	text, err := json.Marshal(&r.mine)
	r.mu.Unlock()
	if err != nil {
		return status.Internalf("train: %w", err)
	}
	_, err = r.sess.Run(ctx, map[graph.Output]tensor.Tensor{r.text: tensor.Vector(string(text))}, nil, []*graph.Node{r.put})
	return err
}

// read returns the entries of all workers.
func (r *roll) read(ctx context.Context) ([]entry, error) {
	out, err := r.sess.Run(ctx, nil, []op.Output{r.all}, nil)
	if err != nil {
		return nil, err
	}
	texts := slices.Clone(tensor.Values[string](&out[0]))
	entries := make([]entry, r.workers)
	if len(texts) != len(entries) {
		return nil, status.Internalf("train: the list of the workers has %d entries, want %d", len(texts), len(entries))
	}
	for i, text := range texts {
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &entries[i]); err != nil {
			return nil, fmt.Errorf("train: the entry of worker %d: %w", i, err)
		}
	}
	return entries, nil
}
