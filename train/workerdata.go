package train

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// RowDataset is a [Dataset] whose elements are rows of tensors in memory, such as one of package
// data. [FitOptions.DataOnWorker] needs one, or a [GraphDataset].
type RowDataset interface {
	Dataset
	// Rows returns the tensors, and a function that yields the positions of the rows of each batch
	// of an epoch, in the order of Batches. All batches but the last have the same size.
	Rows() (columns []tensor.Tensor, batches func(ctx context.Context, epoch int) iter.Seq2[[]int64, error], err error)
}

// prefetched is the number of batches that a worker reads ahead.
const prefetched = 2

// onWorker reads the training data with the operations of tf.data on the task of the session. The
// batches are those that the program would read. As a hook it continues in a new session where the
// lost one has ended.
type onWorker interface {
	SessionRunHook
	// outputs returns the tensors of a batch.
	outputs() []op.Output
	// fetches returns what a step fetches of a batch, for fetched.
	fetches() []op.Output
	// fetched returns a batch with what the values of fetches say about it.
	fetched(u upcoming, values []tensor.Tensor) upcoming
	// epoch begins an epoch and yields its batches. The caller runs a step for each.
	epoch(ctx context.Context, m *MonitoredSession, epoch int) iter.Seq2[upcoming, error]
	// release frees the memory of the task, as far as it can be reached.
	release(ctx context.Context, m *MonitoredSession)
}

// newOnWorker adds the operations to a scope, whose device is the task.
func newOnWorker(s *op.Scope, d Dataset) (onWorker, error) {
	s = s.SubScope("fit_data")
	var noRows error
	if rows, ok := d.(RowDataset); ok {
		columns, batches, err := rows.Rows()
		if err == nil {
			return newWorkerRows(s, d, columns, batches)
		}
		noRows = err
	}
	pipeline, ok := d.(GraphDataset)
	switch {
	case ok && (noRows == nil || status.CodeOf(noRows) == status.Unimplemented):
		return newWorkerPipeline(s, pipeline)
	case noRows != nil:
		return nil, noRows
	}
	return nil, status.Unimplementedf("train: DataOnWorker needs data with rows in memory (RowDataset) or a pipeline of operations (GraphDataset), not a %T", d)
}

// unload frees resources of a task that is still there.
func unload(ctx context.Context, m *MonitoredSession, node *graph.Node) {
	if m.sess == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	// a task that is gone has no memory to free
	_, _ = m.sess.Run(ctx, nil, nil, []*graph.Node{node})
}

// sharedName returns the name of a resource on a task. Sessions of other programs use other names.
func sharedName(kind string, i int) string {
	return fmt.Sprintf("fit_%s_%d_%x", kind, i, rand.Uint64())
}

// iterate adds the iterator of a data set: the node that begins with its first element, the node
// that frees the iterator, and the next element.
func iterate(s *op.Scope, set op.Output, types []tensor.DType, shapes []tensor.PartialShape) (start, free *graph.Node, next []op.Output) {
	set = op.PrefetchDataset(s, set, op.Const(s, int64(prefetched)), types, shapes)
	iterator := op.IteratorV2(s, sharedName("batches", 0), "", types, shapes)
	return op.MakeIterator(s, set, iterator), op.DestroyResourceOp(s, iterator), op.IteratorGetNext(s, iterator, types, shapes)
}

// workerRows reads rows in memory. The tensors go to the task once for each session, and the
// positions of the rows once for each epoch.
type workerRows struct {
	BaseHook
	columns []tensor.Tensor
	batches func(ctx context.Context, epoch int) iter.Seq2[[]int64, error]

	fed       []op.Output // by column
	load      *graph.Node // copies the columns to the task
	unload    *graph.Node // frees them
	positions op.Output   // int64, the rows that are left of an epoch
	size      op.Output   // int64, rows of a batch
	start     *graph.Node // begins an epoch
	next      []op.Output // batch

	order []int64 // rows of the running epoch, nil between epochs
	rows  int     // of a batch
	done  int     // batches of the epoch that were used
}

