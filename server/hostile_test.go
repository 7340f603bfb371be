package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// attacker sends arbitrary requests to a task.
type attacker struct {
	t       *testing.T
	conn    *rpc.Conn
	timeout time.Duration // of its calls
}

// send makes a call and returns its error.
func (a attacker) send(method string, req any) error {
	ctx, cancel := context.WithTimeout(a.t.Context(), a.timeout)
	defer cancel()
	return a.conn.Invoke(ctx, method, req)
}

// session creates a session with a graph and returns its handle.
func (a attacker) session(g *pb.GraphDef) (string, error) {
	resp, err := rpc.NewMasterClient(a.conn, "test").CreateSession(a.t.Context(), &pb.CreateSessionRequest{GraphDef: g})
	return resp.GetSessionHandle(), err
}

// graph creates a session with a graph in text form and runs a step that fetches y.
func (a attacker) graph(text string) error {
	a.t.Helper()
	return a.run(a.parse(text), nil)
}

// textSession creates a session with a graph in text form.
func (a attacker) textSession(text string) string {
	a.t.Helper()
	handle, err := a.session(a.parse(text))
	if err != nil {
		a.t.Fatal(err)
	}
	return handle
}

// register registers a graph in text form with the worker, for its CPU device.
func (a attacker) register(text string) error {
	def := a.parse(text)
	for _, n := range def.Node {
		n.Device = "/job:ps/replica:0/task:0/device:CPU:0"
	}
	return a.send(rpc.MethodRegisterGraph, &pb.RegisterGraphRequest{GraphDef: def})
}

// parse returns a graph in text form as a message.
func (a attacker) parse(text string) *pb.GraphDef {
	a.t.Helper()
	g, err := graphtext.Parse(kernel.Default, text)
	if err != nil {
		a.t.Fatal(err)
	}
	def, err := pbconv.GraphToProto(g.Def())
	if err != nil {
		a.t.Fatal(err)
	}
	return def
}

// run creates a session with a graph and runs a step that fetches y.
func (a attacker) run(g *pb.GraphDef, feeds []*pb.NamedTensorProto) error {
	handle, err := a.session(g)
	if err != nil {
		return err
	}
	defer func() { _ = a.send(rpc.MethodCloseSession, &pb.CloseSessionRequest{SessionHandle: handle}) }()
	return a.send(rpc.MethodRunStep, &pb.RunStepRequest{SessionHandle: handle, Feed: feeds, Fetch: []string{"y:0"}})
}

// feed runs a step that is fed with a tensor.
func (a attacker) feed(x *pb.TensorProto) error {
	return a.run(&pb.GraphDef{Node: []*pb.NodeDef{
		{Name: "x", Op: "Placeholder", Attr: map[string]*pb.AttrValue{"dtype": typeAttr(pb.DataType_DT_FLOAT)}},
		{Name: "y", Op: "Identity", Input: []string{"x"}, Attr: map[string]*pb.AttrValue{"T": typeAttr(pb.DataType_DT_FLOAT)}},
	}}, []*pb.NamedTensorProto{{Name: "x:0", Tensor: x}})
}

// constant runs a step that fetches a constant.
func (a attacker) constant(x *pb.TensorProto) error {
	return a.run(&pb.GraphDef{Node: []*pb.NodeDef{{Name: "y", Op: "Const", Attr: map[string]*pb.AttrValue{
		"dtype": typeAttr(x.Dtype), "value": {Value: &pb.AttrValue_Tensor{Tensor: x}},
	}}}}, nil)
}

func typeAttr(t pb.DataType) *pb.AttrValue { return &pb.AttrValue{Value: &pb.AttrValue_Type{Type: t}} }

func shaped(t pb.DataType, dims ...int64) *pb.TensorProto {
	shape := &pb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &pb.TensorShapeProto_Dim{Size: d})
	}
	return &pb.TensorProto{Dtype: t, TensorShape: shape}
}

// splat is a tensor with one value that is repeated for all elements.
func splat(dims ...int64) *pb.TensorProto {
	x := shaped(pb.DataType_DT_FLOAT, dims...)
	x.FloatVal = []float32{1}
	return x
}

// nested is a variant in a variant, to the given depth.
func nested(depth int) *pb.TensorProto {
	x := shaped(pb.DataType_DT_VARIANT)
	if depth > 0 {
		x.VariantVal = []*pb.VariantTensorDataProto{{TypeName: "tensorflow::TensorList", Tensors: []*pb.TensorProto{nested(depth - 1)}}}
	}
	return x
}

// doubling is a graph with a chain of functions. Each function calls the next one twice.
func doubling(depth int) string {
	var b strings.Builder
	b.WriteString("func F0(x: float) -> (y: float) {\n  z = Neg(x) T=float\n  return y=z:y:0\n}\n")
	for i := range depth {
		call := func(name, in string) string {
			return fmt.Sprintf("  %s = PartitionedCall(%s) Tin=[float] Tout=[float] f=@F%d\n", name, in, i)
		}
		fmt.Fprintf(&b, "func F%d(x: float) -> (y: float) {\n%s%s  return y=b:output:0\n}\n", i+1, call("a", "x"), call("b", "a:output:0"))
	}
	fmt.Fprintf(&b, "x = Const() value=float[]{1}\ny = PartitionedCall(x) Tin=[float] Tout=[float] f=@F%d\n", depth)
	return b.String()
}

