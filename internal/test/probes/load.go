package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// overloaded are the codes of requests that meet a limit of a busy server.
var overloaded = []status.Code{status.ResourceExhausted, status.DeadlineExceeded, status.Unavailable, status.Aborted, status.Internal, status.InvalidArgument, status.Cancelled}

// load is a probe that sends much at once. Each request may succeed.
func load(name string, run func(c *client) error) probe {
	return probe{name: "load-" + name, mayPass: true, codes: overloaded, run: func(c *client) error {
		whole := c.ctx
		ctx, cancel := context.WithTimeout(whole, probeTime/2)
		defer cancel()
		c.ctx = ctx
		err := run(c)
		c.ctx = whole
		if err != nil {
			return err
		}
		return c.alive()
	}}
}

// together calls a function n times at once, each with a connection of its own. It returns the
// first error that no overloaded server has.
func (c *client) together(n int, call func(c *client, i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			other, err := dial(c.ctx, c.address)
			if err != nil {
				return // too many connections
			}
			defer other.close()
			other.dir = c.dir
			errs[i] = call(other, i)
		})
	}
	all.Wait()
	for _, err := range errs {
		if p := (&probe{codes: overloaded}); err != nil && !p.expects(status.CodeOf(err)) {
			return err
		}
	}
	return nil
}

