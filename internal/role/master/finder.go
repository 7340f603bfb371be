package master

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/status"
)

const (
	minRetry = 50 * time.Millisecond
	maxRetry = time.Second
)

// finder asks tasks for their devices concurrently, and retries until they are up.
type finder struct {
	workers Workers
	check   *clusterCheck
	log     *slog.Logger
	began   time.Time

	mu sync.Mutex
	// tasks that have not answered, with the last error or nil; guarded by mu
	missing map[cluster.Task]error
}

// findDevices returns the devices of the given tasks, in their order, and the releases of the
// tasks. It waits for all of them until ctx ends, and the error then names the missing ones. Any
// error of a task other than Unavailable ends the wait.
func (m *Master) findDevices(ctx context.Context, workers Workers, tasks []cluster.Task, check *clusterCheck) (devices, releases, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &finder{workers: workers, check: check, log: m.Log, began: time.Now(), missing: map[cluster.Task]error{}}
	for _, t := range tasks {
		f.missing[t] = nil
	}
	defer m.waits.add(f)()
	found := make([]devices, len(tasks))
	known := make([]peer.Release, len(tasks))
	var wg sync.WaitGroup
	for i, t := range tasks {
		wg.Go(func() {
			var err error
			if found[i], known[i], err = f.find(ctx, t); err != nil {
				cancel(err)
			}
		})
	}
	answered := make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() { f.logMissing(answered) })
	wg.Wait()
	close(answered)
	logging.Wait()
	if ctx.Err() != nil {
		return nil, nil, f.explain(ctx)
	}
	of := releases{}
	for i, t := range tasks {
		of[t] = known[i]
	}
	return slices.Concat(found...), of, nil
}

// find requests the devices and the release of one task until it answers.
func (f *finder) find(ctx context.Context, task cluster.Task) (devices, peer.Release, error) {
	worker, err := f.workers.Worker(task)
	if err != nil {
		return nil, peer.Unknown, err
	}
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		found, release, err := f.describe(ctx, task, worker)
		switch {
		case err == nil:
			f.mu.Lock()
			delete(f.missing, task)
			f.mu.Unlock()
			return found, release, nil
		case ctx.Err() != nil:
			return nil, peer.Unknown, ctx.Err()
		case status.CodeOf(err) != status.Unavailable:
			return nil, peer.Unknown, fromTask(task, err)
		}
		f.mu.Lock()
		f.missing[task] = err
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, peer.Unknown, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// describe asks a task once for its devices and its release.
func (f *finder) describe(ctx context.Context, task cluster.Task, worker Worker) (devices, peer.Release, error) {
	if err := failpoint.Hit("master/get-status"); err != nil {
		return nil, peer.Unknown, err
	}
	req := &pb.GetStatusRequest{}
	f.check.ask(req)
	resp, err := worker.GetStatus(ctx, req)
	if err != nil {
		return nil, peer.Unknown, err
	}
	if text := f.check.differences(task, resp); text != "" {
		f.log.Warn("a task has other addresses in its cluster specification", "peer", task, "differences", text)
	}
	found, err := devicesOf(task, resp)
	if err != nil {
		return nil, peer.Unknown, err
	}
	release := peer.Weft // a task of this process
	if q, ok := worker.(peer.Questioner); ok {
		if release, err = peer.Find(ctx, resp, q); err != nil {
			return nil, peer.Unknown, err
		}
	}
	return found, release, nil
}

func devicesOf(task cluster.Task, resp *pb.GetStatusResponse) (devices, error) {
	var out devices
	for _, attrs := range resp.GetDeviceAttributes() {
		d, err := onTask(task, attrs)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// logMissing logs the tasks that have not answered, once per logPeriod, until answered is closed.
func (f *finder) logMissing(answered <-chan struct{}) {
	ticker := time.NewTicker(logPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-answered:
			return
		case <-ticker.C:
			f.mu.Lock()
			for _, t := range f.missingLocked() {
				f.log.Warn("CreateSession still waiting for response from worker", "peer", t, "address", f.address(t), "error", f.reasonLocked(t))
			}
			f.mu.Unlock()
		}
	}
}

// address returns the address of a task, "" if it is not known.
func (f *finder) address(task cluster.Task) string {
	if w, err := f.workers.Worker(task); err == nil {
		if c, ok := w.(connection); ok {
			return c.Address()
		}
	}
	return ""
}

// reasonLocked returns the known reason why a task has not answered.
func (f *finder) reasonLocked(task cluster.Task) string {
	if err := f.missing[task]; err != nil {
		return err.Error()
	}
	w, err := f.workers.Worker(task)
	if err != nil {
		return err.Error()
	}
	return silence(w)
}

func (f *finder) missingLocked() []cluster.Task {
	out := make([]cluster.Task, 0, len(f.missing))
	for t := range f.missing {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b cluster.Task) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// explain returns the error of a search that ended early: the error of a task, or the names of the
// missing tasks.
func (f *finder) explain(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make([]string, 0, len(f.missing))
	for _, t := range f.missingLocked() {
		names = append(names, fmt.Sprintf("%s (%s)", taskAt(f.workers, t), f.reasonLocked(t)))
	}
	return timeoutOf(ctx, "waiting for the devices of "+strings.Join(names, ", "))
}
