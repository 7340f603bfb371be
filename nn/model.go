package nn

import (
	"context"
	"strings"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/sys/callsite"
	_ "github.com/weft-ml/weft/local" // models evaluate and predict in this process
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Model is a network with a loss and metrics. It implements [train.Model]. After [train.Fit] it
// holds the trained weights. Its methods must not be called concurrently.
type Model struct {
	Network Network // [Sequential], [Single] or a type of the program
	Loss    Loss
	Metrics []train.Metric
	// ClassWeights are factors of the losses by class, for labels that are indices of classes; nil
	// for 1. They do not apply to metrics.
	ClassWeights []float64
	// BFloat16 makes the layers compute in bfloat16, with variables, normalizations and losses in
	// float32: about half the memory for values, with the range of float32.
	BFloat16 bool

	weights map[string]tensor.Tensor
	loaded  string         // the checkpoint that the weights are from; "" for others
	types   []tensor.DType // of the inputs of the last Build
	shapes  []tensor.PartialShape
}

// Weights implements [train.Model].
func (m *Model) Weights() map[string]tensor.Tensor { return m.weights }

// SetWeights implements [train.Model].
func (m *Model) SetWeights(weights map[string]tensor.Tensor) { m.weights, m.loaded = weights, "" }

// context returns a context of the model in a graph.
func (m *Model) context(s *op.Scope, training bool) *Context {
	c := NewContext(s, training)
	if m.BFloat16 {
		c.compute = tensor.BFloat16
	}
	return c
}

// forward adds the network. The result is float32.
func (m *Model) forward(c *Context, inputs []op.Output) op.Output {
	if m.Network == nil {
		fail(c.Scope, "the model has no Network")
		return op.Output{}
	}
	y := m.Network.Forward(c, inputs)
	wide := widen(c.Scope, y)
	if wide != y {
		c.SetMask(wide, c.Mask(y))
	}
	return wide
}

// Build implements [train.Model].
func (m *Model) Build(s *op.Scope, inputs []op.Output, labels op.Output) *train.BuiltModel {
	c := m.context(s, true)
	m.types, m.shapes = nil, nil
	for _, in := range inputs {
		m.types, m.shapes = append(m.types, in.DType()), append(m.shapes, s.ShapeOf(in))
	}
	b := &train.BuiltModel{Metrics: m.Metrics}
	b.Training = m.measure(c, inputs, labels)
	if s.Err() != nil {
		return b
	}
	b.Evaluation = m.measure(c.For(false), inputs, labels)
	b.Variables, b.Updates = c.Variables(), c.Updates()
	if len(c.weights.limits) > 0 {
		b.Constrain = c.constrain
	}
	return b
}

// measure adds the network, its loss and its metrics.
func (m *Model) measure(c *Context, inputs []op.Output, labels op.Output) train.Measured {
	s := c.Scope
	y := m.forward(c, inputs)
	if m.Loss == nil {
		fail(s, "the model has no Loss")
	}
	if y.Node == nil || m.Loss == nil {
		return train.Measured{}
	}
	if labels.DType().Base() == tensor.String {
		fail(s, "the labels are strings; make them the indices of classes, as data.ReadCSV does")
		return train.Measured{}
	}
	scope := s.SubScope("loss")
	losses := m.Loss.Losses(scope, labels, y)
	if losses.Node == nil {
		return train.Measured{}
	}
	if m.ClassWeights != nil {
		losses = m.weigh(scope, losses, labels)
	}
	mask := c.Mask(y)
	if mask.Node != nil && s.ShapeOf(losses).Rank() != 2 {
		mask = op.Output{}
	}
	loss := meanLoss(scope, losses, mask)
	if terms := c.weights.penalties; len(terms) > 0 {
		loss = op.AddN(scope, append([]op.Output{loss}, terms...))
	}
	out := train.Measured{Loss: loss}
	for _, metric := range m.Metrics {
		near := s.SubScope(metric.Name())
		weights := op.Output{}
		if mask.Node != nil {
			weights = op.Cast(near, mask, tensor.Float32)
		}
		out.Sums = append(out.Sums, metric.Sums(near, labels, y, weights))
	}
	return out
}

// weigh multiplies losses by the weights of the classes of their labels.
func (m *Model) weigh(s *op.Scope, losses, labels op.Output) op.Output {
	factors := make([]float32, len(m.ClassWeights))
	for i, w := range m.ClassWeights {
		factors[i] = float32(w)
	}
	index := op.Reshape(s, op.Cast(s, labels, tensor.Int64), op.Shape(s, losses))
	return op.Mul(s, losses, op.GatherV2(s, op.Const(s, factors), index, op.Const(s, int32(0))))
}

// meanLoss adds the mean of the losses, of those that the mask keeps if there is one.
func meanLoss(s *op.Scope, losses, mask op.Output) op.Output {
	all := op.Range(s, op.Const(s, int32(0)), op.Rank(s, losses), op.Const(s, int32(1)))
	if mask.Node == nil {
		return op.Mean(s, losses, all)
	}
	keep := castLike(s, mask, losses)
	return op.DivNoNan(s, op.Sum(s, op.Mul(s, losses, keep), all), op.Sum(s, keep, all))
}

// constrain adds the constraints of variables.
func (c *Context) constrain(s *op.Scope) []*graph.Node {
	nodes := make([]*graph.Node, 0, len(c.weights.limits))
	for _, l := range c.weights.limits {
		near := s.ColocateWith(l.v.Handle.Node)
		nodes = append(nodes, l.v.Assign(near, l.to(near, l.v.Read(near))))
	}
	return nodes
}

// Variables returns the variables of all layers, in the order in which they were added.
func (c *Context) Variables() []*train.Variable {
	own := map[*train.Variable]bool{}
	for _, l := range c.weights.order {
		for _, v := range l.values {
			own[v] = true
		}
		for _, p := range l.tables {
			for _, v := range p.Parts {
				own[v] = true
			}
		}
	}
	var out []*train.Variable
	for _, v := range train.Variables(c.Scope, train.GlobalVariables) {
		if own[v] {
			out = append(out, v)
		}
	}
	return out
}

// running is a model in a session of this process.
type running struct {
	scope *op.Scope
	vars  []*train.Variable
	sess  *weft.Session
}

// start opens a session for a graph of the model, with the weights of the model.
func (m *Model) start(ctx context.Context, c *Context) (*running, error) {
	vars := c.Variables()
	values := make([]op.Output, len(vars))
	nodes := make([]*graph.Node, len(vars))
	feeds := weft.Feeds{}
	for i, v := range vars {
		w, ok := m.weights[v.Name]
		if !ok && m.loaded != "" {
			return nil, status.FailedPreconditionf("nn: the checkpoint %s has no weights for %s; is it that of another model?", m.loaded, v.Name)
		}
		if !ok {
			return nil, status.FailedPreconditionf("nn: the model has no weights for %s; train it with train.Fit, or call LoadWeights", v.Name)
		}
		if !w.Shape().Equal(v.Shape) {
			return nil, status.InvalidArgumentf("nn: the weights of %s have shape %v, want %v; is the input of another shape than in training, or are they those of another model?",
				v.Name, w.Shape(), v.Shape)
		}
		values[i] = op.Placeholder(c.Scope.SubScope("value"), v.DType, op.PlaceholderShape(v.Shape.Partial()))
		nodes[i] = v.Assign(c.Scope, values[i])
		feeds[values[i]] = w
	}
	g, err := c.Scope.Finalize()
	if err != nil {
		return nil, err
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		return nil, err
	}
	if len(nodes) > 0 {
		if err := sess.Exec(ctx, feeds, nodes...); err != nil {
			_ = sess.Close() // the first error counts
			return nil, err
		}
	}
	return &running{c.Scope, vars, sess}, nil
}

// Evaluate returns the mean loss ("loss") and the metrics by name over a data set, in this process.
func (m *Model) Evaluate(ctx context.Context, data train.Dataset) (map[string]float64, error) {
	ctx, line := callsite.Begin(ctx)
	loss, totals, err := m.evaluate(ctx, data)
	if err != nil {
		return nil, withLine(line, err)
	}
	values := map[string]float64{"loss": loss}
	for i, metric := range m.Metrics {
		values[metric.Name()] = metric.Result(totals[i])
	}
	return values, nil
}

// Total returns the sums of a metric over a data set, in this process. The method Matrix of a
// metrics.ConfusionMatrix makes counts of them. The metric need not be one of the model.
func (m *Model) Total(ctx context.Context, data train.Dataset, metric train.Metric) ([]float64, error) {
	ctx, line := callsite.Begin(ctx)
	own := m.Metrics
	m.Metrics = []train.Metric{metric}
	defer func() { m.Metrics = own }()
	_, totals, err := m.evaluate(ctx, data)
	if err != nil {
		return nil, withLine(line, err)
	}
	return totals[0], nil
}

// withLine puts the line of the program in front of an error that lacks it.
func withLine(line string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), line) {
		return err
	}
	return status.Errorf(status.CodeOf(err), "%s%w", line, err)
}

