package dataservice

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/datapb"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// runningTask is a dataset that a worker iterates over.
type runningTask struct {
	worker  *Worker
	def     *datapb.TaskDef
	ctx     context.Context // ends with the task
	cancel  context.CancelFunc
	feeders sync.WaitGroup // goroutines that fill queues with splits
	lock    chan struct{}  // holds a token while no goroutine uses the fields below

	session  *weft.Session // nil until the first element is requested
	next     []graph.Output
	enqueue  []*graph.Node // one for each source
	position graph.Output  // of the enqueued split
	index    int64         // of the next element
	err      error         // why there are no further elements

	mu sync.Mutex
	// rounds of coordinated reads for which consumers wait, and the last one that was produced;
	// guarded by mu
	rounds  map[int64]*round
	current int64 // number of the last round that was produced or is being produced; guarded by mu
}

func newTask(w *Worker, def *datapb.TaskDef) *runningTask {
	t := &runningTask{worker: w, def: def, lock: make(chan struct{}, 1), rounds: map[int64]*round{}, current: -1}
	t.ctx, t.cancel = context.WithCancel(w.ctx)
	t.lock <- struct{}{}
	return t
}

func (t *runningTask) close() {
	t.cancel()
	<-t.lock
	if t.session != nil {
		t.session.Close()
	}
	t.err = status.Cancelledf("the task %d has ended", t.def.GetTaskId())
	t.lock <- struct{}{}
	t.feeders.Wait()
}

// element returns the next element, or that of a consumer in a round.
func (t *runningTask) element(ctx context.Context, req *datapb.GetElementRequest) (*datapb.GetElementResponse, error) {
	if n := t.def.GetNumConsumers(); n > 0 {
		return t.coordinated(ctx, req, n)
	}
	return t.take(ctx)
}

// take produces one element.
func (t *runningTask) take(ctx context.Context) (*datapb.GetElementResponse, error) {
	select {
	case <-t.lock:
	case <-ctx.Done():
		return nil, status.FromContext(ctx, "waiting for an element")
	}
	defer func() { t.lock <- struct{}{} }()
	if t.err == nil && t.session == nil {
		def, release, err := t.graph()
		if err != nil {
			return nil, err
		}
		t.err = t.open(def)
		release()
	}
	if t.err != nil {
		return t.failed(t.err)
	}
	out, err := t.session.Fetch(t.ctx, nil, t.next...)
	if err != nil {
		if status.CodeOf(err) == status.OutOfRange {
			t.err = err
		}
		return t.failed(err)
	}
	defer func() {
		for i := range out {
			out[i].Release()
		}
	}()
	resp, err := encode(out)
	if err != nil {
		return nil, err
	}
	resp.ElementIndex = t.index
	t.index++
	return resp, nil
}

// failed answers a request for an element that there is not.
func (t *runningTask) failed(err error) (*datapb.GetElementResponse, error) {
	if status.CodeOf(err) != status.OutOfRange {
		return nil, withoutTask(err)
	}
	t.worker.ended(t.def.GetTaskId())
	return &datapb.GetElementResponse{EndOfSequence: true}, nil
}

// withoutTask returns an error of a session without its first line. That names the task, which is
// this process for all of them: clients know the worker by its address.
func withoutTask(err error) error {
	e := *status.From(err)
	if first, rest, ok := strings.Cut(e.Message, "\n"); ok && strings.HasPrefix(first, "From /job:") {
		e.Message = rest
	}
	return &e
}

// compressedName is the type of a variant that holds a compressed element.
const compressedName = "tensorflow.data.CompressedElement"

// encode returns an element in its wire form.
func encode(out []tensor.Tensor) (*datapb.GetElementResponse, error) {
	if len(out) == 1 && out[0].DType() == tensor.Variant && out[0].Rank() == 0 {
		v, err := tensor.Value[tensor.VariantValue](&out[0]).Encode()
		if err == nil && v.TypeName == compressedName {
			e := &pb.CompressedElement{}
			if !protomem.Take(e.ProtoReflect().Descriptor(), v.Metadata) {
				return nil, status.ResourceExhaustedf("There is not enough memory for an element (--memory-limit).")
			}
			if err := proto.Unmarshal(v.Metadata, e); err != nil {
				return nil, status.Internalf("a compressed element cannot be read: %v", err)
			}
			return &datapb.GetElementResponse{Element: &datapb.GetElementResponse_Compressed{Compressed: e}}, nil
		}
	}
	e := &datapb.UncompressedElement{}
	for i := range out {
		p, err := pbconv.TensorCopyToProto(&out[i])
		if err != nil {
			return nil, err
		}
		e.Components = append(e.Components, p)
	}
	return &datapb.GetElementResponse{Element: &datapb.GetElementResponse_Uncompressed{Uncompressed: e}}, nil
}

// graph returns a copy of the graph of the dataset, nil if there is none. Its memory is held until
// release is called: decoded, a graph of empty nodes is larger than encoded by a thousand times.
func (t *runningTask) graph() (def *pb.GraphDef, release func(), err error) {
	of := t.def.GetDatasetDef().GetGraph()
	if of == nil {
		return nil, func() {}, nil
	}
	// the graph is encoded here, and again once it is prepared
	if err := memoryFor("datasets", 4*int64(proto.Size(of))); err != nil {
		return nil, nil, err
	}
	wire, err := proto.Marshal(of)
	if err != nil {
		return nil, nil, status.Internalf("the graph of a dataset cannot be encoded: %v", err)
	}
	if release, err = rpc.AdmitGraph(wire, nil); err != nil {
		return nil, nil, err
	}
	return proto.CloneOf(of), release, nil
}