var loadProbes = []probe{
	load("feeds", func(c *client) error {
		return c.together(60, func(c *client, _ int) error {
			handle, err := c.session("a = Placeholder() dtype=float\nb = Identity(a)\ny = Neg(b)\n")
			if err != nil {
				return err
			}
			value, err := tensor.Zeros(tensor.Float32, tensor.Shape{24 << 20})
			if err != nil {
				return err
			}
			resp, err := c.master.RunStep(c.ctx, &message.RunStepRequest{Session: handle, Targets: []string{"y"}, Feeds: []message.NamedTensor{{Name: "a:0", Tensor: value}}})
			return outcome(resp, err)
		})
	}),
	load("answers", func(c *client) error {
		return c.together(60, func(c *client, _ int) error {
			return c.fetch(fill("float[]{1}", 24<<20, "y"), 3, "y:0")
		})
	}),
	load("answers-strings", func(c *client) error {
		return c.together(30, func(c *client, _ int) error {
			return c.fetch(long(100_000), 3, "v:0")
		})
	}),
	load("answers-left", func(c *client) error {
		// connections whose window takes no answer
		for range 60 {
			handle, err := c.session(fill("float[]{1}", 16<<20, "y"))
			if err != nil {
				return err
			}
			w, err := c.wire()
			if err != nil {
				return err
			}
			defer w.Close()
			w.frame(frameSettings, 0, 0, []byte{0, 4, 0, 0, 0, 1})
			request := append(repeatField(1, []byte(handle)), repeatField(3, []byte("y:0"))...)
			w.frame(frameHeaders, flagEndHeaders, 1, headers(rpc.MethodRunStep))
			w.frame(frameData, flagEndStream, 1, append([]byte{0, 0, 0, 0, byte(len(request))}, request...))
			if _, err := w.Write(w.out.Bytes()); err != nil {
				return nil //nolint:nilerr // the server may close the connection
			}
		}
		pause(c.ctx, 10*time.Second)
		return nil
	}),
	load("requests-unfinished", func(c *client) error {
		// requests of nearly 60 MiB that do not end
		piece := make([]byte, 16<<10)
		return c.together(120, func(c *client, _ int) error {
			w, err := c.wire()
			if err != nil {
				return nil //nolint:nilerr // too many connections
			}
			defer w.Close()
			w.frame(frameHeaders, flagEndHeaders, 1, headers(rpc.MethodCreateSession))
			w.frame(frameData, 0, 1, []byte{0, 3, 0xc0, 0, 0})
			for range 60 * 64 {
				w.frame(frameData, 0, 1, piece)
				if _, err := w.Write(w.out.Bytes()); err != nil {
					return nil //nolint:nilerr // the server may close the connection
				}
				w.out.Reset()
			}
			pause(c.ctx, 10*time.Second)
			return nil
		})
	}),
	load("gzip", func(c *client) error {
		// requests of 2.4 MiB with 240 MiB of empty feeds
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
		for range 120 {
			if _, err := z.Write(bytes.Repeat([]byte{0x12, 0}, 1<<20)); err != nil {
				return err
			}
		}
		if err := z.Close(); err != nil {
			return err
		}
		// a message that compresses a hundredfold at most is accepted
		body := append(packed.Bytes(), make([]byte, max(0, 2_500_000-packed.Len()))...)
		return c.together(40, func(c *client, _ int) error {
			w, err := c.wire()
			if err != nil {
				return nil //nolint:nilerr // too many connections
			}
			w.frame(frameHeaders, flagEndHeaders, 1, headers(rpc.MethodRunStep, "grpc-encoding", "gzip"))
			n := len(body)
			data := append([]byte{1, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body...)
			for len(data) > 0 {
				part := data[:min(len(data), 16<<10)]
				data = data[len(part):]
				w.frame(frameData, 0, 1, part)
			}
			w.frame(frameData, flagEndStream, 1, nil)
			w.finish()
			return nil
		})
	}),
	load("graphs", func(c *client) error {
		content := make([]byte, 50<<20)
		return c.together(20, func(c *client, _ int) error {
			var err error
			for i := 0; i < 5 && err == nil; i++ {
				_, err = c.create(constant(int64(len(content)/4), content))
			}
			return err
		})
	}),
	load("nodes", func(c *client) error {
		return c.together(10, func(c *client, _ int) error {
			all := make([][]string, 200_000)
			for i := range all {
				all[i] = []string{fmt.Sprint("n", i), "NoOp"}
			}
			var err error
			for i := 0; i < 5 && err == nil; i++ {
				_, err = c.create(nodes(all...))
			}
			return err
		})
	}),
	load("extensions", func(c *client) error {
		handle, err := c.create(&pb.GraphDef{})
		version := int64(0)
		for i := 0; i < 400 && err == nil; i++ {
			all := make([][]string, 20_000)
			for j := range all {
				all[j] = []string{fmt.Sprint("n", i, "_", j), "NoOp"}
			}
			var resp *pb.ExtendSessionResponse
			resp, err = c.master.ExtendSession(c.ctx, &pb.ExtendSessionRequest{SessionHandle: handle, GraphDef: nodes(all...), CurrentGraphVersion: version})
			version = resp.GetNewGraphVersion()
		}
		return err
	}),
	load("partial-runs", func(c *client) error {
		// partial runs that hold what they were fed
		return c.together(8, func(c *client, _ int) error {
			handle, err := c.session("a = Placeholder() dtype=float\nb = Placeholder() dtype=float\ny = AddV2(a, b)\n")
			for i := 0; i < 100 && err == nil; i++ {
				var setup *pb.PartialRunSetupResponse
				setup, err = c.master.PartialRunSetup(c.ctx, &pb.PartialRunSetupRequest{SessionHandle: handle, Feed: []string{"a:0", "b:0"}, Fetch: []string{"y:0"}})
				if err != nil {
					break
				}
				value, zerosErr := tensor.Zeros(tensor.Float32, tensor.Shape{4 << 20})
				if zerosErr != nil {
					return zerosErr
				}
				resp, stepErr := c.master.RunStep(c.ctx, &message.RunStepRequest{Session: handle, PartialRun: setup.GetPartialRunHandle(), Feeds: []message.NamedTensor{{Name: "a:0", Tensor: value}}})
				err = outcome(resp, stepErr)
			}
			return err
		})
	}),
	load("contexts", func(c *client) error {
		return c.together(20, func(c *client, n int) error {
			var err error
			for i := 0; i < 50 && err == nil; i++ {
				err = c.fillContext(uint64(1000*n+i+1), 1, 32<<20)
			}
			return err
		})
	}),
	load("context-tensors", func(c *client) error { return c.fillContext(7, 1000, 8<<20) }),
	load("context-strings", func(c *client) error {
		err := c.call(rpc.MethodCreateContext, c.context(8))
		value := &pb.TensorProto{Dtype: pb.DataType_DT_STRING, TensorShape: shapeOf(1 << 20), StringVal: [][]byte{[]byte("x")}}
		for i := int64(0); i < 3000 && err == nil; i++ {
			item := &pb.QueueItem{Item: &pb.QueueItem_SendTensor{SendTensor: &pb.SendTensorOp{OpId: i + 1, Tensors: []*pb.TensorProto{value}}}}
			err = c.call(rpc.MethodEnqueue, &pb.EnqueueRequest{ContextId: 8, Queue: []*pb.QueueItem{item}})
		}
		return err
	}),
	load("context-functions", func(c *client) error {
		err := c.call(rpc.MethodCreateContext, c.context(9))
		for i := 0; i < 1000 && err == nil; i++ {
			req := &pb.EnqueueRequest{ContextId: 9}
			for j := range 50 {
				f := &pb.FunctionDef{Signature: &pb.OpDef{Name: fmt.Sprint("F", i, "_", j)}}
				for n := range 200 {
					f.NodeDef = append(f.NodeDef, &pb.NodeDef{Name: fmt.Sprint("n", n), Op: "NoOp"})
				}
				req.Queue = append(req.Queue, &pb.QueueItem{Item: &pb.QueueItem_RegisterFunction{RegisterFunction: &pb.RegisterFunctionOp{FunctionDef: f}}})
			}
			err = c.call(rpc.MethodEnqueue, req)
		}
		return err
	}),
	load("callables", func(c *client) error {
		// each callable has a signature of its own, and with that a part of the graph
		var text strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&text, "a%d = Placeholder() dtype=float\ny%d = Identity(a%d)\n", i, i, i)
		}
		handle, err := c.session(text.String())
		for i := 0; i < 900 && err == nil; i++ {
			options := &pb.CallableOptions{}
			for j := range 1000 {
				options.Feed = append(options.Feed, fmt.Sprintf("a%d:0", i+j))
				options.Fetch = append(options.Fetch, fmt.Sprintf("y%d:0", i+j))
			}
			_, err = c.master.MakeCallable(c.ctx, &pb.MakeCallableRequest{SessionHandle: handle, Options: options})
		}
		return err
	}),
	load("signatures", func(c *client) error {
		// each step has a signature of its own
		var text strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&text, "y%d = NoOp()\n", i)
		}
		handle, err := c.session(text.String())
		for i := 0; i < 2000 && err == nil; i++ {
			targets := make([]string, 0, 1000)
			for j := range 1000 {
				targets = append(targets, fmt.Sprintf("y%d", i+j))
			}
			err = c.step(handle, nil, targets...)
		}
		return err
	}),
	load("worker-graphs", func(c *client) error {
		create := &pb.CreateWorkerSessionRequest{SessionHandle: "left"}
		err := c.call(rpc.MethodCreateWorkerSession, create)
		content := make([]byte, 50<<20)
		for i := 0; i < 100 && err == nil; i++ {
			err = c.call(rpc.MethodRegisterGraph, &pb.RegisterGraphRequest{SessionHandle: "left", CreateWorkerSessionCalled: true, GraphDef: constant(int64(len(content)/4), content)})
		}
		return err
	}),
	load("pending-steps", func(c *client) error {
		// steps of a worker that nothing starts, and tensors that nothing sends
		return c.together(20, func(c *client, n int) error {
			var all sync.WaitGroup
			for i := range 500 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
					defer cancel()
					key := "/job:ps/replica:0/task:0/device:CPU:0;0000000000000001;/job:ps/replica:0/task:0/device:CPU:0;e;0:0"
					request := &pb.RecvTensorRequest{StepId: int64(n*1000 + i), RendezvousKey: key}
					_ = c.conn.Invoke(ctx, rpc.MethodRecvTensor, request) // none comes
				})
			}
			all.Wait()
			return nil
		})
	}),
	load("health", func(c *client) error {
		return c.together(50, func(c *client, _ int) error {
			w, err := c.wire()
			if err != nil {
				return nil //nolint:nilerr // too many connections
			}
			paths := []string{
				"/grpc.health.v1.Health/Watch", "/grpc.channelz.v1.Channelz/GetTopChannels",
				"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
			}
			for id := uint32(1); id < 1800; id += 2 {
				w.frame(frameHeaders, flagEndHeaders, id, headers(paths[id/2%3]))
				w.frame(frameData, 0, id, make([]byte, 5))
			}
			w.finish()
			return nil
		})
	}),
	load("stream", func(c *client) error {
		// a stream of items whose answers nothing reads
		if err := c.call(rpc.MethodCreateContext, c.context(10)); err != nil {
			return err
		}
		w, err := c.wire()
		if err != nil {
			return err
		}
		defer w.Close()
		w.frame(frameSettings, 0, 0, []byte{0, 4, 0, 0, 0, 0})
		w.frame(frameHeaders, flagEndHeaders, 1, headers(rpc.MethodStreamingEnqueue))
		for range 200_000 {
			request := []byte{9, 10, 0, 0, 0, 0, 0, 0, 0} // context 10, no items
			w.frame(frameData, 0, 1, append([]byte{0, 0, 0, 0, byte(len(request))}, request...))
		}
		_, _ = w.Write(w.out.Bytes()) // the server may stop reading
		return nil
	}),
}

