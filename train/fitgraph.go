package train

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// fitting is the state of one call of [Fit].
type fitting struct {
	options    FitOptions
	model      Model
	data       Dataset
	scope      *op.Scope
	batch      []op.Output // placeholders of the tensors of a batch
	built      *BuiltModel
	update     *graph.Node // one training step
	step       *Variable
	epoch      *Variable // number of finished epochs, saved with the model
	nextEpoch  op.Output // int64, fed to advance
	advance    *graph.Node
	sync       *SyncReplicasOptimizer // nil for asynchronous training
	onWorker   onWorker               // nil if the program reads the training data
	ring       *ring                  // nil unless the workers have copies of the model
	assign     []*graph.Node          // set the variables of the model to the values of values
	values     []op.Output
	saver      *Saver
	history    *History
	best       map[string]tensor.Tensor // weights of the best epoch, if they are kept
	events     *eventFiles
	sess       *MonitoredSession
	firstEpoch int
}

// newFitting builds the graph.
func newFitting(m Model, data Dataset, o FitOptions) (*fitting, error) {
	o.setDefaults()
	if m == nil || data == nil {
		return nil, status.InvalidArgumentf("train: Fit needs a model and data")
	}
	f := &fitting{options: o, model: m, data: data, history: &History{}, scope: op.NewScope()}
	s := f.scope
	if o.Seed != 0 {
		s.SetSeed(o.Seed)
	}
	if c := o.Cluster; c != nil {
		worker := fmt.Sprintf("/job:worker/task:%d", c.Task)
		switch {
		case c.AllReduce && c.Sync:
			return nil, status.InvalidArgumentf("train: FitCluster.Sync is for parameter servers; AllReduce always averages the gradients")
		case c.AllReduce:
			s = s.WithDevice(worker)
			f.ring = newRing(s, c, o.Logger)
		default:
			s = s.WithDeviceFunc(ReplicaDeviceSetter(DeviceSetter{Cluster: c.Spec, WorkerDevice: worker}))
		}
	}
	if o.DataOnWorker {
		on := f.scope
		if c := o.Cluster; c != nil {
			on = on.WithDevice(fmt.Sprintf("/job:worker/task:%d", c.Task))
		}
		var err error
		if f.onWorker, err = newOnWorker(on, data); err != nil {
			return nil, err
		}
		if p, ok := f.onWorker.(*workerPipeline); ok && f.ring != nil {
			f.ring.more, f.ring.onTask = op.Cast(on, p.more, tensor.Float32), true
		}
	}
	if err := f.addBatch(s); err != nil {
		return nil, err
	}
	last := len(f.batch) - 1
	f.built = m.Build(s, f.batch[:last], f.batch[last])
	if err := s.Err(); err != nil {
		return nil, err
	}
	f.addStep(s)
	f.addState(s)
	if err := s.Err(); err != nil {
		return nil, err
	}
	if err := f.checkMonitor(); err != nil {
		return nil, err
	}
	return f, f.checkResume()
}

// addBatch adds the placeholders of a batch.
func (f *fitting) addBatch(s *op.Scope) error {
	types, shapes := f.data.Types()
	if len(types) < 2 || len(types) != len(shapes) {
		return status.InvalidArgumentf("train: the data has %d columns; it needs inputs and, as the last one, labels", len(types))
	}
	if v := f.options.Validation; v != nil {
		if others, more := v.Types(); !slices.Equal(types, others) || !slices.EqualFunc(shapes, more, compatible) {
			return status.InvalidArgumentf("train: the training data has types %v and shapes %v, the validation data %v and %v",
				types, shapes, others, more)
		}
	}
	for i, t := range types {
		name := fmt.Sprintf("input_%d", i)
		if i == len(types)-1 {
			name = "labels"
		}
		if f.onWorker != nil { // validation data is fed
			f.batch = append(f.batch, op.PlaceholderWithDefault(s.Named(name), f.onWorker.outputs()[i], shapes[i]))
			continue
		}
		f.batch = append(f.batch, op.Placeholder(s.Named(name), t, op.PlaceholderShape(shapes[i])))
	}
	return nil
}

func compatible(a, b tensor.PartialShape) bool { return a.Compatible(b) }

