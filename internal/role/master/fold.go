package master

import (
	"context"
	"math"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/opkit/ophistory"
	"github.com/weft-ml/weft/internal/pass/optimize"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/mono"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// optimizeOptions returns the graph passes that the session's configuration enables.
func (s *session) optimizeOptions(g *graph.Graph) optimize.Options {
	shapes, err := graph.InferShapes(g)
	if err != nil { // the step reports it, if it runs such a node
		s.master.Log.Debug("shapes of a graph contradict each other", "session", s.handle, "error", err)
	}
	f := &folder{master: s.master, ctx: s.ctx, left: maxFoldTime}
	options := optimize.Options{Eval: f.eval, Shape: shapes.Of}
	o := s.config.GetGraphOptions().GetOptimizerOptions()
	if o.GetOptLevel() == pb.OptimizerOptions_L0 {
		if !o.GetDoConstantFolding() {
			options.Without = append(options.Without, "shapes", "constants")
		}
		if !o.GetDoCommonSubexpressionElimination() {
			options.Without = append(options.Without, "subexpressions")
		}
	}
	rewrite := s.config.GetGraphOptions().GetRewriteOptions()
	if rewrite.GetConstantFolding() == pb.RewriterConfig_OFF {
		options.Without = append(options.Without, "shapes", "constants")
	}
	if rewrite.GetLoopOptimization() == pb.RewriterConfig_OFF || rewrite.GetDisableMetaOptimizer() {
		options.Without = append(options.Without, "branches")
	}
	if rewrite.GetDependencyOptimization() == pb.RewriterConfig_OFF || rewrite.GetDisableMetaOptimizer() {
		options.Without = append(options.Without, "unused")
	}
	return options
}

// maxFoldTime bounds the time for the constants of one graph. What is not computed by then stays in
// the graph: the step computes it, until its deadline. A small output may take hours, as the
// singular values of a large matrix, and a graph may have a million such nodes.
const maxFoldTime = 10 * time.Second

// folder computes nodes whose inputs are constants, as long as the session exists and there is
// time.
type folder struct {
	master *Master
	ctx    context.Context // of the session
	left   time.Duration
}

func (f *folder) eval(n *graph.Node, inputs []tensor.Tensor) ([]tensor.Tensor, error) {
	if f.left <= 0 {
		return nil, status.DeadlineExceededf("the constants of the graph take too long")
	}
	ctx, cancel := context.WithTimeout(f.ctx, f.left)
	defer cancel()
	began := mono.Nanos()
	defer func() { f.left -= time.Duration(mono.Nanos() - began) }()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return f.master.eval(ctx, n, inputs)
}

// eval computes a node whose inputs are constants.
func (m *Master) eval(ctx context.Context, n *graph.Node, inputs []tensor.Tensor) (outputs []tensor.Tensor, err error) {
	device := &kernel.Device{Name: "/device:CPU:0", Type: kernel.CPU, Resources: kernel.NewResources("")}
	impl := m.Kernels.Find(n.Op.Name, device.Type, n.Attrs)
	if impl == nil {
		return nil, status.NotFoundf("%s has no kernel", n.Op.Name)
	}
	if err := ophistory.CheckAvailable(n.Op.Name, math.MaxInt); err != nil {
		return nil, err // the worker knows the version of the graph
	}
	if n.Op.Class != 0 { // it may use files, which are those of the task that it is placed on
		return nil, status.Unimplementedf("%s is of class %v", n.Op.Name, n.Op.Class)
	}
	defer func() {
		if r := recover(); r != nil {
			err = status.Internalf("the kernel of %s panicked: %v", n.Name, r)
		}
	}()
	k, err := impl.New(&kernel.Construction{
		Node: n.Name, Op: n.Op, Attrs: n.Attrs, Inputs: n.InTypes, Outputs: n.OutTypes, Device: device,
	})
	if err != nil {
		return nil, err
	}
	if _, waits := k.(kernel.Async); waits {
		return nil, status.Unimplementedf("%s is asynchronous", n.Op.Name)
	}
	return compute(ctx, k, n, device, inputs)
}

func compute(stepCtx context.Context, k kernel.Kernel, n *graph.Node, d *kernel.Device, inputs []tensor.Tensor) ([]tensor.Tensor, error) {
	ins, outs := make([]kernel.Value, len(inputs)), make([]kernel.Value, len(n.OutTypes))
	for i := range inputs {
		ins[i].Tensor = inputs[i].Retain()
	}
	ctx := &kernel.Context{
		Device: d, Node: n.Name,
		Step: &kernel.Step{Context: stepCtx, Resources: kernel.NewResources("")},
	}
	ctx.Bind(ins, outs, n.OutTypes)
	err := k.Compute(ctx)
	for i := range ins {
		ins[i].Release()
	}
	out := make([]tensor.Tensor, len(outs))
	for i := range outs {
		if err == nil && (!outs[i].Tensor.Initialized() || outs[i].Tensor.DType() != n.OutTypes[i]) {
			err = status.Internalf("%s did not make output %d", n.Name, i)
		}
		out[i] = outs[i].Tensor
	}
	if err != nil {
		for i := range out {
			out[i].Release()
		}
		return nil, err
	}
	return out, nil
}