// open makes an iterator over the dataset, whose graph it changes.
func (t *runningTask) open(def *pb.GraphDef) error {
	if def == nil {
		return status.Unimplementedf("the dataset of task %d is in a file of the dispatcher", t.def.GetTaskId())
	}
	policy := t.def.GetProcessingModeDef().GetShardingPolicy()
	var sources []source
	switch {
	case isDynamic(int32(policy)):
		var err error
		if sources, err = pull(def, t.def.GetTaskId()); err != nil {
			return err
		}
		if n := t.def.GetNumSplitProviders(); n != int64(len(sources)) {
			return status.InvalidArgumentf("task %d has %d split providers, but its dataset has %d sources", t.def.GetTaskId(), n, len(sources))
		}
	case isStatic(int32(policy)):
		if err := autoShard(def, t.def); err != nil {
			return err
		}
	}
	_, from, err := resultOf(def)
	if err != nil {
		return err
	}
	protoTypes, protoShapes := specOf(from)
	spec, err := pbconv.AttrsFromProto(attrs{"types": typesOf(protoTypes...), "shapes": shapesOf(protoShapes...)})
	if err != nil {
		return err
	}
	text, err := proto.Marshal(def)
	if err != nil {
		return status.Internalf("the graph of a dataset cannot be encoded: %v", err)
	}
	types, shapes := spec.Types("types"), spec.Shapes("shapes")
	s := op.NewScope()
	name := fmt.Sprintf("data_service_%d_%d", t.worker.uid, t.def.GetTaskId())
	iterator := op.IteratorV2(s, name, "", types, shapes)
	dataset := op.DatasetFromGraph(s, op.Const(s, string(text)))
	cardinality, start := op.DatasetCardinality(s, dataset), op.MakeIterator(s, dataset, iterator)
	t.next = op.IteratorGetNext(s, iterator, types, shapes)
	t.position = op.Placeholder(s, tensor.Int64, op.PlaceholderShape(tensor.MakePartial()))
	for i := range sources {
		queue := op.FIFOQueueV2(s, []tensor.DType{tensor.Int64}, op.FIFOQueueV2Capacity(1), op.FIFOQueueV2SharedName(queueName(t.def.GetTaskId(), i)),
			op.FIFOQueueV2Shapes([]tensor.PartialShape{tensor.MakePartial()}))
		t.enqueue = append(t.enqueue, op.QueueEnqueueV2(s, queue, []op.Output{t.position}))
	}
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	session, err := weft.NewSession("local", g)
	if err != nil {
		return err
	}
	if t.def.GetNumConsumers() > 0 {
		err = checkInfinite(t.ctx, session, cardinality)
	}
	if err == nil {
		err = session.Exec(t.ctx, nil, start)
	}
	if err != nil {
		session.Close()
		return err
	}
	t.session = session
	for i, src := range sources {
		t.feeders.Go(func() { t.feed(session, i, src) })
	}
	return nil
}

// infinite is the cardinality of a dataset without an end.
const infinite = -1

// checkInfinite returns an error if coordinated reads could come to the end of a dataset: consumers
// that get no element would wait for each other.
func checkInfinite(ctx context.Context, session *weft.Session, cardinality graph.Output) error {
	out, err := session.Fetch(ctx, nil, cardinality)
	if err != nil {
		return err
	}
	defer out[0].Release()
	if n := tensor.Value[int64](&out[0]); n != infinite {
		return status.FailedPreconditionf("Round robin reads require that the input dataset has infinite cardinality, but the dataset "+
			"has cardinality %d. Consider adding a `.repeat()` transformation to the dataset.", n)
	}
	return nil
}

// feed fills the queue of source k with the positions of splits, repetition by repetition, until
// the task ends.
func (t *runningTask) feed(session *weft.Session, k int, src source) {
	var err error
	for repetition := int64(0); err == nil && t.ctx.Err() == nil; {
		var resp *datapb.GetSplitResponse
		resp, err = rpc.Call[datapb.GetSplitResponse](t.ctx, t.worker.conn, dispatcherService+"GetSplit", &datapb.GetSplitRequest{
			IterationId: t.def.GetIterationId(), Repetition: repetition, SplitProviderIndex: int64(k),
		})
		if status.CodeOf(err) == status.Unavailable { // the dispatcher restarts
			err = t.pause()
			continue
		}
		if err != nil {
			break
		}
		position := endOfSplits
		if !resp.GetEndOfSplits() {
			var split tensor.Tensor
			if split, err = pbconv.TensorFromProto(resp.GetSplit()); err != nil {
				break
			}
			if split.DType() != tensor.Int64 || split.NumElements() != 1 {
				err = status.InvalidArgumentf("a split is %v %v, want an int64 scalar", split.DType(), split.Shape())
				break
			}
			position = (tensor.Value[int64](&split) - src.Start) / src.Step
		} else {
			repetition++
		}
		err = session.Exec(t.ctx, weft.Feeds{t.position: tensor.Scalar(position)}, t.enqueue[k])
	}
	if err != nil && t.ctx.Err() == nil {
		t.worker.Log.Error("a task gets no further splits", "dataset_task", t.def.GetTaskId(), "error", err)
		t.cancel()
	}
}
