// Package worker runs the parts of steps that are on one task's devices: it implements
// WorkerService.
//
// A master makes a session, registers its part of a graph in it, and then asks for one step after
// the other. What a registered graph holds is compiled once: it is split by device, and every
// device's part gets an executor with its kernels made. A step brings together the calls that name
// its number: RunGraph, which runs a registered graph, and the RecvTensor calls of other tasks,
// which may come first. It ends with CleanupGraph or with its session.
//
// Locks are taken in this order: [Worker].mu, session.mu, steps.mu, step.mu. None is held while a
// kernel, an executor or a rendezvous consumer runs.
package worker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/internal/runtime/collective"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// Peers reaches the other tasks of a cluster.
type Peers interface {
	// StartRecv asks the named task, such as "/job:ps/replica:0/task:0", for a tensor. done is
	// called once, perhaps by who reads a connection, and does not wait for anything. An error says
	// that the task is not part of the cluster, cannot be reached, or what it answered.
	StartRecv(ctx context.Context, task string, req *message.RecvTensorRequest, done func(*message.RecvTensorResponse, error))
	// StartRecvAll is StartRecv for several tensors of one step. It calls done once for each.
	StartRecvAll(
		ctx context.Context, task string, requests []*message.RecvTensorRequest, done func(i int, resp *message.RecvTensorResponse, err error),
	)
	// Peer returns the named task. It does not wait for a connection.
	Peer(task string) (Peer, error)
}

// Peer is another task of a cluster, as far as it is not about tensors of a rendezvous.
type Peer interface {
	MarkRecvFinished(ctx context.Context, req *pb.MarkRecvFinishedRequest) (*pb.MarkRecvFinishedResponse, error)
	RecvBuf(ctx context.Context, req *pb.RecvBufRequest) (*pb.RecvBufResponse, error)
	CompleteGroup(ctx context.Context, req *pb.CompleteGroupRequest) (*pb.CompleteGroupResponse, error)
	CompleteInstance(ctx context.Context, req *pb.CompleteInstanceRequest) (*pb.CompleteInstanceResponse, error)
	graphRunner
}

// Lender lends tensors to peers that find the elements by themselves.
type Lender interface {
	// Lend takes the tensor out of a response if the peer can find it, and reports whether it did.
	Lend(req *message.RecvTensorRequest, resp *message.RecvTensorResponse) bool
	// Redeem answers a request for a tensor that was lent before. It returns nothing if the request
	// is another one.
	FetchLeased(req *message.RecvTensorRequest) (*message.RecvTensorResponse, error)
	// EndStep releases what is lent of a step.
	EndStep(step int64)
	// Keys returns the keys of a request for several tensors, nil for any other.
	BatchKeys(req *message.RecvTensorRequest) []string
	// Pack makes a response of the values that are there, and returns those that it has no place
	// for.
	PackBatch(values []rendezvous.Value, resp *message.RecvTensorResponse) (left []rendezvous.Value)
}

// Config is what a worker is made of.
type Config struct {
	Task    cluster.Task
	Devices []*kernel.Device // with full names on Task; at least one
	Kernels *kernel.Registry
	Peers   Peers // the other tasks of the task's own cluster; nil if it is alone
	// Connect reaches the cluster that a session brings along, in which this task has the given
	// name. It is nil where sessions may not bring one.
	Connect func(spec cluster.Spec, self cluster.Task) (Peers, error)
	// Sequences numbers the steps with collective operations. It is shared with the task's master;
	// nil where there is none.
	Sequences *collective.Sequences
	// Leader is the task that leads the collective groups of sessions that do not say which one
	// does; "" for this one.
	Leader string
	// Lender lends tensors to peers that can do without their bytes; nil where none is.
	Lender Lender
	// Unused is called when the last session has been deleted, before its master is told so; it may
	// be nil.
	Unused func()
	// CacheResponses keeps tensors that peers have asked for until they say that these have
	// arrived.
	CacheResponses bool
	Log            *slog.Logger
}

// recentRequests is how many request identifiers a worker remembers, TensorFlow's number.
const recentRequests = 100_000

// Worker is one task. Its methods are those of WorkerService and may be called concurrently.
type Worker struct {
	Config
	Collectives *collective.Manager

	recent    *requestid.Recent
	steps     *steps
	cache     *responseCache  // nil if responses are not kept
	life      context.Context // ends when the worker is closed
	end       context.CancelFunc
	acks      sync.WaitGroup // acknowledgements under way
	transfers transferLog
	legacy    *session // of masters that make no sessions

	mu       sync.Mutex
	closed   bool                // guarded by mu
	sessions map[string]*session // guarded by mu
}

// New returns a worker. Close must be called when it is no longer used.
func New(cfg Config) *Worker {
	w := &Worker{
		Config: cfg, Collectives: collective.NewManager(), recent: requestid.NewRecent(recentRequests, 8), steps: newSteps(cfg.Lender),
		sessions: map[string]*session{},
	}
	if w.Sequences == nil {
		w.Sequences = collective.NewSequences()
	}
	w.life, w.end = context.WithCancel(context.Background())
	if cfg.CacheResponses {
		w.cache = newResponseCache()
	}
	w.legacy = newSession("", cfg.Task, cfg.Peers, cfg.Devices)
	return w
}

// closeTimeout bounds how long a worker that is closed waits for kernels that do not notice that
// their step was cancelled.
const closeTimeout = 10 * time.Second

// Close cancels all steps, waits until they have ended, and gives back what sessions hold.
// Variables and queues stay with the devices.
func (w *Worker) Close() {
	w.mu.Lock()
	w.closed = true
	sessions := slices.Collect(maps.Values(w.sessions))
	clear(w.sessions)
	w.mu.Unlock()
	if !w.steps.close(status.Abortedf("The task %v is shutting down.", w.Task)) {
		w.Log.Error("steps go on although they were cancelled", "task", w.Task, "after", closeTimeout)
	}
	w.end()
	w.acks.Wait()
	for _, s := range append(sessions, w.legacy) {
		s.close()
	}
}

// GetStatus describes the devices of the task.
func (w *Worker) GetStatus(context.Context, *pb.GetStatusRequest) (*pb.GetStatusResponse, error) {
	resp := &pb.GetStatusResponse{}
	for _, d := range w.Devices {
		name, err := device.Parse(d.Name)
		if err != nil {
			return nil, err
		}
		resp.DeviceAttributes = append(resp.DeviceAttributes, pbconv.DeviceToProto(name, d.MemoryLimit, d.Incarnation))
	}
	return resp, nil
}

// CleanupAll drops the resources in the given containers of all devices that sessions share;
// without a container, those in the default one.
func (w *Worker) CleanupAll(_ context.Context, req *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error) {
	containers := req.GetContainer()
	if len(containers) == 0 {
		containers = []string{""}
	}
	for _, d := range w.Devices {
		for _, name := range containers {
			d.Resources.Clear(name)
		}
	}
	return &pb.CleanupAllResponse{}, nil
}

// Tracing is not supported, by TensorFlow's workers neither.
func (w *Worker) Tracing(context.Context, *pb.TracingRequest) (*pb.TracingResponse, error) {
	return nil, status.Unimplementedf("Tracing")
}
