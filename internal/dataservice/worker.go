package dataservice

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/proto/datapb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// WorkerConfig holds the parameters of a worker.
type WorkerConfig struct {
	// Dispatcher is the address of the dispatcher, and Address that of the worker, as clients and
	// the dispatcher reach it.
	Dispatcher, Address string
	Tags                []string
	// Heartbeat is the time between two calls of the dispatcher.
	Heartbeat time.Duration
	Log       *slog.Logger
}

// Worker runs the tasks that a dispatcher gives it. Its methods may be called concurrently.
type Worker struct {
	WorkerConfig
	uid     int64
	conn    *rpc.Conn // to the dispatcher
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	tasks    map[int64]*runningTask // guarded by mu
	finished map[int64]bool         // tasks that have produced all elements; guarded by mu
	unsent   []int64                // tasks that ended unknown to the dispatcher; guarded by mu
}

// NewWorker returns a worker. The caller calls Run and Close.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	conn, err := rpc.Dial(cfg.Dispatcher)
	if err != nil {
		return nil, err
	}
	w := &Worker{WorkerConfig: cfg, uid: rand.Int64(), conn: conn, tasks: map[int64]*runningTask{}, finished: map[int64]bool{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

// Close ends all tasks.
func (w *Worker) Close() {
	w.cancel()
	w.mu.Lock()
	tasks := w.tasks
	w.tasks = map[int64]*runningTask{}
	w.mu.Unlock()
	for _, t := range tasks {
		t.close()
	}
	w.running.Wait()
	w.conn.Close()
}

// Run sends heartbeats until ctx ends. A dispatcher that does not answer is called again.
func (w *Worker) Run(ctx context.Context) {
	ticker := time.NewTicker(w.Heartbeat)
	defer ticker.Stop()
	reached := true
	for {
		err := w.heartbeat(ctx)
		if ctx.Err() != nil {
			return
		}
		if (err == nil) != reached {
			reached = err == nil
			w.Log.Warn("the dispatcher", "reached", reached, "peer", w.Dispatcher, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// callTimeout bounds a call of the dispatcher.
const callTimeout = 10 * time.Second

func (w *Worker) heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	w.mu.Lock()
	req := &datapb.WorkerHeartbeatRequest{
		WorkerAddress: w.Address, WorkerUid: w.uid, WorkerTags: w.Tags, CurrentTasks: slices.Sorted(maps.Keys(w.tasks)),
		TransferServers: []*datapb.DataTransferServerInfo{{Protocol: "grpc", Address: w.Address}},
	}
	for id := range w.finished {
		req.CurrentTasks = append(req.CurrentTasks, id)
	}
	w.mu.Unlock()
	resp, err := rpc.Call[datapb.WorkerHeartbeatResponse](ctx, w.conn, dispatcherService+"WorkerHeartbeat", req)
	if err != nil {
		return err
	}
	for _, id := range resp.GetTasksToDelete() {
		w.stop(id)
	}
	for _, def := range resp.GetNewTasks() {
		if err := w.start(def); err != nil {
			w.Log.Warn("a task was not started", "dataset_task", def.GetTaskId(), "error", err)
		}
	}
	return w.report(ctx)
}

// report tells the dispatcher which tasks have produced all of their elements.
func (w *Worker) report(ctx context.Context) error {
	w.mu.Lock()
	ids := w.unsent
	w.unsent = nil
	w.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	req := &datapb.WorkerUpdateRequest{WorkerAddress: w.Address}
	for _, id := range ids {
		req.Updates = append(req.Updates, &datapb.TaskProgress{TaskId: id, Completed: true})
	}
	_, err := rpc.Call[datapb.WorkerUpdateResponse](ctx, w.conn, dispatcherService+"WorkerUpdate", req)
	if err != nil && status.CodeOf(err) != status.NotFound {
		w.mu.Lock()
		w.unsent = append(w.unsent, ids...)
		w.mu.Unlock()
	}
	return err
}

// start starts a task that does not run yet.
func (w *Worker) start(def *datapb.TaskDef) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil || w.tasks[def.GetTaskId()] != nil || w.finished[def.GetTaskId()] {
		return nil
	}
	if n := len(w.tasks) + len(w.finished) + len(w.unsent); n >= maxRunning {
		return status.ResourceExhaustedf("The tasks of this worker have reached their limit (%d): task %d was not started.", maxRunning, def.GetTaskId())
	}
	w.tasks[def.GetTaskId()] = newTask(w, def)
	return nil
}

func (w *Worker) stop(id int64) {
	w.mu.Lock()
	t := w.tasks[id]
	delete(w.tasks, id)
	delete(w.finished, id)
	w.mu.Unlock()
	if t != nil {
		t.close()
	}
}

// ended records that a task has produced all of its elements, and tells the dispatcher at once.
func (w *Worker) ended(id int64) {
	w.mu.Lock()
	t := w.tasks[id]
	delete(w.tasks, id)
	if t != nil {
		w.finished[id] = true
		w.unsent = append(w.unsent, id)
	}
	w.mu.Unlock()
	if t == nil {
		return
	}
	w.running.Go(func() {
		t.close()
		ctx, cancel := context.WithTimeout(w.ctx, callTimeout)
		defer cancel()
		if err := w.report(ctx); err != nil {
			w.Log.Debug("the dispatcher does not know yet that a task has ended", "dataset_task", id, "error", err)
		}
	})
}

// ProcessTask starts a task.
func (w *Worker) ProcessTask(_ context.Context, req *datapb.ProcessTaskRequest) (*datapb.ProcessTaskResponse, error) {
	return &datapb.ProcessTaskResponse{}, w.start(req.GetTask())
}

// GetElement returns the next element of a task.
func (w *Worker) GetElement(ctx context.Context, req *datapb.GetElementRequest) (*datapb.GetElementResponse, error) {
	id := req.GetTaskId()
	w.mu.Lock()
	t, finished := w.tasks[id], w.finished[id]
	w.mu.Unlock()
	switch {
	case finished:
		return &datapb.GetElementResponse{EndOfSequence: true}, nil
	case t == nil:
		// The task may not have arrived yet: clients try again.
		return nil, status.Unavailablef("Task %d not found", id)
	}
	return t.element(ctx, req)
}

// GetWorkerTasks returns the tasks that run.
func (w *Worker) GetWorkerTasks(context.Context, *datapb.GetWorkerTasksRequest) (*datapb.GetWorkerTasksResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	resp := &datapb.GetWorkerTasksResponse{}
	for _, t := range w.tasks {
		resp.Tasks = append(resp.Tasks, &datapb.TaskInfo{
			WorkerAddress: w.Address, TaskId: t.def.GetTaskId(), IterationId: t.def.GetIterationId(), WorkerUid: w.uid,
		})
	}
	return resp, nil
}