// TestHostileInput sends a task requests that no correct peer sends. The task must answer with the
// right error, survive, and not allocate the requested memory. The names say which rule a request
// breaks. Requests that need no connection are tested in packages master and worker.
func TestHostileInput(t *testing.T) {
	const late = status.DeadlineExceeded
	for _, tt := range []struct {
		rule string
		send func(attacker) error
		code status.Code
		text string
	}{
		{"a tensor has a type", func(a attacker) error { return a.feed(shaped(0)) }, status.InvalidArgument, "Invalid TensorProto for feed"},
		{"a tensor's type exists", func(a attacker) error { return a.feed(shaped(99)) }, status.InvalidArgument, "Invalid TensorProto for feed"},
		{"a tensor is no reference", func(a attacker) error { return a.feed(shaped(101)) }, status.InvalidArgument, "Invalid TensorProto for feed"},
		{"dimensions are not negative", func(a attacker) error { return a.feed(splat(-5)) }, status.InvalidArgument, "Invalid TensorProto for feed"},
		{"dimensions do not overflow", func(a attacker) error { return a.feed(splat(1<<40, 1<<40)) }, status.InvalidArgument, "Invalid TensorProto for feed"},
		{"there are at most 254 dimensions", func(a attacker) error { return a.feed(splat(make([]int64, 300)...)) }, status.InvalidArgument, "Invalid TensorProto for feed"},
		{"a value is not repeated without end", func(a attacker) error { return a.feed(splat(1 << 40)) }, status.InvalidArgument, "Invalid TensorProto for feed"},
		{"a constant is not repeated without end", func(a attacker) error { return a.constant(splat(1 << 40)) }, status.ResourceExhausted, "exceed the limit of one message"},
		{"variants are not nested without end", func(a attacker) error { return a.constant(nested(3000)) }, status.Internal, "Unable to parse request"},
		{"memory for a result is not taken when there is none", func(a attacker) error {
			return a.graph("n = Const() value=int64[1]{1099511627776}\nv = Const() value=float[]{1}\ny = Fill(n, v)\n")
		}, status.ResourceExhausted, "OOM when allocating tensor"},
		{"shapes that a graph computes do not overflow", func(a attacker) error {
			return a.graph("n = Const() value=int64[2]{1099511627776, 1099511627776}\nv = Const() value=float[]{1}\ny = Fill(n, v)\n")
		}, status.InvalidArgument, ""},
		{"random numbers are not drawn without end", func(a attacker) error {
			return a.graph("n = Const() value=int64[1]{1099511627776}\ny = RandomUniform(n) dtype=float\n")
		}, status.ResourceExhausted, "OOM when allocating tensor"},
		{"recursion ends", func(a attacker) error {
			return a.graph("func F(x: float) -> (y: float) {\n  a = PartitionedCall(x) Tin=[float] Tout=[float] f=@F\n  return y=a:output:0\n}\n" +
				"x = Const() value=float[]{1}\ny = PartitionedCall(x) Tin=[float] Tout=[float] f=@F\n")
		}, status.ResourceExhausted, ""},
		{"calls do not multiply without end", func(a attacker) error { return a.graph(doubling(60)) }, late, ""},
		{"a loop of functions ends with its step", func(a attacker) error {
			return a.graph("func C(x: float) -> (y: bool) {\n  t = Const() value=bool[]{true}\n  return y=t:output:0\n}\n" +
				"func B(x: float) -> (y: float) {\n  z = Neg(x) T=float\n  return y=z:y:0\n}\n" +
				"x = Const() value=float[]{1}\ny = While(x) T=[float] cond=@C body=@B\n")
		}, late, ""},
		{"a loop of frames ends with its step", func(a attacker) error {
			return a.graph("x = Const() value=float[]{1}\nt = Const(^m) value=bool[]{true}\ne = Enter(x) frame_name=\"f\"\nm = Merge(e, n)\n" +
				"c = LoopCond(t)\ns = Switch(m, c)\nn = NextIteration(s:1)\ny = Exit(s)\n")
		}, late, ""},
		{"Exit comes after Enter", func(a attacker) error { return a.graph("x = Const() value=float[]{1}\ny = Exit(x)\n") }, status.InvalidArgument, ""},
		{"graphs have no cycles", func(a attacker) error {
			return a.run(&pb.GraphDef{Node: []*pb.NodeDef{
				{Name: "x", Op: "Identity", Input: []string{"y"}, Attr: map[string]*pb.AttrValue{"T": typeAttr(pb.DataType_DT_FLOAT)}},
				{Name: "y", Op: "Identity", Input: []string{"x"}, Attr: map[string]*pb.AttrValue{"T": typeAttr(pb.DataType_DT_FLOAT)}},
			}}, nil)
		}, status.InvalidArgument, "cycle"},
		{"a panic is an error of its step alone", func(a attacker) error {
			return a.graph("y = TestPanics()\n")
		}, status.Internal, "[[{{node y}}]]"},
		{"a callable gets its feeds", callableWithoutFeeds, status.InvalidArgument, ""},
		{"filters name devices", func(a attacker) error {
			return a.send(rpc.MethodReset, &pb.ResetRequest{DeviceFilters: []string{"garbage"}})
		}, status.InvalidArgument, "garbage"},
		{"devices of a session have names", func(a attacker) error {
			return a.send(rpc.MethodCreateWorkerSession, &pb.CreateWorkerSessionRequest{
				SessionHandle: "s", ClusterDeviceAttributes: []*pb.DeviceAttributes{{Name: "garbage"}},
			})
		}, status.InvalidArgument, "garbage"},
		{"a key may be long", func(a attacker) error {
			return a.send(rpc.MethodRecvTensor, &pb.RecvTensorRequest{StepId: 1, RendezvousKey: strings.Repeat("x", 5<<20)})
		}, status.InvalidArgument, "Invalid  rendezvous key: xxx"},
		{"a wait for a step that never comes ends with its caller", func(a attacker) error { return a.send(rpc.MethodRecvTensor, a.received("x", math.MaxInt64)) }, late, ""},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			a := newAttacker(t)
			if tt.code == late {
				a.timeout = 300 * time.Millisecond
			}
			err := tt.send(a)
			a.timeout = time.Minute
			if status.CodeOf(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.text) {
				t.Errorf("got %v: %.300v; want %v with %q", status.CodeOf(err), err, tt.code, tt.text)
			}
			if err := a.graph("y = Const() value=float[]{1}\n"); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// newAttacker starts a task and returns an attacker of it.
func newAttacker(t *testing.T) attacker {
	s := start(t, cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("127.0.0.1:0")}, Job: "ps"}, WithLogger(slog.New(slog.DiscardHandler)))
	conn, err := rpc.Dial(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		// steps that are being prepared may end
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return attacker{t, conn, time.Minute}
}

// received returns a request for a tensor of a step.
func (a attacker) received(name string, step int64) *pb.RecvTensorRequest {
	a.t.Helper()
	resp, err := rpc.NewWorkerClient(a.conn, "test").GetStatus(a.t.Context(), &pb.GetStatusRequest{})
	if err != nil {
		a.t.Fatal(err)
	}
	d := resp.GetDeviceAttributes()[0]
	return &pb.RecvTensorRequest{StepId: step, RendezvousKey: fmt.Sprintf("%s;%016x;%s;%s;0:0", d.GetName(), d.GetIncarnation(), d.GetName(), name)}
}

func callableWithoutFeeds(a attacker) error {
	def, err := pbconv.GraphToProto(smallGraph(a.t).Def())
	if err != nil {
		a.t.Fatal(err)
	}
	handle, err := a.session(def)
	if err != nil {
		return err
	}
	made, err := rpc.NewMasterClient(a.conn, "test").MakeCallable(a.t.Context(), &pb.MakeCallableRequest{
		SessionHandle: handle, Options: &pb.CallableOptions{Feed: []string{"x:0"}, Fetch: []string{"y:0"}},
	})
	if err != nil {
		return errors.Join(errors.New("MakeCallable failed"), err)
	}
	return a.send(rpc.MethodRunCallable, &pb.RunCallableRequest{SessionHandle: handle, Handle: made.GetHandle()})
}

func smallGraph(t *testing.T) *graph.Graph {
	root := op.NewScope()
	op.Identity(root.Named("y"), op.Placeholder(root.Named("x"), tensor.Float32))
	g, err := root.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// An error names a task that accepts connections and never answers, and arrives before the client's
// deadline.
func TestSilentPeer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s := start(t, cluster.ServerDef{Cluster: cluster.Spec{
		"ps": cluster.Dense(silent.Addr().String()), "worker": cluster.Dense("127.0.0.1:0"),
	}, Job: "worker"})
	root := op.NewScope()
	c := op.Const(root, float32(1))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = session(t, s, root, weft.WithNetwork()).Run(ctx, nil, []graph.Output{c}, nil)
	const want = "waiting for the devices of /job:ps/replica:0/task:0 at "
	if status.CodeOf(err) != status.DeadlineExceeded || !strings.Contains(err.Error(), want+silent.Addr().String()) {
		t.Errorf("got %v, want %q with its address", err, want)
	}
	alone := session(t, s, root, weft.WithNetwork(), weft.WithDeviceFilters("/job:worker"))
	if _, err := alone.Run(t.Context(), nil, []graph.Output{c}, nil); err != nil {
		t.Errorf("a session that does not use the task: %v", err)
	}
}
