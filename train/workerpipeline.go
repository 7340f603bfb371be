package train

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// GraphDataset is a [Dataset] that the operations of tf.data can read, such as one of package data.
// [FitOptions.DataOnWorker] needs one, or a [RowDataset].
type GraphDataset interface {
	Dataset
	// Graph adds the operations that read the batches of an epoch, an int64 scalar, to a graph. It
	// returns a data set, a variant scalar, with the batches of the method Batches. keep is called
	// with each data set whose elements are kept for later epochs, and returns the one to read in
	// its place. Build errors are recorded in the scope.
	Graph(s *op.Scope, epoch op.Output, keep func(cached op.Output) op.Output) op.Output
}

// workerPipeline reads a pipeline of operations: the task reads the files. Data sets whose elements
// are kept live on the task as long as the session.
type workerPipeline struct {
	BaseHook
	loads  []*graph.Node // create the data sets that are kept; each may need those before it
	unload *graph.Node
	number op.Output // int64, of the epoch
	skip   op.Output // int64, elements of the scan that are left out
	start  *graph.Node
	next   []op.Output // batch
	size   op.Output   // int32, rows of the batch
	more   op.Output   // bool, whether another batch follows

	running bool // within an epoch
	at      int  // the epoch
	done    int  // batches of the epoch that were used
	last    bool // the last batch of the epoch was fetched
}

func newWorkerPipeline(s *op.Scope, d GraphDataset) (*workerPipeline, error) {
	s = s.WithDevice("/cpu:0") // the variables hold data sets, which other devices cannot
	w := &workerPipeline{}
	scalar := op.PlaceholderShape(tensor.MakePartial())
	w.number, w.skip = op.Placeholder(s, tensor.Int64, scalar), op.Placeholder(s, tensor.Int64, scalar)
	var unloads []*graph.Node
	set := d.Graph(s, w.number, func(cached op.Output) op.Output {
		v := op.VarHandleOp(s, tensor.Variant, tensor.MakePartial(), op.VarHandleOpSharedName(sharedName("cache", len(w.loads))))
		w.loads = append(w.loads, op.AssignVariableOp(s, v, cached))
		unloads = append(unloads, op.DestroyResourceOp(s, v))
		return op.ReadVariableOp(s, v, tensor.Variant)
	})
	if err := s.Err(); err != nil {
		return nil, err
	}
	types, shapes := d.Types()
	set, types, shapes = markLast(s, set, types, shapes)
	if err := s.Err(); err != nil {
		return nil, err
	}
	set = op.SkipDataset(s, set, w.skip, types, shapes)
	start, free, next := iterate(s, set, types, shapes)
	if err := s.Err(); err != nil {
		return nil, err
	}
	n := len(next) - 1
	w.start, w.next, w.more = start, next[:n], next[n]
	w.unload = op.Group(s, append(unloads, free)...)
	w.size = op.Gather(s, op.Shape(s, w.next[n-1]), op.Const(s, int32(0)))
	return w, s.Err()
}

// markLast adds a bool to each element: whether another one follows. An element waits in the state
// of a scan until the next one, or the end, is there. The first element of the result is empty.
func markLast(
	s *op.Scope, set op.Output, types []tensor.DType, shapes []tensor.PartialShape,
) (op.Output, []tensor.DType, []tensor.PartialShape) {
	n := len(types)
	marked := append(slices.Clone(types), tensor.Bool)
	markedShapes := append(slices.Clone(shapes), tensor.MakePartial())
	var empty []op.Output
	var emptyShapes []tensor.PartialShape
	for i, t := range types {
		shape := make(tensor.Shape, max(shapes[i].Rank(), 0))
		for d, size := range shapes[i].Dims() {
			shape[d] = max(size, 0)
		}
		zeros, err := tensor.Zeros(t, shape)
		if err != nil {
			s.Fail(err)
			return op.Output{}, nil, nil
		}
		empty, emptyShapes = append(empty, op.Const(s, zeros)), append(emptyShapes, shape.Partial())
	}
	mark := op.NewFunction(s, "mark", types, func(s *op.Scope, e []op.Output) []op.Output {
		return append(e, op.Const(s, false))
	})
	shift := op.NewFunction(s, "shift", slices.Concat(types, marked), func(s *op.Scope, e []op.Output) []op.Output {
		waiting, next, end := e[:n], e[n:2*n], e[2*n]
		return slices.Concat(next, waiting, []op.Output{op.LogicalNot(s, end)})
	})
	if mark == nil || shift == nil {
		return op.Output{}, nil, nil
	}
	set = op.MapDataset(s, set, mark.Captured, mark.Func(), marked, markedShapes)
	end := op.TensorDataset(s, append(slices.Clone(empty), op.Const(s, true)), append(emptyShapes, tensor.MakePartial()))
	set = op.ConcatenateDataset(s, set, end, marked, markedShapes)
	return op.ScanDataset(s, set, empty, shift.Captured, shift.Func(), marked, markedShapes), marked, markedShapes
}

// AfterCreateSession implements [SessionRunHook].
func (w *workerPipeline) AfterCreateSession(ctx context.Context, sess Session, _ *Coordinator) error {
	for _, load := range w.loads {
		if _, err := sess.Run(ctx, nil, nil, []*graph.Node{load}); err != nil {
			return err
		}
	}
	if !w.running {
		return nil
	}
	return w.run(ctx, sess)
}

// run begins the rest of an epoch.
func (w *workerPipeline) run(ctx context.Context, sess Session) error {
	_, err := sess.Run(ctx, map[graph.Output]tensor.Tensor{
		w.number: tensor.Scalar(int64(w.at)), w.skip: tensor.Scalar(int64(1 + w.done)),
	}, nil, []*graph.Node{w.start})
	return err
}

func (w *workerPipeline) epoch(ctx context.Context, m *MonitoredSession, epoch int) iter.Seq2[upcoming, error] {
	return func(yield func(upcoming, error) bool) {
		w.running, w.at, w.done, w.last = true, epoch, 0, false
		defer func() { w.running = false }()
		if err := m.RunStep(ctx, w.run); err != nil {
			yield(upcoming{}, err)
			return
		}
		for !w.last {
			if !yield(upcoming{}, nil) {
				return
			}
			w.done++
		}
	}
}

func (w *workerPipeline) outputs() []op.Output { return w.next }

func (w *workerPipeline) fetches() []op.Output { return []op.Output{w.size, w.more} }

func (w *workerPipeline) fetched(_ upcoming, values []tensor.Tensor) upcoming {
	w.last = !tensor.Value[bool](&values[1])
	return upcoming{size: int(tensor.Value[int32](&values[0])), more: !w.last}
}

func (w *workerPipeline) release(ctx context.Context, m *MonitoredSession) { unload(ctx, m, w.unload) }

// isEnd reports whether an iterator had no element.
func isEnd(err error) bool {
	return status.CodeOf(err) == status.OutOfRange && strings.Contains(err.Error(), "End of sequence")
}
