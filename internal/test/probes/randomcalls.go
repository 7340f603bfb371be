package main

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/test/hostile"
	"github.com/weft-ml/weft/internal/transport/rpc"
)

// program runs the steps of a random program in a session.
func (c *client) program(p *hostile.Program) error {
	handle, err := c.bounded(func() (string, error) { return c.create(p.Graph) })
	if err != nil {
		return err
	}
	options := &pb.RunOptions{TimeoutInMs: 3000}
	if len(p.Init) > 0 {
		if err := c.randomStep(handle, options, nil, p.Init); err != nil {
			return err
		}
	}
	var fetches []string
	for _, name := range p.Targets {
		fetches = append(fetches, name+":0")
	}
	for i := range p.Steps {
		if i%2 == 1 {
			err = c.randomStep(handle, options, fetches, nil)
		} else {
			err = c.randomStep(handle, options, nil, p.Targets)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bounded makes calls that end after randomTime.
func (c *client) bounded(call func() (string, error)) (string, error) {
	before := c.ctx
	ctx, cancel := context.WithTimeout(before, randomTime)
	defer cancel()
	c.ctx = ctx
	defer func() { c.ctx = before }()
	return call()
}

func (c *client) randomStep(handle string, options *pb.RunOptions, fetches, targets []string) error {
	_, err := c.bounded(func() (string, error) {
		resp, err := c.master.RunStep(c.ctx, &message.RunStepRequest{Session: handle, Fetches: fetches, Targets: targets, Options: options})
		if err != nil {
			return "", err
		}
		defer resp.Release()
		if resp.Err != nil {
			return "", resp.Err
		}
		return "", nil
	})
	return err
}

// eager executes the nodes of a random program one by one in an eager context, which one program in
// eight leaves open.
func (c *client) eager(p *hostile.Program, number uint64) error {
	if err := c.call(rpc.MethodCreateContext, c.context(number+1)); err != nil {
		return err
	}
	if number%64 != 0 {
		defer func() {
			// it may have ended
			_ = c.call(rpc.MethodCloseContext, &pb.CloseContextRequest{ContextId: number + 1})
		}()
	}
	if lib := p.Graph.Library; lib != nil {
		for _, f := range lib.Function {
			register := &pb.QueueItem{Item: &pb.QueueItem_RegisterFunction{RegisterFunction: &pb.RegisterFunctionOp{FunctionDef: f}}}
			if err := c.call(rpc.MethodEnqueue, &pb.EnqueueRequest{ContextId: number + 1, Queue: []*pb.QueueItem{register}}); err != nil {
				return err
			}
		}
	}
	ids, req := map[string]int64{}, &pb.EnqueueRequest{ContextId: number + 1}
	var last error
	for i, n := range p.Graph.Node {
		op := &pb.Operation{Id: int64(i + 1), Name: n.Op, Attrs: n.Attr, Device: n.Device}
		for _, in := range n.Input {
			var from string
			var output int32
			from = in
			for at := range in {
				if in[at] == ':' {
					from = in[:at]
					_, _ = fmt.Sscan(in[at+1:], &output) // 0 if it is no number
					break
				}
			}
			h := &pb.RemoteTensorHandle{OpId: ids[from], OutputNum: output}
			op.OpInputs = append(op.OpInputs, &pb.Operation_Input{Item: &pb.Operation_Input_RemoteHandle{RemoteHandle: h}})
		}
		ids[n.Name] = int64(i + 1)
		req.Queue = []*pb.QueueItem{{Item: &pb.QueueItem_Operation{Operation: op}}}
		if err := c.call(rpc.MethodEnqueue, req); err != nil {
			last = err
		}
		if c.ctx.Err() != nil {
			break
		}
	}
	return last
}

func (c *client) call(method string, req any) error {
	_, err := c.bounded(func() (string, error) { return "", c.conn.Invoke(c.ctx, method, req) })
	return err
}

// methods are those that damaged requests go to.
var methods = []string{
	rpc.MethodCreateSession, rpc.MethodCreateSession, rpc.MethodCreateSession, rpc.MethodExtendSession, rpc.MethodPartialRunSetup, rpc.MethodRunStep,
	rpc.MethodRunStep, rpc.MethodCloseSession, rpc.MethodListDevices, rpc.MethodMakeCallable, rpc.MethodRunCallable, rpc.MethodReleaseCallable,
	rpc.MethodGetStatus, rpc.MethodCreateWorkerSession, rpc.MethodDeleteWorkerSession, rpc.MethodRegisterGraph, rpc.MethodRegisterGraph,
	rpc.MethodDeregisterGraph, rpc.MethodRunGraph, rpc.MethodRunGraph, rpc.MethodCleanupGraph, rpc.MethodRecvTensor, rpc.MethodMarkRecvFinished,
	rpc.MethodLogging, rpc.MethodTracing, rpc.MethodRecvBuf, rpc.MethodGetStepSequence, rpc.MethodCompleteGroup, rpc.MethodCompleteInstance,
	rpc.MethodCreateContext, rpc.MethodUpdateContext, rpc.MethodEnqueue, rpc.MethodStreamingEnqueue, rpc.MethodWaitQueueDone,
	rpc.MethodRunComponentFunction, rpc.MethodKeepAlive, rpc.MethodCloseContext, rpc.MethodGetTask, rpc.MethodRecord,
}

// damaged sends encoded requests with a few other bytes, to their method or to another one.
func (c *client) damaged(g *hostile.Generator, seed, number uint64) error {
	p := g.Program(seed, number)
	data, err := proto.Marshal(&pb.CreateSessionRequest{GraphDef: p.Graph})
	if err != nil {
		return nil // a name is no text
	}
	handle, err := c.session("a = Placeholder() dtype=float\ny = Identity(a)\n")
	if err != nil {
		return err
	}
	step, err := proto.Marshal(&pb.RunStepRequest{
		SessionHandle: handle, Fetch: []string{"y:0"}, Target: []string{"y"}, Options: &pb.RunOptions{TimeoutInMs: 2000},
		Feed: []*pb.NamedTensorProto{{Name: "a:0", Tensor: &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT, FloatVal: []float32{1}, TensorShape: &pb.TensorShapeProto{}}}},
	})
	if err != nil {
		return err
	}
	var last error
	for _, request := range g.Damaged(seed, number, 20, data, step) {
		_, last = c.bounded(func() (string, error) { return "", c.invoke(methods[request.Method%len(methods)], request.Data) })
	}
	return last
}
