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

// QueueRunner fills a queue. It runs each of its Enqueue nodes repeatedly, in a goroutine per node,
// until the input of the node ends. When all inputs have ended it closes the queue. When it is
// stopped it closes the queue and cancels pending enqueue operations.
type QueueRunner struct {
	Queue   op.Output     // a resource handle
	Enqueue []*graph.Node // a node may be listed several times, for several goroutines
	Close   *graph.Node   // closes the queue after its input has ended
	Cancel  *graph.Node   // closes the queue and cancels pending enqueue operations
	// ClosedCodes are the codes of errors that mean the end of the input; [status.OutOfRange] if
	// nil.
	ClosedCodes []status.Code
}

// NewQueueRunner returns a runner for a queue, which must be a resource (an operation whose name
// ends in V2), and adds the nodes that close the queue. [QueueRunner.Start] starts it. Monitored
// sessions start it if it is in the collection [QueueRunners] (see [AddQueueRunner]).
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

// AddQueueRunner adds runners to the collection [QueueRunners]. [StartQueueRunners] and monitored
// sessions start all runners in it.
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

// Start starts goroutines of coord that fill the queue. A runner may be started in several
// sessions.
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
			// after the loss of a task, the next session continues to use the remaining queues
			if !isPreemption(coord.Err()) {
				q.cancel(ctx, sess)
			}
		case <-ended:
		}
		return nil
	})
}

// fill runs a node until its input or ctx ends.
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

// cancelTimeout bounds the wait for the tasks of a session to close a queue after a stop. A lost
// task would otherwise delay the stop.
const cancelTimeout = 5 * time.Second

// cancel closes the queue after a stop, so that no operation waits for it.
func (q *QueueRunner) cancel(ctx context.Context, sess Session) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer done()
	// an error means that the tasks, and the operations that wait, are gone
	_, _ = sess.Run(ctx, nil, nil, []*graph.Node{q.Cancel})
}
