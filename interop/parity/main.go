// Program parity trains a small model with every optimizer, or with two synchronized replicas, and
// prints the losses as JSON, one list per optimizer. interop/test_parity.py trains the same model
// in Python and compares. With --replica, the program is one of the two replicas: it runs one step
// per input line and prints the loss.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

type config struct {
	target   string
	peer     string // target of the second worker; empty if there is none
	steps    int
	resource bool
	replica  int // the only replica to train; -1 for both
}

func main() {
	var c config
	flag.StringVar(&c.target, "target", "", "target of the first worker")
	flag.StringVar(&c.peer, "peer", "", "target of the second worker; trains two synchronized replicas")
	flag.IntVar(&c.steps, "steps", 200, "training steps")
	flag.BoolVar(&c.resource, "resource", false, "use resource variables")
	flag.IntVar(&c.replica, "replica", -1, "train only this replica of two; another program trains the other")
	flag.Parse()
	if err := c.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(1)
	}
}

func (c *config) run(ctx context.Context) (err error) {
	if c.replica >= 0 {
		return c.trainReplica(ctx)
	}
	losses := map[string][]float32{}
	if c.peer != "" {
		losses["SyncReplicas"], err = c.trainInStep(ctx)
	} else {
		err = c.trainWithAll(ctx, losses)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(losses)
}

func (c *config) trainWithAll(ctx context.Context, losses map[string][]float32) (err error) {
	for _, name := range slices.Sorted(maps.Keys(optimizers)) {
		if losses[name], err = c.train(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

var optimizers = map[string]func(step *train.Variable) train.Optimizer{
	"GradientDescent": func(*train.Variable) train.Optimizer { return train.NewGradientDescent(0.1) },
	"Momentum":        func(*train.Variable) train.Optimizer { return train.NewMomentum(0.02, 0.9) },
	"Nesterov": func(*train.Variable) train.Optimizer {
		return &train.Momentum{Rate: 0.02, Momentum: 0.9, Nesterov: true}
	},
	"RMSProp": func(*train.Variable) train.Optimizer { return train.NewRMSProp(0.005) },
	"CenteredRMSProp": func(*train.Variable) train.Optimizer {
		return &train.RMSProp{Rate: 0.005, Decay: 0.9, Momentum: 0.5, Epsilon: 1e-3, Centered: true}
	},
	"Adagrad":   func(*train.Variable) train.Optimizer { return train.NewAdagrad(0.1) },
	"AdagradDA": func(step *train.Variable) train.Optimizer { return train.NewAdagradDA(0.1, step) },
	"Adadelta":  func(*train.Variable) train.Optimizer { return train.NewAdadelta(1) },
	"Adam":      func(*train.Variable) train.Optimizer { return train.NewAdam(0.01) },
	"Ftrl":      func(*train.Variable) train.Optimizer { return train.NewFtrl(0.1) },
	"ProximalGradientDescent": func(*train.Variable) train.Optimizer {
		return &train.ProximalGradientDescent{Rate: 0.1, L1: 1e-3, L2: 1e-3}
	},
	"ProximalAdagrad": func(*train.Variable) train.Optimizer {
		return &train.ProximalAdagrad{Rate: 0.1, Initial: 0.1, L1: 1e-3, L2: 1e-3}
	},
}

// Sizes of the model.
const (
	inputs, rows, units, classes, batch = 8, 10, 6, 3, 16
)

// model has variables with dense gradients and one with sparse gradients.
type model struct {
	scope     *op.Scope
	x, ids, y op.Output // [batch, inputs] float32, [batch] int32, [batch] int32
	loss      op.Output
	step      *train.Variable
}

func newModel(worker int, resource bool) *model {
	s := op.NewScope()
	s.SetSeed(7)
	s = s.WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{PSTasks: 1, WorkerDevice: fmt.Sprintf("/job:worker/task:%d", worker)}))
	m := &model{
		scope: s, x: op.Placeholder(s, tensor.Float32), ids: op.Placeholder(s, tensor.Int32), y: op.Placeholder(s, tensor.Int32),
		step: train.GlobalStep(s),
	}
	var opts []train.VariableOption
	if resource {
		opts = append(opts, train.Resource())
	}
	variable := func(name string, seed int64, dims ...int64) *train.Variable {
		return train.NewVariable(s, name, dims, tensor.Float32, train.TruncatedNormal(0, 0.5, train.Seed(seed)), opts...)
	}
	table, hidden, out := variable("table", 1, rows, units), variable("hidden", 2, inputs, units), variable("out", 3, units, classes)
	h := op.Tanh(s, op.AddV2(s, op.MatMul(s, m.x, hidden.Value), train.EmbeddingLookup(s, []*train.Variable{table}, m.ids)))
	losses, _ := op.SparseSoftmaxCrossEntropyWithLogits(s, op.MatMul(s, h, out.Value), m.y)
	m.loss = op.Mean(s, losses, op.Const(s, []int32{0}))
	return m
}

// feeds returns batch n, which a linear congruential generator computes.
func (m *model) feeds(n int) (map[op.Output]tensor.Tensor, error) {
	state := uint32(n + 1)
	next := func() uint32 {
		state = (state*1103515245 + 12345) % (1 << 31)
		return state >> 8
	}
	x, ids, y := make([]float32, 0, batch*inputs), make([]int32, batch), make([]int32, batch)
	for i := range batch {
		ids[i] = int32(next() % rows)
		y[i] = ids[i] % classes
		for range inputs {
			x = append(x, float32(next()%1000)/1000+float32(y[i])/4)
		}
	}
	t, err := tensor.FromSlice(tensor.Shape{batch, inputs}, x)
	return map[op.Output]tensor.Tensor{m.x: t, m.ids: tensor.Vector(ids...), m.y: tensor.Vector(y...)}, err
}

// train trains with one optimizer on worker 0.
func (c *config) train(ctx context.Context, name string) ([]float32, error) {
	m := newModel(0, c.resource)
	update := train.Minimize(m.scope, optimizers[name](m.step), m.loss, m.step)
	init := train.VariablesInitializer(m.scope)
	g, err := m.scope.Finalize()
	if err != nil {
		return nil, err
	}
	sess, err := weft.NewSession(c.target, g)
	if err != nil {
		return nil, err
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []*graph.Node{init}); err != nil {
		return nil, err
	}
	losses := make([]float32, c.steps)
	for i := range losses {
		if losses[i], err = m.run(ctx, sess, i, update); err != nil {
			return nil, err
		}
	}
	return losses, nil
}

// run runs one step with batch n and returns the loss before the update.
func (m *model) run(ctx context.Context, sess train.Session, n int, update *graph.Node) (float32, error) {
	feeds, err := m.feeds(n)
	if err != nil {
		return 0, err
	}
	out, err := sess.Run(ctx, feeds, []op.Output{m.loss}, []*graph.Node{update})
	if err != nil {
		return 0, err
	}
	return tensor.Value[float32](&out[0]), nil
}

// trainInStep trains two replicas, each with its own batches, and returns their losses in
// alternation. The replicas wait for each other after each step and start without tokens, so that
// each contributes one gradient to every average.
func (c *config) trainInStep(ctx context.Context) ([]float32, error) {
	losses := make([]float32, 2*c.steps)
	var replicas [2]*replica
	for task, target := range []string{c.target, c.peer} {
		r, err := newReplica(ctx, target, task, c.resource)
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }()
		replicas[task] = r
	}
	for i := range c.steps {
		failed := make(chan error, 2)
		for task, r := range replicas {
			go func() {
				loss, err := r.run(ctx, r, 2*i+task, r.update)
				losses[2*i+task] = loss
				failed <- err
			}()
		}
		for range replicas {
			if err := <-failed; err != nil {
				return nil, err
			}
		}
	}
	return losses, nil
}

// replica is one of two synchronized replicas.
type replica struct {
	*model
	*train.MonitoredSession
	update *graph.Node
}

// newReplica returns a replica once replica 0 has initialized the model.
func newReplica(ctx context.Context, target string, task int, resource bool) (*replica, error) {
	m := newModel(task, resource)
	opt := train.NewSyncReplicasOptimizer(train.NewAdam(0.01), 2, 2)
	update := opt.Minimize(m.scope, m.loss, m.step)
	sess, err := train.MonitoredTrainingSession(ctx, m.scope, train.TrainingOptions{
		Master: target, IsChief: task == 0, Hooks: []train.SessionRunHook{opt.MakeSessionRunHookWithTokens(task == 0, 0)},
	})
	return &replica{m, sess, update}, err
}

// trainReplica runs one step per input line and prints the loss.
func (c *config) trainReplica(ctx context.Context) error {
	r, err := newReplica(ctx, c.target, c.replica, c.resource)
	if err != nil {
		return err
	}
	steps := bufio.NewScanner(os.Stdin)
	for i := 0; steps.Scan(); i++ {
		loss, err := r.run(ctx, r, 2*i+c.replica, r.update)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, loss)
	}
	return r.Close()
}
