package dataservice

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weft-ml/weft/internal/proto/datapb"
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
	def, err := d.defLocked(t)
	if err != nil {
		return err
	}
	conn := d.conns[w.Address]
	if conn == nil {
		if conn, err = rpc.Dial(w.Address); err != nil {
			d.Log.Warn("a worker cannot be called", "peer", w.Address, "error", err)
			return nil // it asks for its tasks
		}
		d.conns[w.Address] = conn
	}
	d.running.Go(func() {
		ctx, cancel := context.WithTimeout(d.ctx, pushTimeout)
		defer cancel()
		_, err := rpc.Call[datapb.ProcessTaskResponse](ctx, conn, workerService+"ProcessTask", &datapb.ProcessTaskRequest{Task: def})
		if err != nil {
			d.Log.Debug("a worker did not take a task", "peer", w.Address, "error", err)
		}
	})
	return nil
}

// defLocked describes a task for its worker.
func (d *Dispatcher) defLocked(t *task) (*datapb.TaskDef, error) {
	it := d.state.iterations[t.Iteration]
	j := d.state.jobs[it.Job]
	def, err := d.state.datasets[j.Dataset].def()
	if err != nil {
		return nil, err
	}
	out := &datapb.TaskDef{
		Dataset: &datapb.TaskDef_DatasetDef{DatasetDef: def}, DatasetId: j.Dataset, TaskId: t.ID, IterationId: it.ID,
		NumSplitProviders: int64(len(it.Sources)), WorkerAddress: t.Worker,
		ProcessingModeDef: &datapb.ProcessingModeDef{ShardingPolicy: datapb.ProcessingModeDef_ShardingPolicy(j.Policy)},
		NumWorkers:        int64(len(d.Workers)), WorkerIndex: int64(slices.Index(d.Workers, t.Worker)),
	}
	if j.Consumers > 0 {
		out.OptionalNumConsumers = &datapb.TaskDef_NumConsumers{NumConsumers: j.Consumers}
	}
	return out, nil
}

// WorkerHeartbeat registers a worker, and returns the tasks that it should have and those that it
// should not have. A worker that is new takes part in the iterations that have not finished.
func (d *Dispatcher) WorkerHeartbeat(_ context.Context, req *datapb.WorkerHeartbeatRequest) (*datapb.WorkerHeartbeatResponse, error) {
	address := req.GetWorkerAddress()
	if err := rpc.CheckAddress(address); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.state.workers[address]
	if w == nil || w.UID != req.GetWorkerUid() {
		w = &workerState{Address: address, UID: req.GetWorkerUid(), Tags: req.GetWorkerTags()}
		for _, s := range req.GetTransferServers() {
			w.Servers = append(w.Servers, transferServer{s.GetProtocol(), s.GetAddress()})
		}
		if err := d.changeLocked(&update{Worker: w}); err != nil {
			return nil, err
		}
		if err := d.joinLocked(w); err != nil {
			return nil, err
		}
	}
	w.seen = d.Now()
	resp := &datapb.WorkerHeartbeatResponse{}
	for _, t := range d.state.tasks {
		if t.Worker != address || t.finished || slices.Contains(req.GetCurrentTasks(), t.ID) {
			continue
		}
		def, err := d.defLocked(t)
		if err != nil {
			return nil, err
		}
		resp.NewTasks = append(resp.NewTasks, def)
	}
	for _, id := range req.GetCurrentTasks() {
		if t := d.state.tasks[id]; t == nil || t.finished || t.Worker != address {
			resp.TasksToDelete = append(resp.TasksToDelete, id)
		}
	}
	return resp, nil
}

// joinLocked gives a worker tasks of the iterations that it has none of. Coordinated reads keep the
// workers with which they have started: their clients count rounds over a fixed list.
func (d *Dispatcher) joinLocked(w *workerState) error {
	for _, it := range d.state.iterations {
		j := d.state.jobs[it.Job]
		has := slices.ContainsFunc(it.tasks, func(t *task) bool { return t.Worker == w.Address && !t.removed })
		if it.finished || has || j.Consumers > 0 && len(it.tasks) > 0 {
			continue
		}
		if isStatic(j.Policy) && !slices.Contains(d.Workers, w.Address) {
			continue
		}
		if err := d.assignLocked(it, w); err != nil {
			return err
		}
	}
	return nil
}

// WorkerUpdate records tasks that have produced all of their elements.
func (d *Dispatcher) WorkerUpdate(_ context.Context, req *datapb.WorkerUpdateRequest) (*datapb.WorkerUpdateResponse, error) {
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
	for _, t := range d.state.tasks {
		w := d.state.workers[t.Worker]
		if t.finished || w != nil && now.Sub(w.seen) <= d.WorkerTimeout || d.state.jobs[d.state.iterations[t.Iteration].Job].Consumers > 0 {
			continue
		}
		d.Log.Info("the worker of a task has gone", "peer", t.Worker, "dataset_task", t.ID)
		if err := d.changeLocked(&update{Remove: t.ID}); err != nil {
			return err
		}
		delete(d.state.workers, t.Worker) // it joins again with its next heartbeat
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
	return nil
}
