package dataservice

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weft-ml/weft/internal/proto/datapb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// pushTimeout bounds the call that gives a worker a task at once. A worker that does not answer
// receives it with its next heartbeat.
const pushTimeout = 5 * time.Second

// workersOfLocked returns the workers that take part in a job.
func (d *Dispatcher) workersOfLocked(j *job) []*workerState {
	var out []*workerState
	for _, w := range d.state.workers {
		if isStatic(j.Policy) && !slices.Contains(d.Workers, w.Address) {
			continue
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *workerState) int { return cmp.Compare(a.Address, b.Address) })
	return out
}

// assignLocked creates the task of a worker in an iteration and sends it to the worker.
func (d *Dispatcher) assignLocked(it *iteration, w *workerState) error {
	t := &task{ID: d.nextLocked(), Iteration: it.ID, Worker: w.Address}
	if err := d.changeLocked(&update{Task: t}); err != nil {
		return err
	}
	select {
	case d.pushes <- struct{}{}:
	default:
		return nil // it asks for its tasks
	}
	def := d.defLocked(t)
	release := membudget.Hold(int64(len(def.GetDatasetDef().ProtoReflect().GetUnknown())))
	conn, err := d.connLocked(w.Address)
	if err != nil || release == nil {
		if err != nil {
			d.Log.Warn("a worker cannot be called", "peer", w.Address, "error", err)
		}
		if release != nil {
			release()
		}
		<-d.pushes
		return nil // it asks for its tasks
	}
	d.running.Go(func() {
		defer func() {
			release()
			<-d.pushes
		}()
		ctx, cancel := context.WithTimeout(d.ctx, pushTimeout)
		defer cancel()
		_, err := rpc.Call[datapb.ProcessTaskResponse](ctx, conn, workerService+"ProcessTask", &datapb.ProcessTaskRequest{Task: def})
		if err != nil {
			d.Log.Debug("a worker did not take a task", "peer", w.Address, "error", err)
		}
	})
	return nil
}

// connLocked returns the connection to a worker.
func (d *Dispatcher) connLocked(address string) (*rpc.Conn, error) {
	if conn := d.conns[address]; conn != nil {
		return conn, nil
	}
	conn, err := rpc.Dial(address)
	if err == nil {
		d.conns[address] = conn
	}
	return conn, err
}

// defLocked describes a task for its worker.
func (d *Dispatcher) defLocked(t *task) *datapb.TaskDef {
	it := d.state.iterations[t.Iteration]
	j := d.state.jobs[it.Job]
	def := d.state.datasets[j.Dataset].def()
	out := &datapb.TaskDef{
		Dataset: &datapb.TaskDef_DatasetDef{DatasetDef: def}, DatasetId: j.Dataset, TaskId: t.ID, IterationId: it.ID,
		NumSplitProviders: int64(len(it.Sources)), WorkerAddress: t.Worker,
		ProcessingModeDef: &datapb.ProcessingModeDef{ShardingPolicy: datapb.ProcessingModeDef_ShardingPolicy(j.Policy)},
		NumWorkers:        int64(len(d.Workers)), WorkerIndex: int64(slices.Index(d.Workers, t.Worker)),
	}
	if j.Consumers > 0 {
		out.OptionalNumConsumers = &datapb.TaskDef_NumConsumers{NumConsumers: j.Consumers}
	}
	return out
}

// WorkerHeartbeat registers a worker, and returns the tasks that it should have and those that it
// should not have. A worker that is new takes part in the iterations that have not finished.
func (d *Dispatcher) WorkerHeartbeat(_ context.Context, req *datapb.WorkerHeartbeatRequest) (*datapb.WorkerHeartbeatResponse, error) {
	address := req.GetWorkerAddress()
	if err := rpc.CheckAddress(address); err != nil {
		return nil, err
	}
	if err := d.checkCount(len(req.GetCurrentTasks())); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.state.workers[address]
	if w == nil || w.UID != req.GetWorkerUid() {
		var err error
		if w, err = d.registerLocked(req); err != nil {
			return nil, err
		}
	}
	w.seen = d.Now()
	return d.compareLocked(address, req.GetCurrentTasks()), nil
}

// registerLocked adds a worker that has started.
func (d *Dispatcher) registerLocked(req *datapb.WorkerHeartbeatRequest) (*workerState, error) {
	w := &workerState{Address: req.GetWorkerAddress(), UID: req.GetWorkerUid(), Tags: req.GetWorkerTags()}
	size := len(w.Address)
	for _, tag := range w.Tags {
		size += len(tag) + entryText
	}
	for _, s := range req.GetTransferServers() {
		w.Servers = append(w.Servers, transferServer{s.GetProtocol(), s.GetAddress()})
		size += len(s.GetProtocol()) + len(s.GetAddress()) + 2*entryText
	}
	if size > maxWorkerText {
		return nil, status.InvalidArgumentf("the tags and transfer servers of the worker at %.64q have %d bytes, at most %d are allowed",
			w.Address, size, maxWorkerText)
	}
	known := len(d.state.workers)
	if d.state.workers[w.Address] != nil {
		known--
	}
	if err := room("workers", known, d.limits.workers, entryMemory+maxWorkerText); err != nil {
		return nil, err
	}
	if err := d.changeLocked(&update{Worker: w}); err != nil {
		return nil, err
	}
	if err := d.joinLocked(w); err != nil {
		delete(d.state.workers, w.Address) // it joins again with its next heartbeat
		d.closeConnLocked(w.Address)
		return nil, err
	}
	return w, nil
}

