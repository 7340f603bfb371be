package train

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
)

// QueueRunner fills a queue: it runs each of its nodes again and again, in a goroutine of its own,
// until one says that the input has ended. When all have ended it closes the queue, and when it is
// stopped it closes the queue and cancels what waits to be enqueued.
type QueueRunner struct {
	Queue op.Output // a resource handle
	// run again and again, each by a goroutine; the same node may be there several times
	Enqueue []*graph.Node
	Close   *graph.Node // closes the queue after its input has ended
	Cancel  *graph.Node // closes the queue and cancels what waits
	// ClosedCodes are the codes of errors that mean an ordinary end; [status.OutOfRange] if nil.
	ClosedCodes []status.Code
}

// NewQueueRunner returns a runner for a queue of the operations whose names end in V2, and adds the
// nodes that close it. It is started by its [QueueRunner.Start], or with all others if it is in the
// collection [QueueRunners] ([AddQueueRunner]).
func NewQueueRunner(s *op.Scope, queue op.Output, enqueue ...*graph.Node) *QueueRunner {
	near := s
	if queue.Node != nil {
		near = s.Absolute().InScope(queue.Node.Name).ColocateWith(queue.Node).WithoutControlDependencies()
	}
	return &QueueRunner{
		Queue: queue, Enqueue: enqueue, Close: op.QueueCloseV2(near.Named("Close"), queue),
		Cancel: op.QueueCloseV2(near.Named("Cancel"), queue, op.QueueCloseV2CancelPendingEnqueues(true)),
	}
}

// AddQueueRunner adds runners to the collection [QueueRunners], all of which [StartQueueRunners]
// and monitored sessions start.
func AddQueueRunner(s *op.Scope, runners ...*QueueRunner) {
	for _, q := range runners {
		s.AddToCollection(QueueRunners, q)
	}
}

// StartQueueRunners starts all runners in the collection [QueueRunners].
func StartQueueRunners(s *op.Scope, sess Session, coord *Coordinator) {
	for _, v := range s.Collection(QueueRunners) {
		if q, ok := v.(*QueueRunner); ok {
			q.Start(sess, coord)
		}
	}
}

// MarshalCollection returns a serialized tensorflow.QueueRunnerDef.
func (q *QueueRunner) MarshalCollection() ([]byte, error) {
	def := &pb.QueueRunnerDef{
		QueueName: savedmodel.OutputName(q.Queue), CloseOpName: q.Close.Name, CancelOpName: q.Cancel.Name,
	}
	for _, n := range q.Enqueue {
		def.EnqueueOpName = append(def.EnqueueOpName, n.Name)
	}
	for _, c := range q.closedCodes() {
		def.QueueClosedExceptionTypes = append(def.QueueClosedExceptionTypes, pb.Code(c))
	}
	return proto.Marshal(def)
}

func (q *QueueRunner) closedCodes() []status.Code {
	if q.ClosedCodes == nil {
		return []status.Code{status.OutOfRange}
	}
	return q.ClosedCodes
}

// Start runs the queue in goroutines of coord. A runner may be started in several sessions.
func (q *QueueRunner) Start(sess Session, coord *Coordinator) {
	var running atomic.Int64
	running.Store(int64(len(q.Enqueue)))
	ended := make(chan struct{}) // closed when the input has ended
	for _, n := range q.Enqueue {
		coord.Go(func(ctx context.Context) error {
			err := q.fill(ctx, sess, n)
			if running.Add(-1) == 0 && err == nil && ctx.Err() == nil {
				defer close(ended)
				_, err = sess.Run(ctx, nil, nil, []*graph.Node{q.Close})
			}
			return err
		})
	}
	coord.Go(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			// a next session goes on with the queues that are still there
			if !isPreemption(coord.Err()) {
				q.cancel(ctx, sess)
			}
		case <-ended:
		}
		return nil
	})
}

// fill runs a node until the input has ended or ctx does.
func (q *QueueRunner) fill(ctx context.Context, sess Session, n *graph.Node) error {
	target := []*graph.Node{n}
	for {
		_, err := sess.Run(ctx, nil, nil, target)
		switch {
		case ctx.Err() != nil || slices.Contains(q.closedCodes(), status.CodeOf(err)) && err != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

// cancelTimeout is how long the tasks of a session have to close a queue after a stop.
const cancelTimeout = 5 * time.Second

// cancel closes the queue after a stop, so that nobody waits for it any more.
func (q *QueueRunner) cancel(ctx context.Context, sess Session) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer done()
	// if the tasks are gone, so are those who wait
	_, _ = sess.Run(ctx, nil, nil, []*graph.Node{q.Cancel})
}
