// Package worker runs the partitions of steps that are placed on one task's devices: it implements
// WorkerService.
//
// A master creates a session, registers its partition of a graph in it, and then requests steps.
// RegisterGraph compiles a graph once: it splits it by device, and creates an executor with its
// kernels for each device. A step joins the calls that have its number: RunGraph, which runs a
// registered graph, and the RecvTensor calls of other tasks, which may arrive first. It ends with
// CleanupGraph or with its session.
//
// A small step costs little more than its calls, so runs and steps are recycled. The invariant is
// that nothing refers to a recycled object: a run is recycled only if it succeeded, its kernels
// have no state, and nothing has waited on its context; a step only if, in addition, no peer has
// received from it.
//
// Locks are taken in this order: [Worker].mu, session.mu, kernelCache.mu, steps.mu. None of them is
// held while a kernel, an executor or a rendezvous consumer runs. Every goroutine is owned by the
// call that starts it, by steps.running, Worker.acks or Worker.leases, and Close waits for these.
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
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/role/recorder"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/internal/runtime/collective"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// Peers reaches the other tasks of a cluster.
type Peers interface {
	// StartRecv requests a tensor from the named task, such as "/job:ps/replica:0/task:0". done is
	// called once, possibly on the goroutine that reads the connection, and must not block. An
	// error means that the task is not part of the cluster or cannot be reached, or is its answer.
	StartRecv(ctx context.Context, task string, req *message.RecvTensorRequest, done func(*message.RecvTensorResponse, error))
	// StartRecvAll is StartRecv for several tensors of one step. It calls done once for each.
	StartRecvAll(
		ctx context.Context, task string, requests []*message.RecvTensorRequest, done func(i int, resp *message.RecvTensorResponse, err error),
	)
	// Peer returns the named task. It does not wait for a connection.
	Peer(task string) (Peer, error)
}

// Peer is another task of a cluster, for all calls except those for tensors of a rendezvous.
type Peer interface {
	// HasSession asks the master of the task whether it has a session.
	HasSession(ctx context.Context, handle string) (bool, error)
	MarkRecvFinished(ctx context.Context, req *pb.MarkRecvFinishedRequest) (*pb.MarkRecvFinishedResponse, error)
	RecvBuf(ctx context.Context, req *pb.RecvBufRequest) (*pb.RecvBufResponse, error)
	CompleteGroup(ctx context.Context, req *pb.CompleteGroupRequest) (*pb.CompleteGroupResponse, error)
	CompleteInstance(ctx context.Context, req *pb.CompleteInstanceRequest) (*pb.CompleteInstanceResponse, error)
	graphRunner
}

// Lender passes tensors to peers on the same machine, which read the elements themselves.
type Lender interface {
	// Lend takes the tensor out of a response if the peer can find it, and reports whether it did.
	Lend(req *message.RecvTensorRequest, resp *message.RecvTensorResponse) bool
	// FetchLeased answers a request for a leased tensor. It returns nil if the request is of
	// another kind.
	FetchLeased(req *message.RecvTensorRequest) (*message.RecvTensorResponse, error)
	// EndStep ends the leases of a step.
	EndStep(step int64)
	// BatchKeys returns the keys of a request for several tensors, nil for any other request.
	BatchKeys(req *message.RecvTensorRequest) []string
	// PackBatch puts values into a response, and returns those for which it has no room.
	PackBatch(values []rendezvous.Value, resp *message.RecvTensorResponse) (left []rendezvous.Value)
}

// Config holds the parameters of a worker.
type Config struct {
	Task cluster.Task
	// Cluster is sent to masters that have another one; nil for none.
	Cluster cluster.Spec
	Devices []*kernel.Device // with full names on Task; at least one
	Kernels *kernel.Registry
	Quota   *quota.Quota // limits of the clients; nil for none
	Peers   Peers        // the other tasks of the task's own cluster; nil for a task without peers
	// Connect returns the tasks of a cluster that a session brings, in which this task has the
	// given name. If it is nil, sessions may not bring one.
	Connect func(spec cluster.Spec, self cluster.Task) (Peers, error)
	// Sequences numbers the steps with collective operations. It is shared with the task's master;
	// New creates one if it is nil.
	Sequences *collective.Sequences
	// Leader is the default leader of the collective groups of sessions; "" for this task.
	Leader string
	// Lender passes tensors to peers on the same machine; may be nil.
	Lender Lender
	// Unused is called when the last session has been deleted, before its master gets the response;
	// may be nil.
	Unused func()
	// OrphanTimeout is how long a session may be unused and not confirmed by its master before it
	// is dropped; 0 means no limit.
	OrphanTimeout time.Duration
	// Recorder records what the worker executes; nil for never.
	Recorder *recorder.Recorder
	// CacheResponses keeps the tensors that peers have requested until the peers acknowledge them.
	CacheResponses bool
	Log            *slog.Logger
}

