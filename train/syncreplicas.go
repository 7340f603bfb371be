package train

import (
	"context"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// SyncReplicasOptimizer trains replicas of a model synchronously. Each replica has a graph and a
// client of its own. The gradients of ReplicasToAggregate replicas are averaged and applied
// together, and stale gradients, which were computed with older values of the variables, are
// dropped (Chen et al., 2016).
//
// Each replica adds its gradients to accumulators on the devices of the variables and then waits
// for a token. A goroutine of the chief takes the averages from the accumulators, applies them, and
// puts a token with the new global step into a queue for each replica. Every worker passes the hook
// of [SyncReplicasOptimizer.MakeSessionRunHook] to its monitored session. The operations and their
// shared names are TensorFlow's, so workers of Weft and TensorFlow can train one model together.
type SyncReplicasOptimizer struct {
	Optimizer           Optimizer // applies the averages
	ReplicasToAggregate int       // number of gradients in an average
	// TotalNumReplicas is the number of workers. Workers beyond ReplicasToAggregate are backups. If
	// there are fewer workers, each computes several gradients for an average.
	TotalNumReplicas int
	// VariableAverages maintains averages of variables, which are updated after each step; nil for
	// none.
	VariableAverages *MovingAverages

	scope *op.Scope
	step  *Variable
	// global step of the variables that this worker's gradients are computed from
	localStep *Variable
	queue     op.Output    // queue of tokens
	localInit *graph.Node  // initializes localStep
	chiefInit *graph.Node  // initializes localStep and the accumulators
	ready     op.Output    // names of uninitialized variables that localInit and chiefInit need
	runner    *QueueRunner // of the chief's steps
}

// NewSyncReplicasOptimizer returns an optimizer that averages replicasToAggregate gradients, of
// totalNumReplicas workers.
func NewSyncReplicasOptimizer(opt Optimizer, replicasToAggregate, totalNumReplicas int) *SyncReplicasOptimizer {
	return &SyncReplicasOptimizer{Optimizer: opt, ReplicasToAggregate: replicasToAggregate, TotalNumReplicas: totalNumReplicas}
}

// Minimize adds the gradients of loss with respect to all trainable variables and passes them to
// [SyncReplicasOptimizer.ApplyGradients].
func (o *SyncReplicasOptimizer) Minimize(s *op.Scope, loss op.Output, step *Variable) *graph.Node {
	return o.ApplyGradients(s, ComputeGradients(s, loss), step)
}

// ApplyGradients adds the nodes with which a worker and the chief handle the gradients of one
// worker. It returns the node that a worker runs in each training step, or nil after a build error.
// step, the global step, must not be nil. ApplyGradients may be called once.
func (o *SyncReplicasOptimizer) ApplyGradients(s *op.Scope, grads []GradientVariable, step *Variable) *graph.Node {
	switch {
	case s.Err() != nil:
		return nil
	case step == nil:
		s.Fail(status.InvalidArgumentf("Global step is required to check staleness"))
		return nil
	case o.step != nil:
		s.Fail(status.FailedPreconditionf("train: ApplyGradients of this SyncReplicasOptimizer was called before"))
		return nil
	case o.ReplicasToAggregate < 1 || o.TotalNumReplicas < 1:
		s.Fail(status.InvalidArgumentf("train: SyncReplicasOptimizer cannot average %d gradients of %d replicas", o.ReplicasToAggregate, o.TotalNumReplicas))
		return nil
	}
	o.scope, o.step = s.WithoutControlDependencies(), step
	anchor := op.NoOp(o.scope) // has the device of the worker
	o.localStep = NewVariable(o.scope.ColocateWith(anchor), "sync_rep_local_step", tensor.Shape{}, step.DType, Zeros, Local())
	o.localInit = o.localStep.Assign(o.scope, step.Value)
	o.ready = reportUninitialized(o.scope, Variables(s, GlobalVariables))

	inner := o.scope.SubScope("sync_replicas")
	accs := o.accumulate(inner, grads)
	if s.Err() != nil {
		return nil
	}
	return o.addSteps(accs)
}

// accumulators are the accumulators of a graph, one for each gradient.
type accumulators struct {
	applied  []*graph.Node      // add the worker's gradients
	averages []GradientVariable // taken by the chief
	handles  []op.Output
	devices  []string // of handles
}

// accumulate adds an accumulator on the device of each variable that has a gradient.
func (o *SyncReplicasOptimizer) accumulate(s *op.Scope, grads []GradientVariable) *accumulators {
	accs := &accumulators{}
	for _, g := range grads {
		if g.Grad.IsNone() {
			continue
		}
		near := onDevice(s, g.Var.Handle.Node.Device)
		name := g.Var.Name + ":0/grad_accum"
		if g.Grad.Slices != nil {
			accs.addSparse(near, g, name, o)
		} else {
			accs.addDense(near, g, name, o)
		}
		accs.devices = append(accs.devices, g.Var.Handle.Node.Device)
	}
	return accs
}

// onDevice returns a scope with a device, or s if dev is empty.
func onDevice(s *op.Scope, dev string) *op.Scope {
	if dev == "" {
		return s
	}
	return s.WithDevice(dev)
}

func (a *accumulators) addDense(s *op.Scope, g GradientVariable, name string, o *SyncReplicasOptimizer) {
	dtype := g.Grad.Dense.DType().Base()
	acc := op.ConditionalAccumulator(s.Named("conditional_accumulator"), dtype, g.Var.Shape.Partial(), op.ConditionalAccumulatorSharedName(name))
	a.handles = append(a.handles, acc)
	a.applied = append(a.applied, op.AccumulatorApplyGradient(s, acc, asInt64(s, o.localStep.Value), g.Grad.Dense))
	mean := op.AccumulatorTakeGradient(s, acc, op.Const(s, int32(o.ReplicasToAggregate)), dtype)
	a.averages = append(a.averages, GradientVariable{gradients.Of(mean), g.Var})
}

func (a *accumulators) addSparse(s *op.Scope, g GradientVariable, name string, o *SyncReplicasOptimizer) {
	rows := g.Grad.Slices
	dtype := rows.Values.DType().Base()
	acc := op.SparseConditionalAccumulator(
		s.Named("sparse_conditional_accumulator"), dtype, tensor.MakePartial(), op.SparseConditionalAccumulatorSharedName(name))
	a.handles = append(a.handles, acc)
	shape, known := rows.Shape, rows.Shape.Node != nil
	if !known {
		shape = noInt64s(s)
	}
	a.applied = append(a.applied, op.SparseAccumulatorApplyGradient(
		s, acc, asInt64(s, o.localStep.Value), asInt64(s, rows.Indices), rows.Values, asInt64(s, shape), known))
	indices, values, full := op.SparseAccumulatorTakeGradient(s, acc, op.Const(s, int32(o.ReplicasToAggregate)), dtype)
	mean := gradients.Grad{Slices: &gradients.IndexedSlices{Values: values, Indices: indices, Shape: full}}
	a.averages = append(a.averages, GradientVariable{mean, g.Var})
}

func asInt64(s *op.Scope, x op.Output) op.Output { return castTo(s, x, tensor.Int64) }

// noInt64s adds an empty int64 vector.
func noInt64s(s *op.Scope) op.Output {
	t, err := tensor.FromSlice(tensor.Shape{0}, []int64{})
	if err != nil {
		s.Fail(err)
		return op.Output{}
	}
	return op.Const(s, t)
}

// addSteps adds the step of the chief and the step of a worker, and returns the latter.
func (o *SyncReplicasOptimizer) addSteps(accs *accumulators) *graph.Node {
	near := onDevice(o.scope, o.step.Handle.Node.Device)
	update := ApplyGradients(near, o.Optimizer, accs.averages, o.step)
	o.queue = op.FIFOQueueV2(near.Named("sync_token_q"), []tensor.DType{o.step.DType}, op.FIFOQueueV2Shapes([]tensor.PartialShape{tensor.MakePartial()}),
		op.FIFOQueueV2Capacity(-1), op.FIFOQueueV2SharedName("sync_token_q"))

	waiting := near.WithControlDependencies(accs.applied...)
	token := op.QueueDequeueV2(waiting.Named("sync_token_q_Dequeue"), o.queue, []tensor.DType{o.step.DType})
	if len(token) == 0 {
		return nil
	}
	step := o.localStep.Assign(near, token[0])

	after := near.WithControlDependencies(update)
	sync := o.enqueueTokens(after, max(o.TotalNumReplicas, o.ReplicasToAggregate))
	if o.VariableAverages != nil {
		sync = o.VariableAverages.Apply(near.WithControlDependencies(sync))
	}
	o.runner = NewQueueRunner(o.scope, o.queue, sync)

	init := []*graph.Node{o.localInit}
	for i, acc := range accs.handles {
		s := onDevice(o.scope, accs.devices[i])
		init = append(init, op.AccumulatorSetGlobalStep(s.Named("SetGlobalStep"), acc, asInt64(s, o.step.Value)))
	}
	o.chiefInit = op.Group(o.scope, init...)
	return step
}

// enqueueTokens adds a node that puts n tokens with the current global step into the queue.
func (o *SyncReplicasOptimizer) enqueueTokens(s *op.Scope, n int) *graph.Node {
	tokens := op.Fill(s, op.Const(s, []int32{int32(n)}), o.step.Read(s))
	return op.QueueEnqueueManyV2(s.Named("sync_token_q_EnqueueMany"), o.queue, []op.Output{tokens})
}

// ChiefQueueRunner returns the queue runner that runs the chief's steps, or nil before
// [SyncReplicasOptimizer.ApplyGradients]. The hook of the chief starts it.
func (o *SyncReplicasOptimizer) ChiefQueueRunner() *QueueRunner { return o.runner }

// InitTokensOp adds a node that puts n initial tokens into the queue, or ReplicasToAggregate tokens
// if n is negative. The chief runs the node once; its hook does so. n must be at least
// ReplicasToAggregate - TotalNumReplicas (InvalidArgument). It must be called after
// [SyncReplicasOptimizer.ApplyGradients] (FailedPrecondition).
func (o *SyncReplicasOptimizer) InitTokensOp(n int) (*graph.Node, error) {
	if o.runner == nil {
		return nil, status.FailedPreconditionf("get_init_tokens_op() should be called after apply_gradients().")
	}
	needed := o.ReplicasToAggregate - o.TotalNumReplicas
	if n < 0 {
		n = o.ReplicasToAggregate
	}
	if n < needed {
		return nil, status.InvalidArgumentf("Too few tokens to finish the first step: %d (given) vs %d (needed)", n, needed)
	}
	if n == 0 {
		return op.NoOp(o.scope.Named("no_init_tokens")), nil
	}
	return o.enqueueTokens(onDevice(o.scope, o.step.Handle.Node.Device), n), nil
}

// MakeSessionRunHook returns the hook for the monitored session of a worker. The hook of the chief
// initializes the accumulators, puts the initial tokens into the queue and runs the chief's steps.
func (o *SyncReplicasOptimizer) MakeSessionRunHook(isChief bool) SessionRunHook {
	return o.MakeSessionRunHookWithTokens(isChief, -1)
}

// MakeSessionRunHookWithTokens is [SyncReplicasOptimizer.MakeSessionRunHook] with the number of
// initial tokens, as in [SyncReplicasOptimizer.InitTokensOp].
func (o *SyncReplicasOptimizer) MakeSessionRunHookWithTokens(isChief bool, tokens int) SessionRunHook {
	return &syncReplicasHook{opt: o, chief: isChief, tokens: tokens}
}

// syncReplicasHook initializes the state of synchronous training.
type syncReplicasHook struct {
	BaseHook
	opt    *SyncReplicasOptimizer
	chief  bool
	tokens int         // initial tokens
	first  *graph.Node // puts the initial tokens into the queue; nil unless chief
	leave  *graph.Node // puts one token into the queue; nil for the chief, which closes the queue
}

// Begin implements [SessionRunHook].
func (h *syncReplicasHook) Begin(*op.Scope) (err error) {
	if h.opt.runner == nil {
		return status.FailedPreconditionf("SyncReplicasOptimizer.apply_gradient should be called before using the hook.")
	}
	if h.chief {
		h.first, err = h.opt.InitTokensOp(h.tokens)
	} else {
		h.leave = h.opt.enqueueTokens(onDevice(h.opt.scope, h.opt.step.Handle.Node.Device), 1)
	}
	return err
}

// AfterCreateSession implements [SessionRunHook].
func (h *syncReplicasHook) AfterCreateSession(ctx context.Context, sess Session, coord *Coordinator) error {
	missing, err := notReady(ctx, sess, h.opt.ready)
	if err != nil {
		return err
	}
	if missing != "" {
		return status.FailedPreconditionf("Init operations did not make model ready for SyncReplicasOptimizer local_init: %s", missing)
	}
	if !h.chief {
		_, err := sess.Run(ctx, nil, nil, []*graph.Node{h.opt.localInit})
		return err
	}
	for _, n := range []*graph.Node{h.opt.chiefInit, h.first} {
		if _, err := sess.Run(ctx, nil, nil, []*graph.Node{n}); err != nil {
			return err
		}
	}
	h.opt.runner.Start(sess, coord)
	return nil
}

// End implements [SessionRunHook]. A worker that leaves puts a token into the queue. The token that
// it has taken last may have been meant for another worker, which would otherwise wait forever.
func (h *syncReplicasHook) End(ctx context.Context, sess Session) error {
	if h.leave != nil {
		// if the queue is closed or gone, no worker waits for it
		_, _ = sess.Run(ctx, nil, nil, []*graph.Node{h.leave})
	}
	return nil
}
