package train_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/train"
)

// restartable is a cluster whose tasks can be ended and started again.
type restartable struct {
	t       *testing.T
	spec    cluster.Spec
	servers []*server.Server
}

func newRestartable(t *testing.T, workers int) *restartable {
	t.Helper()
	r := &restartable{t: t, spec: cluster.Spec{"worker": cluster.Job{}}, servers: make([]*server.Server, workers)}
	listeners := make([]net.Listener, workers)
	for i := range workers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i], r.spec["worker"][i] = l, l.Addr().String()
	}
	for i, l := range listeners {
		r.start(i, l)
	}
	t.Cleanup(func() {
		for i := range r.servers {
			r.end(i)
		}
	})
	return r
}

// start starts the server of a worker, on its earlier address if l is nil.
func (r *restartable) start(i int, l net.Listener) {
	r.t.Helper()
	var err error
	for range 200 { // the port may still be in use
		if l != nil {
			break
		}
		if l, err = net.Listen("tcp", r.spec["worker"][i]); err != nil {
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // a port has no event
		}
	}
	if l == nil {
		r.t.Fatal(err)
	}
	def := cluster.ServerDef{Cluster: r.spec, Job: "worker", Task: i, CPUDevices: 1}
	if r.servers[i], err = server.New(def, server.WithListener(l)); err == nil {
		err = r.servers[i].Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *restartable) end(i int) {
	if err := r.servers[i].Close(); err != nil {
		r.t.Error(err)
	}
}

// fit trains on all workers and returns the histories and errors. models may be nil.
func (r *restartable) fit(options func(task int) (train.Dataset, train.FitOptions)) (histories []*train.History, errs []error) {
	histories, errs = make([]*train.History, len(r.servers)), make([]error, len(r.servers))
	var running sync.WaitGroup
	for task := range r.servers {
		running.Go(func() {
			set, o := options(task)
			o.Cluster = &train.FitCluster{Spec: r.spec, Task: task, AllReduce: true}
			if histories[task], errs[task] = train.Fit(r.t.Context(), classifier(), set, o); errs[task] != nil {
				r.t.Logf("worker %d ended with %v", task, errs[task])
			}
		})
	}
	running.Wait()
	return histories, errs
}

// atEpoch returns options of training for many epochs that call f at the end of one of them.
func atEpoch(epoch int, f func() error) train.FitOptions {
	return train.FitOptions{Epochs: 1000, Optimizer: train.NewAdam(0.03), OnEpoch: func(e train.Epoch) error {
		if e.Epoch == epoch {
			return f()
		}
		return nil
	}}
}

// TestAllReduceLostTask ends the task of one worker of three in training. The others must end with
// an error that names it, and the next calls of Fit must continue from the checkpoint.
func TestAllReduceLostTask(t *testing.T) {
	for _, lost := range []int{2, 0} {
		t.Run(fmt.Sprint("worker ", lost), func(t *testing.T) {
			r := newRestartable(t, 3)
			dir := t.TempDir()
			var once sync.Once
			start := time.Now()
			_, errs := r.fit(func(task int) (train.Dataset, train.FitOptions) {
				o := atEpoch(2, func() error {
					if task == 1 {
						go once.Do(func() { r.end(lost) })
					}
					return nil
				})
				if task == 0 {
					o.Dir = dir
				}
				return blobs(t, 60, uint64(task)+1).Batch(10), o
			})
			t.Logf("all workers ended after %v", time.Since(start))
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("the workers ended after %v", took)
			}
			for task, err := range errs {
				if err == nil || !strings.Contains(err.Error(), "task:"+string(rune('0'+lost))) {
					t.Errorf("worker %d: got %v, want an error that names worker %d", task, err, lost)
				}
				t.Logf("worker %d: %v", task, err)
			}
			r.start(lost, nil)
			again, errs := r.fit(func(task int) (train.Dataset, train.FitOptions) {
				o := train.FitOptions{Epochs: 40, Optimizer: train.NewAdam(0.03)}
				if task == 0 {
					o.Dir = dir
				}
				return blobs(t, 60, uint64(task)+1).Batch(10), o
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for task, h := range again {
				if last := h.Epochs[len(h.Epochs)-1]; last.Epoch != 40 || last.Step != 240 {
					t.Errorf("worker %d ended with epoch %d, step %d", task, last.Epoch, last.Step)
				}
			}
			if n := len(again[1].Epochs); n >= 40 || n == 0 {
				t.Errorf("worker 1 has trained %d epochs, want those after the checkpoint", n)
			}
		})
	}
}

// TestAllReduceFailedProgram fails the program of one worker, whose task goes on.
func TestAllReduceFailedProgram(t *testing.T) {
	r := newRestartable(t, 3)
	mine := status.DataLossf("the disk is gone")
	for range 2 { // the entries of the first call must not disturb the second
		start := time.Now()
		_, errs := r.fit(func(task int) (train.Dataset, train.FitOptions) {
			o := atEpoch(3, func() error {
				if task == 1 {
					return mine
				}
				return nil
			})
			return blobs(t, 60, uint64(task)+1).Batch(10), o
		})
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("the workers ended after %v", took)
		}
		if !errors.Is(errs[1], mine) {
			t.Errorf("worker 1: got %v", errs[1])
		}
		for _, task := range []int{0, 2} {
			if err := errs[task]; status.CodeOf(err) != status.DataLoss || !strings.Contains(err.Error(), "worker 1 has failed: ") ||
				!strings.Contains(err.Error(), "the disk is gone") {
				t.Errorf("worker %d: got %v, want the error of worker 1", task, err)
			}
		}
	}
	checkNoGoroutines(t)
}

// TestAllReduceCancelled cancels one of two workers.
func TestAllReduceCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRestartable(t, 2)
	var errs [2]error
	var running sync.WaitGroup
	for task := range 2 {
		running.Go(func() {
			o, use := atEpoch(2, func() error { return nil }), t.Context()
			if task == 1 {
				o, use = atEpoch(2, func() error { cancel(); return nil }), ctx
			}
			o.Cluster = &train.FitCluster{Spec: r.spec, Task: task, AllReduce: true}
			_, errs[task] = train.Fit(use, classifier(), blobs(t, 60, 1).Batch(10), o)
		})
	}
	running.Wait()
	if !errors.Is(errs[1], context.Canceled) {
		t.Errorf("worker 1: got %v", errs[1])
	}
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "worker 1 has failed: ") {
		t.Errorf("worker 0: got %v, want that worker 1 has failed", errs[0])
	}
}
