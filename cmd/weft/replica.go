package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/mnist"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// model is the graph that every replica builds: a perceptron with one hidden layer, its loss and its training step.
type model struct {
	graph          *graph.Graph
	x, y           op.Output // pictures [n, 784], labels [n, 10]
	loss, accuracy op.Output // scalars
	step           op.Output // the value of the global step after an update
	init           *graph.Node
}

func buildModel(worker, hidden int, rate float64) (*model, error) {
	root := op.NewScope()
	root.SetSeed(1)
	s := root.WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{
		PSTasks: 1, WorkerDevice: fmt.Sprintf("/job:worker/task:%d", worker),
	}))
	m := &model{
		x: op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, mnist.Pixels))),
		y: op.Placeholder(s.Named("y"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, mnist.Classes))),
	}
	layer := func(name string, x op.Output, in, out int) op.Output {
		w := train.NewVariable(s, name+"_w", tensor.Shape{int64(in), int64(out)}, tensor.Float32, train.TruncatedNormal(0, 0.1, nil))
		b := train.NewVariable(s, name+"_b", tensor.Shape{int64(out)}, tensor.Float32, train.Zeros)
		return op.BiasAdd(s, op.MatMul(s, x, w.Value), b.Value)
	}
	logits := layer("sm", op.Relu(s, layer("hid", m.x, mnist.Pixels, hidden)), hidden, mnist.Classes)
	losses, _ := op.SoftmaxCrossEntropyWithLogits(s, logits, m.y)
	m.loss = op.Mean(s.Named("loss"), losses, op.Const(s, []int32{0}))
	axis := op.Const(s, int32(1))
	right := op.Equal(s, op.ArgMax(s, logits, axis), op.ArgMax(s, m.y, axis))
	m.accuracy = op.Mean(s.Named("accuracy"), op.Cast(s, right, tensor.Float32), op.Const(s, []int32{0}))
	count := train.GlobalStep(s)
	update := train.Minimize(s, train.NewGradientDescent(rate), m.loss, count)
	after := s.WithControlDependencies(update).ColocateWith(count.Handle.Node)
	m.step = op.Identity(after.Named("step"), count.Handle)
	m.init = train.VariablesInitializer(s)
	var err error
	m.graph, err = root.Finalize()
	return m, err
}

// replica is one worker's client: it feeds its own worker, which trains the variables that all share.
type replica struct {
	flags *demoFlags
	index int
	spec  cluster.Spec
	set   *mnist.Dataset
	scr   *screen
	ready chan struct{}
}

func (r *replica) run(ctx context.Context) error {
	m, err := buildModel(r.index, r.flags.hidden, r.flags.rate)
	if err != nil {
		return err
	}
	// A replica needs its own worker and the parameter servers only: it starts whether or not the other workers are up.
	sess, err := weft.NewSession("grpc://"+r.spec["worker"][r.index], m.graph,
		weft.WithDeviceFilters("/job:ps", fmt.Sprintf("/job:worker/task:%d", r.index)))
	if err != nil {
		return err
	}
	defer sess.Close()
	if r.index == 0 {
		if _, err := sess.Run(ctx, nil, nil, []*graph.Node{m.init}); err != nil {
			return err
		}
		r.scr.devices(ctx, sess)
		close(r.ready)
	} else {
		select {
		case <-r.ready:
		case <-ctx.Done():
			return nil
		}
	}
	return r.loop(ctx, sess, m)
}

// showEvery is the number of a worker's steps between two looks at its accuracy.
const showEvery = 50

func (r *replica) loop(ctx context.Context, sess *weft.Session, m *model) error {
	batches := r.set.Train.Batches(uint64(r.index))
	n := r.flags.batch
	px, py := make([]float32, n*mnist.Pixels), make([]float32, n*mnist.Classes)
	x, err := tensor.FromSlice(tensor.Shape{int64(n), mnist.Pixels}, px)
	if err != nil {
		return err
	}
	y, err := tensor.FromSlice(tensor.Shape{int64(n), mnist.Classes}, py)
	if err != nil {
		return err
	}
	feeds := map[graph.Output]tensor.Tensor{m.x: x, m.y: y}
	begin, mine := time.Now(), 0
	for ctx.Err() == nil {
		batches.Next(px, py)
		fetches := []graph.Output{m.step}
		show := mine%showEvery == 0
		if show {
			fetches = append(fetches, m.loss, m.accuracy)
		}
		out, err := sess.Run(ctx, feeds, fetches, nil)
		if err != nil {
			return err
		}
		mine++
		step := tensor.Value[int64](&out[0])
		if show {
			rate := float64(mine) / time.Since(begin).Seconds()
			r.scr.progress(r.index, step, tensor.Value[float32](&out[1]), tensor.Value[float32](&out[2]), rate)
		}
		if step >= int64(r.flags.steps) {
			return nil
		}
	}
	return nil
}

// evaluate returns the share of test pictures that the trained variables name rightly.
func (f *demoFlags) evaluate(ctx context.Context, spec cluster.Spec, set *mnist.Dataset) (float32, error) {
	m, err := buildModel(0, f.hidden, f.rate)
	if err != nil {
		return 0, err
	}
	sess, err := weft.NewSession("grpc://"+spec["worker"][0], m.graph)
	if err != nil {
		return 0, err
	}
	defer sess.Close()
	px, py := set.Test.All()
	n := int64(set.Test.Len())
	x, err := tensor.FromSlice(tensor.Shape{n, mnist.Pixels}, px)
	if err != nil {
		return 0, err
	}
	y, err := tensor.FromSlice(tensor.Shape{n, mnist.Classes}, py)
	if err != nil {
		return 0, err
	}
	out, err := sess.Run(ctx, map[graph.Output]tensor.Tensor{m.x: x, m.y: y}, []graph.Output{m.accuracy}, nil)
	if err != nil {
		return 0, err
	}
	return tensor.Value[float32](&out[0]), nil
}
