package worker

import (
	"context"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A worker that reads a hundred small variables from a parameter server would send it a hundred
// requests. So a run requests the tensors that its graph receives unconditionally in one batch per
// task, when it begins. They wait in a table of the run for the nodes that receive them.

// initialReceives returns the keys of the tensors that a graph receives from other tasks in every
// run, by task.
func (s *session) initialReceives(g *graph.Graph) map[string][]*kernel.Key {
	byTask := map[string][]*kernel.Key{}
	for n := range g.Nodes() {
		if n.Op.Name != "_Recv" || len(n.Inputs())+len(n.ControlInputs()) > 0 || n.Attrs.Bool("client_terminated") {
			continue
		}
		from := n.Attrs.String("send_device")
		task, err := taskOf(from)
		if err != nil || s.isLocal(from) || !s.isLocal(n.Attrs.String("recv_device")) {
			continue
		}
		incarnation, _ := n.Attrs["send_device_incarnation"].(int64)
		key := kernel.NewKey(from, uint64(incarnation), n.Attrs.String("recv_device"), n.Attrs.String("tensor_name"))
		byTask[task] = append(byTask[task], key)
	}
	return byTask
}

// keySet returns the keys of all tasks as texts.
func keySet(byTask map[string][]*kernel.Key) map[string]bool {
	set := map[string]bool{}
	for _, keys := range byTask {
		for _, key := range keys {
			set[key.At(kernel.FrameIter{})] = true
		}
	}
	return set
}

// requestInitialTensors requests the tensors that the graph receives initially. The caller must
// close the table that receives them.
func (r *run) requestInitialTensors() {
	if len(r.graph.initial) == 0 || r.session.peers == nil {
		return
	}
	r.initial = rendezvous.New()
	start := time.Now()
	for task, keys := range r.graph.initial {
		requests := make([]*message.RecvTensorRequest, len(keys))
		for i, key := range keys {
			requests[i] = &message.RecvTensorRequest{StepID: r.step.id, Key: key.At(kernel.FrameIter{}), RequestID: requestid.New()}
		}
		r.session.peers.StartRecvAll(&r.ctx, task, requests, func(i int, resp *message.RecvTensorResponse, err error) {
			t, dead, err := r.received(keys[i], task, requests[i], resp, err, start)
			if err != nil {
				r.initial.Abort(err)
				return
			}
			// an error means that the run has ended and needs no tensor
			_ = r.initial.Send(keys[i], kernel.FrameIter{}, t, dead)
		})
	}
}

// received processes the response to a request for a tensor.
func (r *run) received(
	key *kernel.Key, task string, req *message.RecvTensorRequest, resp *message.RecvTensorResponse, err error, start time.Time,
) (t tensor.Tensor, dead bool, _ error) {
	if err != nil {
		if r.ctx.Err() != nil {
			err = status.FromContext(&r.ctx, "receiving "+key.Name+" from "+task).Derive()
		}
		return t, false, err
	}
	if resp.RequireAck {
		if peer, err := r.session.peers.Peer(task); err == nil {
			r.worker.acknowledge(peer, req.RequestID)
		}
	}
	if r.worker.Recorder.Current() != nil || r.worker.transfers.active() {
		r.logTransfer(key, resp, start)
	}
	return resp.Tensor, resp.Dead, nil
}

// recvBatch answers a request for several tensors of a step. It waits for the first of them, and
// returns all that are available then.
func (w *Worker) recvBatch(ctx context.Context, req *message.RecvTensorRequest, keys []string) (*message.RecvTensorResponse, error) {
	if err := w.recent.Track(req.RequestID, "RecvTensor (GrpcWorker)", req.Key); err != nil {
		return nil, err
	}
	caller, receiver := callerOf(ctx), ""
	for _, text := range keys {
		key, err := kernel.ParseKey(text)
		if err != nil {
			return nil, err
		}
		if err := w.checkProducer(key, text); err != nil {
			return nil, err
		}
		receiver = key.RecvDevice
		if caller != (cluster.Task{}) {
			if err := w.checkReceiver(ctx, key.SendDevice, key.RecvDevice); err != nil {
				return nil, err
			}
		}
	}
	st, err := w.steps.addReceiver(req.StepID, receiver)
	if err != nil {
		return nil, err
	}
	defer w.steps.removeReceiver(st)
	values, err := st.table.AwaitSome(ctx, keys)
	if err == nil {
		err = allOnHost(values)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		w.steps.scheduleAbort(st)
		return nil, status.FromContext(ctx, "waiting for "+req.Key).Derive()
	default:
		return nil, err
	}
	resp := &message.RecvTensorResponse{SendStartMicros: time.Now().UnixMicro()}
	for _, v := range w.Lender.PackBatch(values, resp) {
		if err := st.table.SendText(keys[v.Index], v.Tensor, v.Dead); err != nil {
			return nil, err
		}
	}
	return resp, nil
}