// recentRequests is the number of request IDs that a worker remembers; it is TensorFlow's number.
const recentRequests = 100_000

// Worker is one task. Its methods are those of WorkerService and may be called concurrently.
type Worker struct {
	Config
	Collectives *collective.Manager

	recent    *requestid.Recent
	steps     *steps
	cache     *responseCache  // nil without CacheResponses
	ctx       context.Context // ends when the worker is closed
	cancel    context.CancelFunc
	acks      sync.WaitGroup // acknowledgements being sent
	leases    sync.WaitGroup // watchLeases
	transfers transferLog
	legacy    *session // session of masters that do not create sessions

	mu       sync.Mutex
	closed   bool                // guarded by mu
	watching bool                // watchLeases has been started; guarded by mu
	sessions map[string]*session // guarded by mu
	// devices with the resources of each tenant; guarded by mu
	tenants map[string][]*kernel.Device
}

// New returns a worker. The caller must call Close.
func New(cfg Config) *Worker {
	w := &Worker{
		Config: cfg, Collectives: collective.NewManager(), recent: requestid.NewRecent(recentRequests, 8), steps: newSteps(cfg.Lender, cfg.Quota),
		sessions: map[string]*session{},
	}
	if w.Sequences == nil {
		w.Sequences = collective.NewSequences()
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	if cfg.CacheResponses {
		w.cache = newResponseCache()
		w.steps.cache = w.cache
	}
	w.legacy = newSession("", cfg.Task, cfg.Peers, cfg.Devices)
	w.legacy.account = w.Quota.SessionAccount("")
	return w
}

// closeTimeout bounds the wait of Close for kernels that do not react to the cancellation of their
// step.
const closeTimeout = 10 * time.Second

// Close cancels all steps, waits until they have ended, and releases the sessions. Variables and
// queues stay with the devices.
func (w *Worker) Close() {
	w.mu.Lock()
	w.closed = true
	sessions := slices.Collect(maps.Values(w.sessions))
	clear(w.sessions)
	w.mu.Unlock()
	if !w.steps.close(status.Abortedf("The task %v is shutting down.", w.Task)) {
		w.Log.Error("steps still run after they were cancelled", "after", closeTimeout)
	}
	w.cancel()
	w.acks.Wait()
	w.leases.Wait()
	for _, s := range append(sessions, w.legacy) {
		s.close()
	}
}

// GetStatus describes the devices of the task.
func (w *Worker) GetStatus(_ context.Context, req *pb.GetStatusRequest) (*pb.GetStatusResponse, error) {
	resp := &pb.GetStatusResponse{}
	peer.Mark(resp)
	if w.Cluster != nil {
		peer.AnswerCluster(req, resp, w.Cluster)
	}
	for _, d := range w.Devices {
		name, err := device.Parse(d.Name)
		if err != nil {
			return nil, err
		}
		attrs := pbconv.DeviceToProto(name, d.MemoryLimit, d.Incarnation)
		if d.GPU != nil {
			attrs.PhysicalDeviceDesc = d.GPU.Description()
			attrs.Locality = &pb.DeviceLocality{BusId: 1, Links: &pb.LocalLinks{}}
		}
		resp.DeviceAttributes = append(resp.DeviceAttributes, attrs)
	}
	return resp, nil
}

// CleanupAll drops the resources in the given containers of all devices that sessions of the tenant
// share;
// without a container, those in the default one.
func (w *Worker) CleanupAll(ctx context.Context, req *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error) {
	containers := req.GetContainer()
	if len(containers) == 0 {
		containers = []string{""}
	}
	for _, d := range w.cleanedDevices(ctx, req) {
		for _, name := range containers {
			d.Resources.Clear(name)
		}
	}
	return &pb.CleanupAllResponse{}, nil
}

// Tracing is not supported, as in TensorFlow's workers.
func (w *Worker) Tracing(context.Context, *pb.TracingRequest) (*pb.TracingResponse, error) {
	return nil, status.Unimplementedf("Tracing")
}