func newWorkerRows(
	s *op.Scope, d Dataset, columns []tensor.Tensor, batches func(ctx context.Context, epoch int) iter.Seq2[[]int64, error],
) (*workerRows, error) {
	w := &workerRows{columns: columns, batches: batches}
	types, shapes := d.Types()
	var loads, unloads []*graph.Node
	var values []op.Output
	for i := range w.columns {
		t := w.columns[i].DType()
		shape := w.columns[i].Shape().Partial()
		v := op.VarHandleOp(s, t, shape, op.VarHandleOpSharedName(sharedName("data", i)))
		w.fed = append(w.fed, op.Placeholder(s, t, op.PlaceholderShape(shape)))
		loads = append(loads, op.AssignVariableOp(s, v, w.fed[i]))
		unloads = append(unloads, op.DestroyResourceOp(s, v))
		values = append(values, op.ReadVariableOp(s, v, t))
	}
	w.load = op.Group(s, loads...)
	w.positions = op.Placeholder(s, tensor.Int64, op.PlaceholderShape(tensor.MakePartial(-1)))
	w.size = op.Placeholder(s, tensor.Int64, op.PlaceholderShape(tensor.MakePartial()))
	rows := op.NewFunction(s, "rows", []tensor.DType{tensor.Int64}, func(s *op.Scope, at []op.Output) []op.Output {
		var out []op.Output
		for _, column := range values {
			out = append(out, op.GatherV2(s, column, at[0], op.Const(s, int32(0))))
		}
		return out
	})
	if rows == nil {
		return nil, s.Err()
	}
	at, one := []tensor.DType{tensor.Int64}, []tensor.PartialShape{tensor.MakePartial()}
	dataset := op.TensorSliceDataset(s, []op.Output{w.positions}, one)
	dataset = op.BatchDatasetV2(s, dataset, w.size, op.Const(s, false), at, []tensor.PartialShape{tensor.MakePartial(-1)})
	dataset = op.MapDataset(s, dataset, rows.Captured, rows.Func(), types, shapes)
	var free *graph.Node
	w.start, free, w.next = iterate(s, dataset, types, shapes)
	w.unload = op.Group(s, append(unloads, free)...)
	return w, s.Err()
}

// AfterCreateSession implements [SessionRunHook].
func (w *workerRows) AfterCreateSession(ctx context.Context, sess Session, _ *Coordinator) error {
	feeds := map[graph.Output]tensor.Tensor{}
	for i, p := range w.fed {
		feeds[p] = w.columns[i]
	}
	if _, err := sess.Run(ctx, feeds, nil, []*graph.Node{w.load}); err != nil {
		return err
	}
	if w.order == nil {
		return nil
	}
	return w.run(ctx, sess)
}

// run begins the rest of an epoch.
func (w *workerRows) run(ctx context.Context, sess Session) error {
	left := w.order[min(w.done*w.rows, len(w.order)):]
	_, err := sess.Run(ctx, map[graph.Output]tensor.Tensor{
		w.positions: tensor.Vector(left...), w.size: tensor.Scalar(int64(w.rows)),
	}, nil, []*graph.Node{w.start})
	return err
}

func (w *workerRows) epoch(ctx context.Context, m *MonitoredSession, epoch int) iter.Seq2[upcoming, error] {
	return func(yield func(upcoming, error) bool) {
		w.order, w.rows, w.done = nil, 0, 0
		var order []int64
		for at, err := range w.batches(ctx, epoch) {
			switch {
			case err != nil:
				yield(upcoming{}, err)
				return
			case w.rows == 0:
				w.rows = len(at)
			case len(order)%w.rows != 0:
				yield(upcoming{}, status.Unimplementedf("train: DataOnWorker needs batches of one size, got one of %d after one of %d",
					len(at), len(order)%w.rows))
				return
			}
			order = append(order, at...)
		}
		if len(order) == 0 {
			return
		}
		w.order = order
		defer func() { w.order = nil }()
		if err := m.RunStep(ctx, w.run); err != nil {
			yield(upcoming{}, err)
			return
		}
		for left := len(order); left > 0; left -= w.rows {
			if !yield(upcoming{size: min(w.rows, left), more: left > w.rows}, nil) {
				return
			}
			w.done++
		}
	}
}

func (w *workerRows) release(ctx context.Context, m *MonitoredSession) { unload(ctx, m, w.unload) }

func (w *workerRows) outputs() []op.Output { return w.next }

func (w *workerRows) fetches() []op.Output { return nil }

func (w *workerRows) fetched(u upcoming, _ []tensor.Tensor) upcoming { return u }