// compareLocked returns the difference between the tasks that a worker has and those that it should
// have. What does not fit into the reply is in the next one.
func (d *Dispatcher) compareLocked(address string, current []int64) *datapb.WorkerHeartbeatResponse {
	resp := &datapb.WorkerHeartbeatResponse{}
	has := make(map[int64]bool, len(current))
	for _, id := range current {
		has[id] = true
		if t := d.state.tasks[id]; t == nil || t.finished || t.Worker != address {
			resp.TasksToDelete = append(resp.TasksToDelete, id)
		}
	}
	size := 0
	for id, t := range d.state.byWorker[address] {
		if t.finished || has[id] {
			continue
		}
		if len(resp.NewTasks) == maxReplyTasks || size > maxReplyBytes {
			break
		}
		def := d.defLocked(t)
		size += len(def.GetDatasetDef().ProtoReflect().GetUnknown())
		resp.NewTasks = append(resp.NewTasks, def)
	}
	return resp
}

// joinLocked gives a worker tasks of the iterations that it has none of. Coordinated reads keep the
// workers with which they have started: their clients count rounds over a fixed list.
func (d *Dispatcher) joinLocked(w *workerState) error {
	has := map[int64]bool{} // iterations
	for _, t := range d.state.byWorker[w.Address] {
		if !t.removed {
			has[t.Iteration] = true
		}
	}
	for _, it := range d.state.iterations {
		j := d.state.jobs[it.Job]
		if it.finished || has[it.ID] || j.Consumers > 0 && len(it.tasks) > 0 {
			continue
		}
		if isStatic(j.Policy) && !slices.Contains(d.Workers, w.Address) {
			continue
		}
		if err := room("tasks", len(d.state.tasks), d.limits.tasks, entryMemory); err != nil {
			return err
		}
		if err := d.assignLocked(it, w); err != nil {
			return err
		}
	}
	return nil
}

// WorkerUpdate records tasks that have produced all of their elements.
func (d *Dispatcher) WorkerUpdate(_ context.Context, req *datapb.WorkerUpdateRequest) (*datapb.WorkerUpdateResponse, error) {
	if err := d.checkCount(len(req.GetUpdates())); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range req.GetUpdates() {
		t := d.state.tasks[u.GetTaskId()]
		if t == nil {
			return nil, status.NotFoundf("Task id %d not found.", u.GetTaskId())
		}
		if !u.GetCompleted() || t.finished {
			continue
		}
		if err := d.changeLocked(&update{Finish: t.ID}); err != nil {
			return nil, err
		}
	}
	return &datapb.WorkerUpdateResponse{}, nil
}

// GetWorkers returns the addresses of the workers.
func (d *Dispatcher) GetWorkers(context.Context, *datapb.GetWorkersRequest) (*datapb.GetWorkersResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	resp := &datapb.GetWorkersResponse{}
	for _, w := range d.state.workers {
		resp.Workers = append(resp.Workers, &datapb.WorkerInfo{Address: w.Address})
	}
	return resp, nil
}

// sweep looks for workers and clients that have gone, until the dispatcher is closed.
func (d *Dispatcher) sweep() {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-ticker.C:
		}
		if err := d.expire(d.Now()); err != nil {
			d.Log.Error("the journal cannot be written", "error", err)
		}
	}
}

// expire ends the tasks of workers, the clients and the iterations whose time is over.
func (d *Dispatcher) expire(now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for address, tasks := range d.state.byWorker {
		if w := d.state.workers[address]; w != nil && now.Sub(w.seen) <= d.WorkerTimeout {
			continue
		}
		for _, t := range tasks {
			if t.finished || d.state.jobs[d.state.iterations[t.Iteration].Job].Consumers > 0 {
				continue
			}
			d.Log.Info("the worker of a task has gone", "peer", address, "dataset_task", t.ID)
			if err := d.changeLocked(&update{Remove: t.ID}); err != nil {
				return err
			}
		}
	}
	for address, w := range d.state.workers {
		if now.Sub(w.seen) > d.WorkerTimeout {
			d.forgetLocked(address)
		}
	}
	for _, c := range d.state.clients {
		if now.Sub(c.seen) > d.ClientTimeout {
			if err := d.changeLocked(&update{Release: c.ID}); err != nil {
				return err
			}
		}
	}
	for _, it := range d.state.iterations {
		if it.clients == 0 && now.Sub(it.idle) > d.JobTimeout {
			if err := d.changeLocked(&update{Drop: it.ID}); err != nil {
				return err
			}
		}
	}
	for _, j := range d.state.jobs {
		if j.iterations == 0 && now.Sub(j.idle) > d.JobTimeout {
			if err := d.changeLocked(&update{DropJob: j.ID}); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetLocked forgets a worker that has gone. It joins again with its next heartbeat. A worker
// with a task of coordinated reads stays, because these wait for it.
func (d *Dispatcher) forgetLocked(address string) {
	for _, t := range d.state.byWorker[address] {
		if !t.finished {
			return
		}
	}
	delete(d.state.workers, address)
	d.closeConnLocked(address)
}

// closeConnLocked closes the connection to a worker, if there is one.
func (d *Dispatcher) closeConnLocked(address string) {
	if conn := d.conns[address]; conn != nil {
		delete(d.conns, address)
		d.running.Go(conn.Close) // it waits for a worker that does not read
	}
}
