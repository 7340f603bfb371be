package train

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"log/slog"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// ringTimeout is the time, in seconds, after which a worker that waits for the others fails. It is
// that of a worker that waits for the chief ([MonitoredOptions]).
const ringTimeout = 1800

// ring adds the collective operations of workers that train copies of a model. All workers build
// the same graph, so that the n-th operation of one worker belongs to the n-th of the others.
type ring struct {
	workers int
	chief   bool
	roll    *roll
	key     op.Output     // int32, fed with the key of the group of workers
	group   tensor.Tensor // value of key
	next    int32         // instance key of the next operation
	more    op.Output     // 1 if the worker has another batch, otherwise 0
	onTask  bool          // operations compute more; otherwise the program feeds it
	all     op.Output     // number of workers that have another batch
	start   *graph.Node   // copies the variables of the chief
	mix     *graph.Node   // averages variables that are not trained (moving averages); or nil
	sums    exchange      // adds up vectors
	votes   exchange      // adds up vectors of one element; the sizes of an operation never change
	most    exchange      // takes the largest elements of vectors
}

// exchange is a reduction of a float64 vector.
type exchange struct{ in, out op.Output }

func newRing(s *op.Scope, c *FitCluster, log *slog.Logger) *ring {
	workers := len(c.Spec["worker"])
	return &ring{
		workers: workers, chief: c.Task == 0, roll: newRoll(s, c.Task, workers, log),
		key:  op.Placeholder(s.Named("fit_group"), tensor.Int32, op.PlaceholderShape(tensor.MakePartial())),
		more: op.Placeholder(s.Named("fit_more"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial())),
	}
}

// begin joins the workers. Each call of Fit has a group of its own: tasks remember groups with the
// incarnations of their devices, and a worker may have been restarted.
func (r *ring) begin(ctx context.Context, sess Session, fail func(error)) error {
	run, err := r.roll.begin(ctx, sess, fail)
	r.group = tensor.Scalar(int32(run & math.MaxInt32))
	return err
}

// feeds returns the feeds of all steps with collective operations.
func (r *ring) feeds() map[graph.Output]tensor.Tensor {
	return map[graph.Output]tensor.Tensor{r.key: r.group}
}

// number chooses the first instance key. Tasks remember operations by their keys, so models with
// other variables should have other keys.
func (r *ring) number(vars []*Variable) {
	h := fnv.New32a()
	for _, v := range vars {
		fmt.Fprint(h, v.Name, v.Shape)
	}
	const room = 1 << 12 // for the operations of one model
	r.next = int32(h.Sum32()%(1<<18)) * room
}

// reduce adds a reduction over all workers.
func (r *ring) reduce(s *op.Scope, x op.Output, merge, final string) op.Output {
	if x.Node == nil {
		return x
	}
	r.next++
	return op.CollectiveReduceV2(s, x, op.Const(s, int32(r.workers)), r.key, op.Const(s, r.next), nil, merge, final, op.CollectiveReduceV2TimeoutSeconds(ringTimeout))
}

// gradients adds the means of the gradients of all workers. One reduction does it for all of them,
// and counts the workers that have another batch.
func (r *ring) gradients(s *op.Scope, grads []GradientVariable) []GradientVariable {
	s = s.SubScope("all_reduce")
	flat := []op.Output{op.Reshape(s, r.more, op.Const(s, []int32{1}))}
	sizes := []int64{1}
	for _, g := range grads {
		if g.Grad.IsNone() {
			continue
		}
		dense := op.Cast(s, gradients.Densify(s, g.Grad), tensor.Float32)
		flat = append(flat, op.Reshape(s, dense, op.Const(s, []int32{-1})))
		sizes = append(sizes, g.Var.Shape.NumElements())
	}
	total := r.reduce(s, op.ConcatV2(s, flat, op.Const(s, int32(0))), "Add", "Id")
	parts := op.SplitV(s, total, op.Const(s, sizes), op.Const(s, int32(0)), int64(len(sizes)))
	if len(parts) != len(sizes) {
		return grads
	}
	r.all = parts[0]
	out, at := make([]GradientVariable, len(grads)), 1
	for i, g := range grads {
		out[i] = g
		if g.Grad.IsNone() {
			continue
		}
		mean := op.Mul(s, parts[at], op.Const(s, float32(1)/float32(r.workers)))
		out[i].Grad = gradients.Of(castTo(s, op.Reshape(s, mean, op.Const(s, []int64(g.Var.Shape))), g.Var.DType))
		at++
	}
	return out
}