// addStep adds the training step.
func (f *fitting) addStep(s *op.Scope) {
	o := &f.options
	f.step = GlobalStep(s)
	opt := o.Optimizer
	if o.Schedule != nil {
		with, ok := opt.(interface {
			withSchedule(rate op.Output) Optimizer
		})
		if !ok {
			s.Fail(status.InvalidArgumentf("train: the optimizer %s takes no schedule", opt.Name()))
			return
		}
		opt = with.withSchedule(o.Schedule.At(s, f.step.Value))
	}
	grads := ComputeGradients(s, f.built.Training.Loss)
	if f.ring != nil {
		f.ring.number(f.built.Variables)
		grads = f.ring.gradients(s, grads)
	}
	if o.ClipNorm > 0 {
		grads, _ = ClipByGlobalNorm(s, grads, o.ClipNorm)
	}
	done := s.WithControlDependencies(f.built.Updates...)
	if c := o.Cluster; c != nil && c.Sync {
		workers := len(c.Spec["worker"])
		f.sync = NewSyncReplicasOptimizer(opt, workers, workers)
		f.update = op.Group(done, f.sync.ApplyGradients(s, grads, f.step))
	} else {
		f.update = op.Group(done, ApplyGradients(s, opt, grads, f.step))
	}
	if f.built.Constrain == nil || f.update == nil {
		return
	}
	if limits := f.built.Constrain(s.WithControlDependencies(f.update)); len(limits) > 0 {
		f.update = op.Group(s, append(limits, f.update)...)
	}
}

// addState adds the number of finished epochs, and nodes that set and save the variables.
func (f *fitting) addState(s *op.Scope) {
	f.epoch = NewVariable(s, "fit_epoch", tensor.Shape{}, tensor.Int64, Zeros, NotTrainable())
	f.nextEpoch = op.Placeholder(s.Named("fit_next_epoch"), tensor.Int64, op.PlaceholderShape(tensor.MakePartial()))
	f.advance = f.epoch.Assign(s, f.nextEpoch)
	if f.options.chief() {
		for _, v := range f.built.Variables {
			value := op.Placeholder(s.SubScope("fit_value"), v.DType, op.PlaceholderShape(v.Shape.Partial()))
			f.values = append(f.values, value)
			f.assign = append(f.assign, v.Assign(s, value))
		}
	}
	if f.ring != nil {
		f.ring.state(s, f.built.Variables)
	}
	if f.options.Dir != "" && f.options.chief() {
		f.saver = NewSaver(s, SaverOptions{MaxToKeep: 2, Sharded: f.options.Cluster != nil && f.ring == nil})
	}
}

// checkMonitor fails if there is no value of the name of [FitOptions.Monitor].
func (f *fitting) checkMonitor() error {
	names := []string{"loss"}
	for _, m := range f.built.Metrics {
		if slices.Contains(names, m.Name()) {
			return status.InvalidArgumentf("train: two values have the name %q; give one metric another name", m.Name())
		}
		names = append(names, m.Name())
	}
	if f.options.Validation != nil {
		for _, n := range slices.Clone(names) {
			names = append(names, "val_"+n)
		}
	}
	if slices.Contains(names, f.options.Monitor) {
		return nil
	}
	return status.InvalidArgumentf("train: there is no value %q to monitor; there are %q", f.options.Monitor, names)
}

// setWeights sets the variables of the model to values by name. Variables without one keep theirs.
func (f *fitting) setWeights(ctx context.Context, sess Session, weights map[string]tensor.Tensor) error {
	feeds := map[graph.Output]tensor.Tensor{}
	var nodes []*graph.Node
	for i, v := range f.built.Variables {
		w, ok := weights[v.Name]
		if !ok {
			continue
		}
		if !w.Shape().Equal(v.Shape) {
			return status.InvalidArgumentf("train: the model has weights of shape %v for %s, which has shape %v", w.Shape(), v.Name, v.Shape)
		}
		feeds[f.values[i]] = w
		nodes = append(nodes, f.assign[i])
	}
	if len(nodes) == 0 {
		return nil
	}
	_, err := sess.Run(ctx, feeds, nil, nodes)
	return err
}

// weights returns the values of the variables of the model.
func (f *fitting) weights(ctx context.Context, sess Session) (map[string]tensor.Tensor, error) {
	outs := make([]op.Output, len(f.built.Variables))
	for i, v := range f.built.Variables {
		outs[i] = v.Value
	}
	out := map[string]tensor.Tensor{}
	if len(outs) == 0 {
		return out, nil
	}
	values, err := sess.Run(ctx, nil, outs, nil)
	if err != nil {
		return nil, err
	}
	for i, v := range f.built.Variables {
		// the value may share its memory with the variable
		if out[v.Name], err = values[i].Clone(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