// fetch runs steps that fetch an output.
func (c *client) fetch(text string, n int, output string) error {
	handle, err := c.session(text)
	for i := 0; i < n && err == nil; i++ {
		var resp *message.RunStepResponse
		resp, err = c.master.RunStep(c.ctx, &message.RunStepRequest{Session: handle, Fetches: []string{output}})
		err = outcome(resp, err)
	}
	return err
}

func shapeOf(dims ...int64) *pb.TensorShapeProto {
	s := &pb.TensorShapeProto{}
	for _, d := range dims {
		s.Dim = append(s.Dim, &pb.TensorShapeProto_Dim{Size: d})
	}
	return s
}

// context is a request for an eager context, which ends 5 s after its last use.
func (c *client) context(id uint64) *pb.CreateContextRequest {
	return &pb.CreateContextRequest{ContextId: id, KeepAliveSecs: 5, ServerDef: &pb.ServerDef{
		JobName: "ps", Cluster: &pb.ClusterDef{Job: []*pb.JobDef{{Name: "ps", Tasks: map[int32]string{0: c.address}}}},
	}}
}

// fillContext creates an eager context with n tensors of a number of elements.
func (c *client) fillContext(id uint64, n, elements int64) error {
	err := c.call(rpc.MethodCreateContext, c.context(id))
	attr := func(t pb.DataType) *pb.AttrValue { return &pb.AttrValue{Value: &pb.AttrValue_Type{Type: t}} }
	for i := int64(0); i < n && err == nil; i++ {
		dims := &pb.TensorProto{Dtype: pb.DataType_DT_INT64, TensorShape: shapeOf(1), Int64Val: []int64{elements}}
		one := &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT, TensorShape: shapeOf(), FloatVal: []float32{1}}
		op := &pb.Operation{
			Id: i + 1, Name: "Fill", Attrs: map[string]*pb.AttrValue{"T": attr(pb.DataType_DT_FLOAT), "index_type": attr(pb.DataType_DT_INT64)},
			OpInputs: []*pb.Operation_Input{{Item: &pb.Operation_Input_Tensor{Tensor: dims}}, {Item: &pb.Operation_Input_Tensor{Tensor: one}}},
		}
		err = c.call(rpc.MethodEnqueue, &pb.EnqueueRequest{ContextId: id, Queue: []*pb.QueueItem{{Item: &pb.QueueItem_Operation{Operation: op}}}})
	}
	return err
}
