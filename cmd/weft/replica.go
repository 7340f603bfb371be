package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cmd/weft/internal/mnist"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// model is the graph of a replica: a perceptron with one hidden layer, its loss and its training
// step.
type model struct {
	scope          *op.Scope
	x, y           op.Output // images [n, 784], one-hot labels [n, 10]
	probabilities  op.Output // [n, 10]
	loss, accuracy op.Output // scalars
	step           *train.Variable
	update         *graph.Node
	hooks          []train.SessionRunHook // needed for training
}

func buildModel(worker int, f *demoFlags) *model {
	root := op.NewScope()
	root.SetSeed(1)
	s := root.WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{
		PSTasks: 1, WorkerDevice: fmt.Sprintf("/job:worker/task:%d", worker),
	}))
	m := &model{
		scope: s,
		x:     op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, mnist.Pixels))),
		y:     op.Placeholder(s.Named("y"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, mnist.Classes))),
	}
	layer := func(name string, x op.Output, in, out int) op.Output {
		w := train.NewVariable(s, name+"_w", tensor.Shape{int64(in), int64(out)}, tensor.Float32, train.TruncatedNormal(0, 0.1))
		b := train.NewVariable(s, name+"_b", tensor.Shape{int64(out)}, tensor.Float32, train.Zeros)
		train.HistogramSummary(s, name+"/weights", w.Value)
		return op.BiasAdd(s, op.MatMul(s, x, w.Value), b.Value)
	}
	logits := layer("sm", op.Relu(s, layer("hid", m.x, mnist.Pixels, f.hidden)), f.hidden, mnist.Classes)
	m.probabilities = op.Softmax(s.Named("probabilities"), logits)
	losses, _ := op.SoftmaxCrossEntropyWithLogits(s, logits, m.y)
	m.loss = op.Mean(s.Named("loss"), losses, op.Const(s, []int32{0}))
	axis := op.Const(s, int32(1))
	right := op.Equal(s, op.ArgMax(s, logits, axis), op.ArgMax(s, m.y, axis))
	m.accuracy = op.Mean(s.Named("accuracy"), op.Cast(s, right, tensor.Float32), op.Const(s, []int32{0}))
	train.ScalarSummary(s, "train/loss", m.loss)
	train.ScalarSummary(s, "train/accuracy", m.accuracy)
	m.step = train.GlobalStep(s)
	m.minimize(worker == 0, f)
	return m
}

// minimize adds the training step, asynchronous or synchronous.
func (m *model) minimize(chief bool, f *demoFlags) {
	descent := train.NewGradientDescent(f.rate)
	if !f.sync {
		m.update = train.Minimize(m.scope, descent, m.loss, m.step)
		return
	}
	opt := train.NewSyncReplicasOptimizer(descent, demoWorkers, demoWorkers)
	m.update = opt.Minimize(m.scope, m.loss, m.step)
	m.hooks = append(m.hooks, opt.MakeSessionRunHook(chief))
}

// signature returns the signature of the model: from images to the probabilities of the digits.
func (m *model) signature() savedmodel.Signature {
	return savedmodel.Signature{
		Inputs:  map[string]savedmodel.TensorInfo{"x": savedmodel.InfoOf(m.x, tensor.MakePartial(-1, mnist.Pixels))},
		Outputs: map[string]savedmodel.TensorInfo{"probabilities": savedmodel.InfoOf(m.probabilities, tensor.MakePartial(-1, mnist.Classes))},
		Method:  savedmodel.MethodPredict,
	}
}

// A replica is the client of one worker. It feeds the worker, which trains the shared variables.
type replica struct {
	flags       *demoFlags
	index       int
	cluster     *server.Cluster
	set         *mnist.Dataset
	scr         *screen
	interrupted <-chan struct{}
}

// saveEvery is the time between two checkpoints. It is short, so that an interrupted demo loses
// little.
const saveEvery = 5 * time.Second

// chief reports whether the replica initializes and saves the model.
func (r *replica) chief() bool { return r.index == 0 }

// leaves reports whether the replica stops early. In synchronous training only the chief does, and
// the other workers stop with it.
func (r *replica) leaves() bool {
	select {
	case <-r.interrupted:
		return r.chief() || !r.flags.sync
	default:
		return false
	}
}

func (r *replica) run(ctx context.Context) error {
	m := buildModel(r.index, r.flags)
	export := &exportHook{interrupted: r.leaves}
	export.Export = train.Export{
		Dir: r.flags.modelDir(), ClearDevices: true, Signatures: map[string]savedmodel.Signature{savedmodel.DefaultSignature: m.signature()},
	}
	sess, err := train.MonitoredTrainingSession(ctx, m.scope, train.TrainingOptions{
		Master: r.cluster.Target("worker", r.index), IsChief: r.chief(), CheckpointDir: r.flags.dir, SaveCheckpointEvery: saveEvery,
		Hooks:          append(m.hooks, &train.StopAtStepHook{LastStep: int64(r.flags.steps)}),
		ChiefOnlyHooks: []train.SessionRunHook{export},
		// A replica uses only its own worker and the parameter servers, so it does not wait for the
		// other workers.
		SessionOptions: append(r.flags.certs.options(), weft.WithDeviceFilters("/job:ps", fmt.Sprintf("/job:worker/task:%d", r.index))),
	})
	if err != nil {
		return err
	}
	if r.chief() {
		err = sess.RunStep(ctx, r.scr.devices)
	}
	if err == nil {
		err = r.loop(ctx, sess, m)
	}
	return errors.Join(err, sess.Close())
}

// showEvery is the number of steps of a worker after which it reports its accuracy.
const showEvery = 50

func (r *replica) loop(ctx context.Context, sess *train.MonitoredSession, m *model) error {
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
	begin, target := time.Now(), []*graph.Node{m.update}
	for mine := 0; !sess.ShouldStop() && !r.leaves(); mine++ {
		batches.Next(px, py)
		var fetches []graph.Output
		if mine%showEvery == 0 {
			fetches = []graph.Output{m.step.Value, m.loss, m.accuracy}
		}
		out, err := sess.Run(ctx, feeds, fetches, target)
		switch {
		case status.CodeOf(err) == status.OutOfRange:
			return nil // the chief has stopped
		case err != nil:
			return err
		case len(out) > 0:
			rate := float64(mine+1) / time.Since(begin).Seconds()
			r.scr.progress(r.index, tensor.Value[int64](&out[0]), tensor.Value[float32](&out[1]), tensor.Value[float32](&out[2]), rate)
		}
	}
	return nil
}

// evaluate returns the accuracy of the trained variables on the test images.
func (f *demoFlags) evaluate(ctx context.Context, cl *server.Cluster, set *mnist.Dataset) (float32, error) {
	m := buildModel(0, f)
	g, err := m.scope.Finalize()
	if err != nil {
		return 0, err
	}
	sess, err := weft.NewSession(cl.Target("worker", 0), g, f.certs.options()...)
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
