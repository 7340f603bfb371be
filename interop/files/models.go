package main

import (
	"context"
	"path/filepath"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

type (
	scope = op.Scope
	outs  = []op.Output
)

// model is a graph with both kinds of variables, a loop in a condition, a function, and gradients.
type model struct {
	s       *scope
	x       op.Output
	results map[string]op.Output
	init    *graph.Node
	saver   *train.Saver
}

// newModel returns the model. For positive x, a vector of two numbers, it applies y = sin(y·w)·v
// three times; otherwise it computes f(x), its square. A plain model has no function and no
// operation that is newer than TensorFlow 1.4.
func newModel(plain bool) (*model, error) {
	s := op.NewScope()
	m := &model{s: s, x: op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(2)))}
	constant := func(v ...float32) train.Initializer {
		return func(s *op.Scope, _ tensor.Shape, _ tensor.DType) op.Output { return op.Const(s, v) }
	}
	w := train.NewVariable(s, "w", tensor.Shape{2}, tensor.Float32, constant(0.5, 2))
	v := train.NewVariable(s, "v", tensor.Shape{2}, tensor.Float32, constant(1.5, -1), train.Resource())
	axis, zero := op.Const(s, []int32{0}), op.Const(s, float32(0))
	square := func(s *scope, x outs) outs { return outs{op.Square(s, x[0])} }
	otherwise, increment := func(s *scope) outs { return square(s, outs{m.x}) }, op.Add
	if !plain {
		f := op.NewFunction(s, "squared", []tensor.DType{tensor.Float32}, square)
		otherwise, increment = func(s *scope) outs { return op.Call(s, f, m.x) }, op.AddV2
	}
	y := op.Cond(s.Named("choose"), op.Greater(s, op.Sum(s, m.x, axis), zero),
		func(s *scope) outs {
			loop := op.WhileLoop(s, outs{op.Const(s, int32(0)), m.x},
				func(s *scope, at outs) op.Output { return op.Less(s, at[0], op.Const(s, int32(3))) },
				func(s *scope, at outs) outs {
					next := op.Mul(s, op.Sin(s, op.Mul(s, at[1], w.Read(s))), v.Read(s))
					return outs{increment(s, at[0], op.Const(s, int32(1))), next}
				})
			return loop[1:]
		},
		otherwise)
	if err := s.Err(); err != nil {
		return nil, err
	}
	m.results = map[string]op.Output{"y": op.Identity(s.Named("y"), y[0])}
	for i, g := range gradients.Compute(s, outs{m.results["y"]}, outs{m.x, w.Handle, v.Handle}) {
		name := []string{"dx", "dw", "dv"}[i]
		m.results[name] = op.Identity(s.Named(name), gradients.Densify(s, g))
	}
	m.init = train.VariablesInitializer(s.Named("init"), w, v)
	m.saver = train.NewSaver(s, train.SaverOptions{})
	return m, s.Err()
}

// points are the inputs of models, one for each branch.
var points = map[string][]float32{"up": {0.5, 1.25}, "down": {-0.5, -1.25}}

// values runs the results for all points. The prefix of the node names in each run is in.
func values(run func(x []float32, name string) (tensor.Tensor, error), names []string) (map[string]any, error) {
	held := map[string]any{}
	for at, x := range points {
		for _, name := range names {
			t, err := run(x, name)
			if err != nil {
				return nil, err
			}
			held[at+"/"+name] = t.Go()
		}
	}
	return held, nil
}

var resultNames = []string{"y", "dx", "dw", "dv"}

// writeModels writes the model, and the plain one into the folder plain.
func writeModels(ctx context.Context, dir string, held contents) error {
	values, err := writeModel(ctx, dir, false)
	if err != nil {
		return err
	}
	held["model"] = values
	_, err = writeModel(ctx, filepath.Join(dir, "plain"), true)
	return err
}

