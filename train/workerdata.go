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
// data. [FitOptions.DataOnWorker] needs one.
type RowDataset interface {
	Dataset
	// Rows returns the tensors, and a function that yields the positions of the rows of each batch
	// of an epoch, in the order of Batches. All batches but the last have the same size.
	Rows() (columns []tensor.Tensor, batches func(ctx context.Context, epoch int) iter.Seq2[[]int64, error], err error)
}

// prefetched is the number of batches that a worker reads ahead.
const prefetched = 2

// workerData reads the training data with the operations of tf.data on the task of the session. The
// tensors go there once for each session, and the positions of the rows once for each epoch: the
// batches are those that the program would read.
//
// As a hook it continues in a new session where the lost one has ended.
type workerData struct {
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

// newWorkerData adds the operations to a scope, whose device is the task.
func newWorkerData(s *op.Scope, d Dataset) (*workerData, error) {
	source, ok := d.(RowDataset)
	if !ok {
		return nil, status.Unimplementedf("train: DataOnWorker needs data with rows in memory (RowDataset), not a %T", d)
	}
	w := &workerData{}
	var err error
	if w.columns, w.batches, err = source.Rows(); err != nil {
		return nil, err
	}
	s = s.SubScope("fit_data")
	types, shapes := d.Types()
	var loads, unloads []*graph.Node
	var values []op.Output
	for i := range w.columns {
		t := w.columns[i].DType()
		shape := w.columns[i].Shape().Partial()
		v := op.VarHandleOp(s, t, shape, op.VarHandleOpSharedName(fmt.Sprintf("fit_data_%d_%x", i, rand.Uint64())))
		w.fed = append(w.fed, op.Placeholder(s, t, op.PlaceholderShape(shape)))
		loads = append(loads, op.AssignVariableOp(s, v, w.fed[i]))
		unloads = append(unloads, op.DestroyResourceOp(s, v))
		values = append(values, op.ReadVariableOp(s, v, t))
	}
	w.load, w.unload = op.Group(s, loads...), op.Group(s, unloads...)
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
	dataset = op.PrefetchDataset(s, dataset, op.Const(s, int64(prefetched)), types, shapes)
	iterator := op.IteratorV2(s, "", "", types, shapes)
	w.start = op.MakeIterator(s, dataset, iterator)
	w.next = op.IteratorGetNext(s, iterator, types, shapes)
	return w, s.Err()
}

// AfterCreateSession implements [SessionRunHook].
func (w *workerData) AfterCreateSession(ctx context.Context, sess Session, _ *Coordinator) error {
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
func (w *workerData) run(ctx context.Context, sess Session) error {
	left := w.order[min(w.done*w.rows, len(w.order)):]
	_, err := sess.Run(ctx, map[graph.Output]tensor.Tensor{
		w.positions: tensor.Vector(left...), w.size: tensor.Scalar(int64(w.rows)),
	}, nil, []*graph.Node{w.start})
	return err
}

// epoch begins an epoch and yields the sizes of its batches. The caller runs a step for each.
func (w *workerData) epoch(ctx context.Context, m *MonitoredSession, epoch int) iter.Seq2[upcoming, error] {
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

// release frees the memory of the task, as far as it can be reached.
func (w *workerData) release(ctx context.Context, m *MonitoredSession) {
	if m.sess == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	// a task that is gone has no memory to free
	_, _ = m.sess.Run(ctx, nil, nil, []*graph.Node{w.unload})
}
