package eager

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/internal/runtime/function"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// nested runs the parts on other tasks of functions that kernels call: those of datasets, loops and
// remote calls. Such a call has a step of its own, and its parts return values instead of handles.
// It implements function.Cluster.
type nested struct {
	context *Context
	devices map[string]uint64 // incarnations of the devices of other tasks
}

// Devices implements function.Cluster.
func (n *nested) Devices() map[string]uint64 { return n.devices }

// firstDevice returns the device of another task that is named in calls. The nodes of a part name
// their own.
func firstDevice(task string) string { return task + "/device:CPU:0" }

// Register implements function.Cluster.
func (n *nested) Register(ctx context.Context, task string, g *graph.Graph) (string, error) {
	peer, err := n.context.peer(task)
	if err != nil {
		return "", err
	}
	for node := range g.Nodes() {
		node.Device = node.Assigned
	}
	name := fmt.Sprintf("nested_partitioned_%x", rand.Uint64())
	p, err := newRemotePart(name, &function.RemotePart{Device: firstDevice(task), Graph: g})
	if err != nil {
		return "", err
	}
	return name, p.register(ctx, peer, n.context.id)
}

// Deregister implements function.Cluster. Tasks keep parts until the end of their context.
func (*nested) Deregister(string, string) {}

// Begin implements function.Cluster.
func (n *nested) Begin(step *kernel.Step) (function.Step, error) {
	s := &nestedStep{cluster: n, id: -rand.Int64N(1<<62) - 1}
	var err error
	if s.run, err = n.context.scope.Begin(step.Context, s.id, n.context.leader); err != nil {
		return nil, err
	}
	s.Rendezvous = s.run.Step().Rendezvous
	return s, nil
}

// nestedStep is the step of one call. It implements function.Step.
type nestedStep struct {
	kernel.Rendezvous
	cluster *nested
	id      int64
	run     *worker.Run
}

// Run implements function.Step.
func (s *nestedStep) Run(ctx context.Context, task, handle string, _ []string, args []tensor.Tensor, rets []string) ([]tensor.Tensor, error) {
	peer, err := s.cluster.context.peer(task)
	if err != nil {
		return nil, err
	}
	req := &pb.RunComponentFunctionRequest{ContextId: s.cluster.context.id, Operation: &pb.Operation{
		Id: -1, Name: handle, Device: firstDevice(task), IsFunction: true, IsComponentFunction: true, FuncStepId: s.id,
	}}
	for i := range args {
		t, err := pbconv.TensorToProto(&args[i])
		if err != nil {
			return nil, err
		}
		req.Operation.OpInputs = append(req.Operation.OpInputs, &pb.Operation_Input{Item: &pb.Operation_Input_Tensor{Tensor: t}})
	}
	for i := range rets {
		req.OutputNum = append(req.OutputNum, int32(i))
	}
	resp, err := peer.RunComponentFunction(ctx, req)
	if err != nil {
		return nil, err
	}
	return valuesOf(task, resp, len(rets))
}

// valuesOf returns the values in a response, with their references.
func valuesOf(task string, resp *pb.RunComponentFunctionResponse, want int) ([]tensor.Tensor, error) {
	if got := len(resp.GetTensor()); got != want {
		return nil, status.Internalf("%s returned %d tensors for %d results", task, got, want)
	}
	out := make([]tensor.Tensor, want)
	for i, p := range resp.GetTensor() {
		var err error
		if out[i], err = pbconv.TensorFromProto(p); err != nil {
			release(out)
			return nil, err
		}
	}
	return out, nil
}

// Fail implements function.Step.
func (s *nestedStep) Fail(err error) { s.run.Fail(err) }

// End implements function.Step.
func (s *nestedStep) End(tasks []string) {
	for _, task := range tasks {
		s.cluster.context.cleanupOn(task, s.id)
	}
	s.run.End()
	s.cluster.context.scope.Cleanup(s.id)
}