// writeModel writes a model in several forms and returns its results.
func writeModel(ctx context.Context, dir string, plain bool) (map[string]any, error) {
	m, err := newModel(plain)
	if err != nil {
		return nil, err
	}
	sess, err := weft.NewSession("local", m.s.Graph())
	if err != nil {
		return nil, err
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []*graph.Node{m.init}); err != nil {
		return nil, err
	}
	held, err := values(func(x []float32, name string) (tensor.Tensor, error) {
		t, err := sess.Run(ctx, map[op.Output]tensor.Tensor{m.x: tensor.Vector(x...)}, outs{m.results[name]}, nil)
		if err != nil {
			return tensor.Tensor{}, err
		}
		return t[0], nil
	}, resultNames)
	if err != nil {
		return nil, err
	}
	if _, err := m.saver.Save(ctx, sess, filepath.Join(dir, "saved"), train.NoStep); err != nil {
		return nil, err
	}
	signature := savedmodel.Signature{
		Inputs:  map[string]savedmodel.TensorInfo{"x": savedmodel.InfoOf(m.x, tensor.MakePartial(2))},
		Outputs: map[string]savedmodel.TensorInfo{}, Method: savedmodel.MethodPredict,
	}
	for name, o := range m.results {
		signature.Outputs[name] = savedmodel.InfoOf(o, tensor.MakePartial(2))
	}
	export := train.Export{
		Dir: filepath.Join(dir, "model"), Signatures: map[string]savedmodel.Signature{savedmodel.DefaultSignature: signature},
	}
	if err := export.SaveModel(ctx, sess, m.s, m.saver); err != nil {
		return nil, err
	}
	frozen, err := serve.Freeze(ctx, "local", export.Dir, []string{"y:0"})
	if err != nil {
		return nil, err
	}
	if err := savedmodel.WriteGraph(filepath.Join(dir, "frozen.pb"), frozen); err != nil {
		return nil, err
	}
	return held, writeStripped(m, filepath.Join(dir, "stripped.meta"))
}

// writeStripped writes the graph without default-valued attributes.
func writeStripped(m *model, path string) error {
	meta, err := train.ExportMetaGraph(m.s, m.saver)
	if err != nil {
		return err
	}
	meta.StripDefaults()
	return meta.WriteFile(path)
}

// readModels runs the SavedModel, the MetaGraph with its checkpoint, and the frozen graph in dir.
func readModels(ctx context.Context, dir string, held contents) error {
	m, err := serve.Load(ctx, "local", filepath.Join(dir, "model"))
	if err != nil {
		return err
	}
	defer m.Close()
	sig, err := m.Signature(savedmodel.DefaultSignature)
	if err != nil {
		return err
	}
	held["model"], err = values(func(x []float32, name string) (tensor.Tensor, error) {
		out, err := sig.RunTensors(ctx, map[string]tensor.Tensor{"x": tensor.Vector(x...)})
		return out[name], err
	}, resultNames)
	if err != nil {
		return err
	}
	meta, err := savedmodel.ReadMetaGraph(filepath.Join(dir, "saved.meta"))
	if err != nil {
		return err
	}
	s := op.NewScope()
	saver := train.ImportMetaGraph(s, meta, op.ImportOptions{ClearDevices: true}, train.SaverOptions{})
	restore := func(sess *weft.Session) error { return saver.Restore(ctx, sess, filepath.Join(dir, "saved")) }
	if held["saved"], err = runGraph(ctx, s, resultNames, restore); err != nil {
		return err
	}
	def, err := savedmodel.ReadGraph(filepath.Join(dir, "frozen.pb"))
	if err != nil {
		return err
	}
	s = op.NewScope()
	s.Import(def, op.ImportOptions{})
	held["frozen"], err = runGraph(ctx, s, []string{"y"}, func(*weft.Session) error { return nil })
	return err
}

// runGraph runs results of an imported graph by name.
func runGraph(ctx context.Context, s *scope, names []string, start func(*weft.Session) error) (map[string]any, error) {
	g, err := s.Finalize()
	if err != nil {
		return nil, err
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		return nil, err
	}
	defer sess.Close()
	if err := start(sess); err != nil {
		return nil, err
	}
	return values(func(x []float32, name string) (tensor.Tensor, error) {
		feeds := map[op.Output]tensor.Tensor{g.Node("x").Out(0): tensor.Vector(x...)}
		t, err := sess.Run(ctx, feeds, outs{g.Node(name).Out(0)}, nil)
		if err != nil {
			return tensor.Tensor{}, err
		}
		return t[0], nil
	}, names)
}