// evaluate returns the mean loss and the sums of each metric over a data set.
func (m *Model) evaluate(ctx context.Context, data train.Dataset) (mean float64, totals [][]float64, err error) {
	s := op.NewScope()
	types, shapes := data.Types()
	if len(types) < 2 {
		return 0, nil, status.InvalidArgumentf("nn: the data has %d columns; it needs inputs and, as the last one, labels", len(types))
	}
	batch := make([]op.Output, len(types))
	for i := range types {
		batch[i] = op.Placeholder(s, types[i], op.PlaceholderShape(shapes[i]))
	}
	c := m.context(s, false)
	last := len(batch) - 1
	measured := m.measure(c, batch[:last], batch[last])
	if err := s.Err(); err != nil {
		return 0, nil, err
	}
	run, err := m.start(ctx, c)
	if err != nil {
		return 0, nil, err
	}
	defer run.sess.Close()
	total := make([][]float64, len(m.Metrics))
	loss, count := 0.0, 0.0
	for tensors, err := range data.Batches(ctx, 0) {
		if err != nil {
			return 0, nil, err
		}
		feeds := weft.Feeds{}
		for i, p := range batch {
			feeds[p] = tensors[i]
		}
		out, err := run.sess.Fetch(ctx, feeds, append([]op.Output{measured.Loss}, measured.Sums...)...)
		if err != nil {
			return 0, nil, err
		}
		n := float64(tensors[last].Dim(0))
		loss, count = loss+n*float64(tensor.Value[float32](&out[0])), count+n
		for i := range total {
			sums := tensor.Values[float64](&out[i+1])
			if total[i] == nil {
				total[i] = make([]float64, len(sums))
			}
			for j, v := range sums {
				total[i][j] += v
			}
		}
	}
	if count == 0 {
		return 0, nil, status.InvalidArgumentf("nn: the data has no batches")
	}
	return loss / count, total, nil
}

