package train_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// checkNoGoroutines waits until all goroutines of this package and of the client have ended.
func checkNoGoroutines(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		left := goroutinesOf("weft-ml/weft/train.", "weft-ml/weft.(*Session)")
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still running:\n%s", left)
		}
		runtime.Gosched()
	}
}

// goroutinesOf returns the stacks of the goroutines, except that of the test, that are in a
// function with one of the given prefixes.
func goroutinesOf(prefixes ...string) string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var left []string
	for _, stack := range strings.Split(string(buf), "\n\n")[1:] {
		for _, p := range prefixes {
			if strings.Contains(stack, p) && !strings.Contains(stack, "testing.tRunner") {
				left = append(left, stack)
				break
			}
		}
	}
	return strings.Join(left, "\n\n")
}

// TestNothingKeepsRunning ends training in every possible way and looks for goroutines that remain.
func TestNothingKeepsRunning(t *testing.T) {
	for name, end := range map[string]func(t *testing.T){
		"last step": func(t *testing.T) {
			l := newLine(newScope())
			l.loop(t, monitored(t, l, train.TrainingOptions{
				IsChief: true, CheckpointDir: t.TempDir(), Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 3}},
			}))
		},
		"error": func(t *testing.T) {
			l := newLine(newScope())
			sess := monitored(t, l, train.TrainingOptions{IsChief: true, CheckpointDir: t.TempDir()})
			err := sess.Loop(t.Context(), func(ctx context.Context) error {
				_, err := sess.Run(ctx, nil, nil, []*graph.Node{l.update}) // x is not fed
				return err
			})
			if status.CodeOf(err) != status.InvalidArgument {
				t.Errorf("got %v", err)
			}
		},
		"full queue": func(t *testing.T) {
			s := newScope()
			q := op.FIFOQueueV2(s, []tensor.DType{tensor.Float32}, op.FIFOQueueV2Capacity(1))
			train.AddQueueRunner(s, train.NewQueueRunner(s, q, op.QueueEnqueueV2(s, q, []op.Output{op.Const(s, float32(1))})))
			sess, err := train.NewMonitoredSession(t.Context(), "local", s, train.MonitoredOptions{Chief: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := sess.Close(); err != nil {
				t.Error(err)
			}
		},
		"replicas in step": func(t *testing.T) {
			cl := startCluster(t, map[string]int{"ps": 1, "worker": 2})
			var running sync.WaitGroup
			for task := range 2 {
				running.Go(func() {
					if _, err := newReplica(task, 2, 2).work(t.Context(), cl, task, 1, 5); err != nil {
						t.Error(err)
					}
				})
			}
			running.Wait()
		},
		"no chief": func(t *testing.T) {
			l := newLine(newScope())
			_, err := train.MonitoredTrainingSession(t.Context(), l.scope, train.TrainingOptions{MaxWait: 50 * time.Millisecond})
			if status.CodeOf(err) != status.DeadlineExceeded {
				t.Errorf("got %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			end(t)
			checkNoGoroutines(t)
		})
	}
}
