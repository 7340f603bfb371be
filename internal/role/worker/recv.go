package worker

import (
	"context"
	"strings"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/recorder"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// RecvTensor returns a tensor that a step sends to another task, and waits for it; the step may not
// have started yet. Each value is returned once. A receiver that gives up ends the step.
func (w *Worker) RecvTensor(ctx context.Context, req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	if w.Lender == nil {
		return w.recv(ctx, req)
	}
	if resp, err := w.Lender.FetchLeased(req); resp != nil || err != nil {
		return resp, err
	}
	if keys := w.Lender.BatchKeys(req); keys != nil && w.cache == nil {
		return w.recvBatch(ctx, req, keys)
	}
	resp, err := w.recv(ctx, req)
	// leases end with their step
	lend := err == nil && (req.Transport == nil || !w.steps.isLasting(req.StepID))
	if lend && w.Lender.Lend(req, resp) && !w.steps.has(req.StepID) {
		w.Lender.EndStep(req.StepID) // the step may have ended before the lease began
	}
	return resp, err
}

func (w *Worker) recv(ctx context.Context, req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	if w.cache != nil && req.RequestID != 0 {
		return w.recvCached(ctx, req)
	}
	return w.recvTensor(ctx, req)
}

func (w *Worker) recvTensor(ctx context.Context, req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	if err := w.recent.Track(req.RequestID, "RecvTensor (GrpcWorker)", req.Key); err != nil {
		return nil, err
	}
	key, err := kernel.ParseKey(req.Key)
	if err != nil {
		return nil, err
	}
	if err := w.checkReceiver(ctx, key.SendDevice, key.RecvDevice); err != nil {
		return nil, err
	}
	if err := w.checkProducer(key, req.Key); err != nil {
		return nil, err
	}
	st, err := w.steps.addReceiver(req.StepID, key.RecvDevice)
	if err != nil {
		return nil, err
	}
	defer w.steps.removeReceiver(st)
	t, dead, err := st.table.Await(ctx, req.Key)
	if err == nil {
		t, err = onHost(t)
	}
	switch {
	case err == nil:
		return &message.RecvTensorResponse{Tensor: t, Dead: dead, SendStartMicros: time.Now().UnixMicro()}, nil
	case ctx.Err() != nil:
		w.steps.scheduleAbort(st)
		return nil, status.FromContext(ctx, "waiting for "+req.Key).Derive()
	}
	return nil, err
}

// checkProducer checks that a peer asks the right task, and the right incarnation of it.
func (w *Worker) checkProducer(key *kernel.Key, text string) error {
	_, local, _ := strings.Cut(key.SendDevice, "/device:")
	switch d := w.localDevice(local); {
	case d == nil:
		return status.InvalidArgumentf("/device:%s unknown device.", local)
	case d.Incarnation != key.SendIncarnation:
		return status.Abortedf("RecvTensor expects a different device incarnation: %d vs. %d. Your worker job (\"%v\") was "+
			"probably restarted. Check your worker job for the reason why it was restarted.",
			key.SendIncarnation, d.Incarnation, w.Task).WithPayload(status.PayloadWorkerRestarted, nil)
	case !w.isOurs(key.SendDevice):
		return status.InvalidArgumentf("Invalid rendezvous key (src): %s @ %v", text, w.Task)
	}
	return nil
}

// localDevice returns the task's device with the given type and number, such as "CPU:0", or nil.
func (w *Worker) localDevice(local string) *kernel.Device {
	for _, d := range w.Devices {
		if strings.HasSuffix(d.Name, "/device:"+local) {
			return d
		}
	}
	return nil
}

// isOurs reports whether a device is on this task, under its own name or one that a session has
// given it.
func (w *Worker) isOurs(deviceName string) bool {
	if w.legacy.isLocal(deviceName) {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sessions {
		if s.task != w.Task && s.isLocal(deviceName) {
			return true
		}
	}
	return false
}

// cleanedUp is the response to all CleanupGraph requests. It must not be modified.
var cleanedUp = &pb.CleanupGraphResponse{}

// CleanupGraph ends a step. An unknown step is no error.
func (w *Worker) CleanupGraph(ctx context.Context, req *pb.CleanupGraphRequest) (*pb.CleanupGraphResponse, error) {
	if err := failpoint.Hit("worker/cleanup"); err != nil {
		return nil, err
	}
	if !w.steps.admits(req.GetStepId(), callerOf(ctx)) {
		return cleanedUp, nil
	}
	if w.cache != nil {
		w.cache.dropStep(req.GetStepId())
	}
	w.steps.cleanup(req.GetStepId())
	return cleanedUp, nil
}

// Send implements kernel.Rendezvous. Tensors wait in the table of the step for their consumers, on
// this task or others.
func (r *run) Send(key *kernel.Key, at kernel.FrameIter, t tensor.Tensor, dead bool) error {
	if !r.session.isLocal(key.SendDevice) {
		t.Release()
		return status.InvalidArgumentf("Invalid rendezvous key (src): %s @ %v", key.At(at), r.session.task)
	}
	return r.step.table.Send(key, at, t, dead)
}

// SendVariable implements kernel.Rendezvous.
func (r *run) SendVariable(key *kernel.Key, at kernel.FrameIter, v *kernel.Variable) error {
	if !r.session.isLocal(key.SendDevice) {
		return status.InvalidArgumentf("Invalid rendezvous key (src): %s @ %v", key.At(at), r.session.task)
	}
	return r.step.table.SendVariable(key, at, v)
}

// Recv implements kernel.Rendezvous. It requests a tensor of another task from that task.
func (r *run) Recv(key *kernel.Key, at kernel.FrameIter, done func(t tensor.Tensor, dead bool, err error)) {
	switch {
	case !r.session.isLocal(key.RecvDevice):
		done(tensor.Tensor{}, false, status.InvalidArgumentf("Invalid rendezvous key (dst): %s @ %v", key.At(at), r.session.task))
	case r.session.isLocal(key.SendDevice) && r.step.lasting:
		r.recvLasting(key, at, done)
	case r.session.isLocal(key.SendDevice):
		r.step.table.Recv(key, at, done)
	case r.initial != nil && at == (kernel.FrameIter{}) && r.graph.initialKeys[key.At(at)]:
		r.initial.Recv(key, at, done)
	default:
		r.fetch(key, at, done)
	}
}

// fetch requests a tensor from another task. The request ends with the run, whose executors wait
// for done.
func (r *run) fetch(key *kernel.Key, at kernel.FrameIter, done func(t tensor.Tensor, dead bool, err error)) {
	task, err := taskOf(key.SendDevice)
	if err == nil && r.session.peers == nil {
		err = status.Internalf("No worker known as %s", task)
	}
	if err != nil {
		done(tensor.Tensor{}, false, err)
		return
	}
	if err := failpoint.Hit("worker/request-tensor"); err != nil {
		done(tensor.Tensor{}, false, err)
		return
	}
	start := time.Now()
	req := &message.RecvTensorRequest{StepID: r.step.id, Key: key.At(at), RequestID: requestid.New()}
	r.session.peers.StartRecv(&r.ctx, task, req, func(resp *message.RecvTensorResponse, err error) {
		done(r.received(key, task, req, resp, err, start))
	})
}

// logTransfer records a transfer. It starts when the producer sent the tensor, as far as the clocks
// of both tasks agree.
func (r *run) logTransfer(key *kernel.Key, resp *message.RecvTensorResponse, start time.Time) {
	end := time.Now()
	r.worker.Recorder.Current().Transfer(recorder.Transfer{
		Step: r.step.id, Tensor: key.Name, From: key.SendDevice, To: key.RecvDevice, Bytes: resp.Tensor.ByteSize(),
		Requested: start, Received: end, SentMicros: resp.SendStartMicros,
	})
	if sent := time.UnixMicro(resp.SendStartMicros); sent.After(start) {
		start = sent
	}
	if last := end.Add(-time.Microsecond); start.After(last) {
		start = last
	}
	r.worker.transfers.record(transfer{
		step: r.step.id, name: key.Name, from: key.SendDevice, to: key.RecvDevice,
		bytes: resp.Tensor.ByteSize(), start: start, end: end,
	})
}