// Predict returns the output of the network for a batch, in this process. The inputs are tensors or
// Go values that [tensor.New] accepts, with the batch as first dimension. Each call builds the
// graph; a program that predicts often saves the model and uses package savedmodel/serve.
func (m *Model) Predict(ctx context.Context, inputs ...any) (tensor.Tensor, error) {
	ctx, line := callsite.Begin(ctx)
	y, err := m.predict(ctx, inputs)
	if err != nil {
		return tensor.Tensor{}, withLine(line, err)
	}
	return y, nil
}

func (m *Model) predict(ctx context.Context, inputs []any) (tensor.Tensor, error) {
	s := op.NewScope()
	feeds := weft.Feeds{}
	var ins []op.Output
	var types []tensor.DType
	var shapes []tensor.PartialShape
	for i, v := range inputs {
		t, err := tensor.New(v)
		if err != nil {
			return tensor.Tensor{}, err
		}
		if t.Rank() == 0 {
			return tensor.Tensor{}, status.InvalidArgumentf("nn: input %d has no dimension for the batch", i)
		}
		shape := append([]int64{-1}, t.Shape()[1:]...)
		in := op.Placeholder(s, t.DType(), op.PlaceholderShape(tensor.MakePartial(shape...)))
		feeds[in] = t
		ins, types, shapes = append(ins, in), append(types, t.DType()), append(shapes, s.ShapeOf(in))
	}
	c := m.context(s, false)
	y := m.forward(c, ins)
	if err := s.Err(); err != nil {
		return tensor.Tensor{}, err
	}
	run, err := m.start(ctx, c)
	if err != nil {
		return tensor.Tensor{}, err
	}
	defer run.sess.Close()
	if m.types == nil {
		m.types, m.shapes = types, shapes
	}
	out, err := run.sess.Fetch(ctx, feeds, y)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return out[0].Clone()
}
