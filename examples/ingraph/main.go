// Command ingraph trains with in-graph replication: one client and one graph, with a copy of the
// model on every worker and the variables on the parameter server.
//
//	weft server --cluster-spec=… --job-name=ps     --task-index=0 &   # one parameter server and two workers
//	weft server --cluster-spec=… --job-name=worker --task-index=0 &
//	weft server --cluster-spec=… --job-name=worker --task-index=1 &
//	go run ./examples/ingraph --target=grpc://localhost:2223 --mode=sync
//
// In mode async a goroutine runs the steps of each worker, which applies its own gradients. In mode
// sync every step applies the average of the gradients of all workers.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/examples/digits"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

type config struct {
	target, mode          string
	workers, steps, batch int
	rate                  float64
}

func main() {
	var c config
	flag.StringVar(&c.target, "target", "grpc://localhost:2223", "any task of the cluster")
	flag.StringVar(&c.mode, "mode", "async", "how gradients are applied: async or sync")
	flag.IntVar(&c.workers, "workers", 2, "number of worker tasks")
	flag.IntVar(&c.steps, "steps", 200, "training steps, of each worker (async) or of all workers together (sync)")
	flag.IntVar(&c.batch, "batch-size", 100, "images per worker and step")
	flag.Float64Var(&c.rate, "learning-rate", 0.1, "learning rate of gradient descent")
	flag.Parse()
	if err := c.run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ingraph:", err)
		os.Exit(1)
	}
}

// A tower is the copy of a softmax regression on one worker.
type tower struct {
	x, y           op.Output
	loss, accuracy op.Output
	data           *digits.Batches
}

func newTower(s *op.Scope, w, b *train.Variable, seed uint64) *tower {
	t := &tower{x: op.Placeholder(s, tensor.Float32), y: op.Placeholder(s, tensor.Float32), data: digits.New(seed)}
	logits := op.BiasAdd(s, op.MatMul(s, t.x, w.Value), b.Value)
	losses, _ := op.SoftmaxCrossEntropyWithLogits(s, logits, t.y)
	t.loss = op.Mean(s, losses, op.Const(s, []int32{0}))
	axis := op.Const(s, int32(1))
	right := op.Cast(s, op.Equal(s, op.ArgMax(s, logits, axis), op.ArgMax(s, t.y, axis)), tensor.Float32)
	t.accuracy = op.Mean(s, right, op.Const(s, []int32{0}))
	return t
}

// feed adds a batch of n images to feeds.
func (t *tower) feed(feeds map[op.Output]tensor.Tensor, n int) error {
	images, labels := t.data.Next(n)
	x, err := tensor.FromSlice(tensor.Shape{int64(n), digits.Pixels}, images)
	if err != nil {
		return err
	}
	y, err := tensor.FromSlice(tensor.Shape{int64(n), digits.Classes}, labels)
	feeds[t.x], feeds[t.y] = x, y
	return err
}

func (c *config) run(ctx context.Context, out io.Writer) error {
	s := op.NewScope()
	ps := s.WithDevice("/job:ps/task:0")
	w := train.NewVariable(ps, "w", tensor.Shape{digits.Pixels, digits.Classes}, tensor.Float32, train.Zeros)
	b := train.NewVariable(ps, "b", tensor.Shape{digits.Classes}, tensor.Float32, train.Zeros)
	step := train.GlobalStep(ps)
	towers := make([]*tower, c.workers)
	for i := range towers {
		towers[i] = newTower(s.WithDevice(fmt.Sprintf("/job:worker/task:%d", i)), w, b, uint64(i))
	}
	drive, err := c.build(s, towers, step)
	if err != nil {
		return err
	}
	init := train.VariablesInitializer(s)
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	sess, err := weft.NewSession(c.target, g)
	if err != nil {
		return err
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []*graph.Node{init}); err != nil {
		return err
	}
	if err := drive(ctx, sess); err != nil {
		return err
	}
	return c.test(ctx, out, sess, towers[0], step)
}

// build adds the training steps and returns a function that runs all of them.
func (c *config) build(s *op.Scope, towers []*tower, step *train.Variable) (func(context.Context, *weft.Session) error, error) {
	opt := train.NewGradientDescent(c.rate)
	switch c.mode {
	case "async":
		updates := make([]*graph.Node, len(towers))
		for i, t := range towers {
			updates[i] = train.Minimize(s.WithDevice(fmt.Sprintf("/job:worker/task:%d", i)), opt, t.loss, step)
		}
		return func(ctx context.Context, sess *weft.Session) error { return c.driveEach(ctx, sess, towers, updates) }, nil
	case "sync":
		all := make([][]train.GradientVariable, len(towers))
		for i, t := range towers {
			all[i] = train.ComputeGradients(s.WithDevice(fmt.Sprintf("/job:worker/task:%d", i)), t.loss)
		}
		ps := s.WithDevice("/job:ps/task:0")
		update := train.ApplyGradients(ps, opt, train.AverageGradients(ps, all...), step)
		return func(ctx context.Context, sess *weft.Session) error { return c.drive(ctx, sess, towers, update) }, nil
	}
	return nil, fmt.Errorf("--mode=%s: must be async or sync", c.mode)
}

// driveEach runs the steps of all towers concurrently.
func (c *config) driveEach(ctx context.Context, sess *weft.Session, towers []*tower, updates []*graph.Node) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for i, t := range towers {
		running.Go(func() {
			if err := c.drive(ctx, sess, []*tower{t}, updates[i]); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// drive runs an update repeatedly, each time with a batch for each of the towers.
func (c *config) drive(ctx context.Context, sess *weft.Session, towers []*tower, update *graph.Node) error {
	for range c.steps {
		feeds := map[op.Output]tensor.Tensor{}
		for _, t := range towers {
			if err := t.feed(feeds, c.batch); err != nil {
				return err
			}
		}
		if _, err := sess.Run(ctx, feeds, nil, []*graph.Node{update}); err != nil {
			return err
		}
	}
	return nil
}

// test prints the accuracy on new images.
func (c *config) test(ctx context.Context, out io.Writer, sess *weft.Session, t *tower, step *train.Variable) error {
	t.data = digits.New(1000)
	feeds := map[op.Output]tensor.Tensor{}
	if err := t.feed(feeds, 2000); err != nil {
		return err
	}
	values, err := sess.Run(ctx, feeds, []op.Output{step.Value, t.accuracy}, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "mode : %s step : %d ,test accuracy : %.2f\n", c.mode, values[0].Go(), values[1].Go())
	return nil
}
