package train_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

func TestCoordinator(t *testing.T) {
	failed := errors.New("failed")
	for _, tt := range []struct {
		name string
		run  func(c *train.Coordinator)
		want error
	}{
		{"all end", func(c *train.Coordinator) { c.Go(func(context.Context) error { return nil }) }, nil},
		{"one fails and the others stop", func(c *train.Coordinator) {
			c.Go(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			c.Go(func(context.Context) error { return failed })
		}, failed},
		{"a stop is requested", func(c *train.Coordinator) {
			c.Go(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			c.RequestStop(nil)
		}, nil},
		{"the input ends", func(c *train.Coordinator) {
			c.Go(func(ctx context.Context) error { <-ctx.Done(); return nil })
			c.Go(func(context.Context) error { return status.OutOfRangef("no more") })
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := train.NewCoordinator(t.Context(), status.OutOfRange)
			tt.run(c)
			if err := c.Join(t.Context()); !errors.Is(err, tt.want) || (tt.want == nil) != (err == nil) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if !c.ShouldStop() || !c.WaitForStop(t.Context()) {
				t.Error("the goroutine still runs")
			}
		})
	}
}

func TestCoordinatorGivesUp(t *testing.T) {
	c := train.NewCoordinator(t.Context())
	release := make(chan struct{})
	c.Go(func(context.Context) error { <-release; return nil })
	c.RequestStop(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Join(ctx); status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
	close(release)
	if err := c.Join(t.Context()); err != nil {
		t.Error(err)
	}
}

// countUpTo adds a value that counts 0, 1, 2 …, and then fails with the code OutOfRange.
func countUpTo(s *op.Scope, n int64) op.Output {
	v := train.NewVariable(s, "count", tensor.Shape{}, tensor.Int64, train.Zeros, train.Local())
	return op.CountUpTo(s, v.Handle, n)
}

func TestQueueRunner(t *testing.T) {
	for name, readers := range map[string]int{"one": 1, "several": 3} {
		t.Run(name, func(t *testing.T) {
			s := newScope()
			q := op.FIFOQueueV2(s.Named("q"), []tensor.DType{tensor.Int64}, op.FIFOQueueV2Capacity(4))
			enqueue := op.QueueEnqueueV2(s, q, []op.Output{countUpTo(s, 20)})
			nodes := make([]*graph.Node, readers)
			for i := range nodes {
				nodes[i] = enqueue
			}
			train.AddQueueRunner(s, train.NewQueueRunner(s, q, nodes...))
			next := op.QueueDequeueV2(s, q, []tensor.DType{tensor.Int64})
			init := train.LocalVariablesInitializer(s)
			sess := session(t, s)
			run(t, sess, init)
			coord := train.NewCoordinator(t.Context())
			train.StartQueueRunners(s, sess, coord)
			sum := int64(0)
			for {
				out, err := sess.Run(t.Context(), nil, next, nil)
				if status.CodeOf(err) == status.OutOfRange {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				sum += tensor.Value[int64](&out[0])
			}
			if sum != 190 {
				t.Errorf("the sum is %d", sum)
			}
			if err := coord.Join(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestQueueRunnerStops stops a runner whose queue is full: the runner ends, and so do the steps
// that wait for the queue.
func TestQueueRunnerStops(t *testing.T) {
	s := newScope()
	q := op.FIFOQueueV2(s.Named("q"), []tensor.DType{tensor.Float32}, op.FIFOQueueV2Capacity(2))
	runner := train.NewQueueRunner(s, q, op.QueueEnqueueV2(s, q, []op.Output{op.Const(s, float32(1))}))
	next := op.QueueDequeueV2(s, q, []tensor.DType{tensor.Float32})
	sess := session(t, s)
	coord := train.NewCoordinator(t.Context())
	runner.Start(sess, coord)
	for range 5 {
		if _, err := sess.Run(t.Context(), nil, next, nil); err != nil {
			t.Fatal(err)
		}
	}
	coord.RequestStop(nil)
	if err := coord.Join(t.Context()); err != nil {
		t.Error(err)
	}
	for {
		if _, err := sess.Run(t.Context(), nil, next, nil); err != nil {
			if status.CodeOf(err) != status.OutOfRange {
				t.Error(err)
			}
			return
		}
	}
}

// TestQueueRunnerFails fails a runner with an error other than the end of the input: the
// coordinator returns it.
func TestQueueRunnerFails(t *testing.T) {
	s := newScope()
	q := op.FIFOQueueV2(s.Named("q"), []tensor.DType{tensor.Float32})
	bad := op.Reshape(s, op.Const(s, []float32{1, 2}), op.Placeholder(s, tensor.Int32))
	runner := train.NewQueueRunner(s, q, op.QueueEnqueueV2(s, q, []op.Output{bad}))
	sess := session(t, s)
	coord := train.NewCoordinator(t.Context())
	runner.Start(sess, coord)
	if err := coord.Join(t.Context()); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("got %v", err)
	}
}