// state adds what copies and averages variables, and what adds up measurements.
func (r *ring) state(s *op.Scope, model []*Variable) {
	s = s.SubScope("all_reduce")
	var copies, means []*graph.Node
	for _, v := range Variables(s, GlobalVariables) {
		value := v.Value
		if !r.chief {
			value = op.ZerosLike(s, value)
		}
		copies = append(copies, v.Assign(s, r.reduce(s, value, "Add", "Id")))
	}
	r.start = op.Group(s, copies...)
	for _, v := range model {
		if !v.Trainable && v.DType.IsFloating() {
			means = append(means, v.Assign(s, r.reduce(s, v.Value, "Add", "Div")))
		}
	}
	if len(means) > 0 {
		r.mix = op.Group(s, means...)
	}
	vector := op.PlaceholderShape(tensor.MakePartial(-1))
	for _, e := range []*exchange{&r.sums, &r.votes, &r.most} {
		e.in = op.Placeholder(s, tensor.Float64, vector)
	}
	r.sums.out = r.reduce(s, r.sums.in, "Add", "Id")
	r.votes.out = r.reduce(s, r.votes.in, "Add", "Id")
	r.most.out = r.reduce(s, r.most.in, "Max", "Id")
}

// run reduces a vector over all workers.
func (r *ring) run(ctx context.Context, sess Session, e *exchange, values []float64) ([]float64, error) {
	feeds := r.feeds()
	feeds[e.in] = tensor.Vector(values...)
	out, err := sess.Run(ctx, feeds, []op.Output{e.out}, nil)
	if err != nil {
		return nil, err
	}
	return append([]float64(nil), tensor.Values[float64](&out[0])...), nil
}

// agree fails if the workers have different options, and would wait for one another forever. It
// also tells them which calls of Fit belong together.
func (r *ring) agree(ctx context.Context, sess Session, o *FitOptions, metrics int) error {
	names := []string{"Epochs", "Validation (1 if it is set)", "number of metrics"}
	own := []float64{float64(o.Epochs), 0, float64(metrics)}
	if o.Validation != nil {
		own[1] = 1
	}
	both := own // with the negative values, whose largest is the smallest value
	for _, v := range own {
		both = append(both, -v)
	}
	runs := make([]float64, r.workers)
	runs[r.roll.own] = float64(r.roll.mine.Run)
	both = append(both, runs...)
	most, err := r.run(ctx, sess, &r.most, both)
	if err != nil {
		return err
	}
	for i, name := range names {
		if high, low := most[i], -most[i+len(names)]; high != low {
			return status.InvalidArgumentf("train: the workers have different options: %s is %v on this worker, and from %v to %v on all",
				name, own[i], low, high)
		}
	}
	agreed := make([]int64, r.workers)
	for i, run := range most[2*len(names):] {
		agreed[i] = int64(run)
	}
	r.roll.agree(agreed)
	return nil
}

// share replaces the totals of a worker by those of all workers.
func (r *ring) share(ctx context.Context, sess Session, t *totals) error {
	flat := []float64{t.loss, t.count}
	for _, sums := range t.sums {
		flat = append(flat, sums...)
	}
	all, err := r.run(ctx, sess, &r.sums, flat)
	if err != nil {
		return err
	}
	t.loss, t.count = all[0], all[1]
	all = all[2:]
	for _, sums := range t.sums {
		all = all[copy(sums, all):]
	}
	return nil
}

// session returns the options of the sessions of the workers.
func (r *ring) session(options []weft.SessionOption) ([]weft.SessionOption, error) {
	config, err := proto.Marshal(&pb.ConfigProto{
		Experimental: &pb.ConfigProto_Experimental{CollectiveGroupLeader: "/job:worker/replica:0/task:0"},
	})
	if err != nil {
		return nil, status.Internalf("train: %w", err)
	}
	return append([]weft.SessionOption{weft.WithConfig(config)}, options...), nil
}

// upcoming is a batch and whether another one follows.
type upcoming struct {
	batch []tensor.Tensor // nil if a worker reads it
	size  int             // elements
	more  bool
}

// lookahead reads one batch ahead if ahead is true. Otherwise all batches count as followed by
// another one.
func lookahead(batches iter.Seq2[[]tensor.Tensor, error], ahead bool) iter.Seq2[upcoming, error] {
	return func(yield func(upcoming, error) bool) {
		var held []tensor.Tensor
		for batch, err := range batches {
			if err != nil {
				yield(upcoming{}, err)
				return
			}
			if !ahead {
				held = batch
			}
			if held != nil && !yield(upcoming{held, rows(held), true}, nil) {
				return
			}
			held = batch
		}
		if held != nil && ahead {
			yield(upcoming{held, rows(held), false}, nil)
		}
	}
}
