package server

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// requests has an empty request of every method that a peer or client can call.
var requests = map[string]proto.Message{
	rpc.MethodCreateSession: &pb.CreateSessionRequest{}, rpc.MethodExtendSession: &pb.ExtendSessionRequest{},
	rpc.MethodPartialRunSetup: &pb.PartialRunSetupRequest{}, rpc.MethodRunStep: &pb.RunStepRequest{},
	rpc.MethodCloseSession: &pb.CloseSessionRequest{}, rpc.MethodListDevices: &pb.ListDevicesRequest{}, rpc.MethodReset: &pb.ResetRequest{},
	rpc.MethodMakeCallable: &pb.MakeCallableRequest{}, rpc.MethodRunCallable: &pb.RunCallableRequest{},
	rpc.MethodReleaseCallable: &pb.ReleaseCallableRequest{},

	rpc.MethodGetStatus: &pb.GetStatusRequest{}, rpc.MethodCreateWorkerSession: &pb.CreateWorkerSessionRequest{},
	rpc.MethodDeleteWorkerSession: &pb.DeleteWorkerSessionRequest{}, rpc.MethodRegisterGraph: &pb.RegisterGraphRequest{},
	rpc.MethodDeregisterGraph: &pb.DeregisterGraphRequest{}, rpc.MethodRunGraph: &pb.RunGraphRequest{},
	rpc.MethodCleanupGraph: &pb.CleanupGraphRequest{}, rpc.MethodCleanupAll: &pb.CleanupAllRequest{},
	rpc.MethodRecvTensor: &pb.RecvTensorRequest{}, rpc.MethodMarkRecvFinished: &pb.MarkRecvFinishedRequest{},
	rpc.MethodLogging: &pb.LoggingRequest{}, rpc.MethodTracing: &pb.TracingRequest{}, rpc.MethodRecvBuf: &pb.RecvBufRequest{},
	rpc.MethodGetStepSequence: &pb.GetStepSequenceRequest{}, rpc.MethodCompleteGroup: &pb.CompleteGroupRequest{},
	rpc.MethodCompleteInstance: &pb.CompleteInstanceRequest{},
}

// words are the parts of random strings: names that mean something in some request.
var words = []string{
	"", "a", "a:0", "^a", "/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/task:0", "/job:*", "garbage", "ps", "Const", "Identity",
	"_Recv", "_Send", "While", "Enter", "Exit", "T", "dtype", "value", "0000000000000001", "127.0.0.1:1", "\x00", "日本",
	"/job:ps/replica:0/task:0/device:CPU:0;0000000000000001;/job:ps/replica:0/task:0/device:CPU:0;x;0:0",
}

// generator generates random messages.
type generator struct {
	*rand.Rand
	words []string
}

// fill sets some of the fields of a message, to the given depth.
func (g generator) fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case g.IntN(3) == 0 || f.Message() != nil && !f.IsMap() && depth == 0 || f.IsMap():
		case f.IsList():
			list := m.Mutable(f).List()
			for range g.IntN(3) {
				if f.Message() != nil {
					g.fill(list.AppendMutable().Message(), depth-1)
				} else {
					list.Append(g.scalar(f))
				}
			}
		case f.Message() != nil:
			g.fill(m.Mutable(f).Message(), depth-1)
		default:
			m.Set(f, g.scalar(f))
		}
	}
}

func (g generator) scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	number := []int64{0, 1, -1, 2, 7, 1 << 31, -1 << 63, 1<<63 - 1}[g.IntN(8)]
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(number&1 == 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(g.IntN(30)))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(g.words[g.IntN(len(g.words))])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(g.words[g.IntN(len(g.words))]))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(g.Float32())
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(g.Float64())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(number))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(number))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(number))
	default:
		return protoreflect.ValueOfInt64(number)
	}
}

// handle creates a session with nodes of some of the names in words, and returns its handle.
func handle(t *testing.T, conn *rpc.Conn) string {
	t.Helper()
	root := op.NewScope()
	op.Identity(root.Named("a"), op.Placeholder(root.Named("Const"), tensor.Float32))
	def, err := pbconv.GraphToProto(root.Graph().Def())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rpc.NewMasterClient(conn, "test").CreateSession(t.Context(), &pb.CreateSessionRequest{GraphDef: def})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetSessionHandle()
}

// errorLog fails a test when an error, such as a panic, is logged.
type errorLog struct{ t *testing.T }

func (l errorLog) Write(line []byte) (int, error) {
	l.t.Errorf("%s", line)
	return len(line), nil
}

// A task survives arbitrary requests, and serves other clients.
func TestRandomRequests(t *testing.T) {
	log := slog.New(slog.NewTextHandler(errorLog{t}, &slog.HandlerOptions{Level: slog.LevelError}))
	s := start(t, cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("127.0.0.1:0")}, Job: "ps"}, WithLogger(log))
	conn, err := rpc.Dial(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	known := append(words, handle(t, conn))
	var wg sync.WaitGroup
	for method, empty := range requests {
		wg.Go(func() {
			g := generator{rand.New(rand.NewPCG(1, uint64(len(method)))), known}
			for range 60 {
				req := empty.ProtoReflect().New()
				g.fill(req, 4)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				_ = conn.Invoke(ctx, method, req.Interface())
				cancel()
			}
		})
	}
	wg.Wait()
	root := op.NewScope()
	c := op.Const(root, float32(1))
	if _, err := session(t, s, root, weft.WithNetwork()).Run(t.Context(), nil, []graph.Output{c}, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
