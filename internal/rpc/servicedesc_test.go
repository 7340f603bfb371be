package rpc

import (
	"bytes"
	"context"
	"iter"
	"net"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/pb"
)

// The names on the wire, as TensorFlow's libraries have them.
var (
	masterMethods = []string{"CloseSession", "CreateSession", "ExtendSession", "ListDevices", "MakeCallable", "PartialRunSetup",
		"ReleaseCallable", "Reset", "RunCallable", "RunStep"}
	workerMethods = []string{"CleanupAll", "CleanupGraph", "CompleteGroup", "CompleteInstance", "CreateWorkerSession",
		"DeleteWorkerSession", "DeregisterGraph", "GetStatus", "GetStepSequence", "Logging", "MarkRecvFinished", "RecvBuf",
		"RecvTensor", "RegisterGraph", "RunGraph", "Tracing"}
)

// Bytes of a field that no message has: they show that a request arrived at the server and its response at the client.
var marker = []byte{0xc2, 0x3e, 1, 'x'}

func TestMethodNames(t *testing.T) {
	for _, tt := range []struct {
		desc    grpc.ServiceDesc
		name    string
		methods []string
	}{
		{MasterServiceDesc, "tensorflow.MasterService", masterMethods},
		{WorkerServiceDesc, "tensorflow.WorkerService", workerMethods},
	} {
		if tt.desc.ServiceName != tt.name {
			t.Errorf("got service %s, want %s", tt.desc.ServiceName, tt.name)
		}
		var got []string
		for _, m := range tt.desc.Methods {
			got = append(got, m.MethodName)
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.methods) {
			t.Errorf("%s: got methods %q, want %q", tt.name, got, tt.methods)
		}
	}
}

func TestEveryMethodReachesItsServer(t *testing.T) {
	for _, intercepted := range []bool{false, true} {
		var seen []string
		var opts []grpc.ServerOption
		if intercepted {
			opts = append(opts, grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				seen = append(seen, info.FullMethod)
				return next(ctx, req)
			}))
		}
		conn := serve(t, nil, opts...)
		for service, client := range map[string]any{MasterService: NewMasterClient(conn), WorkerService: NewWorkerClient(conn)} {
			for name, call := range calls(client) {
				seen = nil
				resp, err := call(t.Context())
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if got := resp.ProtoReflect().GetUnknown(); !bytes.Equal(got, marker) {
					t.Errorf("%s: got response %x, want %x", name, got, marker)
				}
				if want := []string{"/" + service + "/" + name}; intercepted && !slices.Equal(seen, want) {
					t.Errorf("%s: interceptor saw %q, want %q", name, seen, want)
				}
			}
		}
	}
}

func TestErrorsReachTheClient(t *testing.T) {
	conn := serve(t, status.Error(codes.Aborted, "Session 1 is not found."))
	for _, client := range []any{NewMasterClient(conn), NewWorkerClient(conn)} {
		for name, call := range calls(client) {
			resp, err := call(t.Context())
			if got := status.Convert(err); got.Code() != codes.Aborted || got.Message() != "Session 1 is not found." {
				t.Errorf("%s: got error %v", name, err)
			}
			if !reflect.ValueOf(resp).IsNil() {
				t.Errorf("%s: got a response beside the error", name)
			}
		}
	}
}

func TestMalformedRequestIsInternal(t *testing.T) {
	conn := serve(t, nil)
	// Field 1 of the request is a message; this says it is a string that never ends.
	bad := &pb.CreateSessionRequest{}
	bad.ProtoReflect().SetUnknown([]byte{0x0a, 0xff, 0xff, 0x03, 0x00})
	if _, err := NewMasterClient(conn).CreateSession(t.Context(), bad); status.Code(err) != codes.Internal {
		t.Errorf("got error %v, want an internal one", err)
	}
}

// calls yields every method of a client as a call with a marked request.
func calls(client any) iter.Seq2[string, func(context.Context) (proto.Message, error)] {
	v := reflect.ValueOf(client)
	return func(yield func(string, func(context.Context) (proto.Message, error)) bool) {
		for i := range v.NumMethod() {
			call := func(ctx context.Context) (proto.Message, error) {
				req := reflect.New(v.Method(i).Type().In(1).Elem())
				if m, ok := reflect.TypeAssert[proto.Message](req); ok {
					m.ProtoReflect().SetUnknown(marker)
				}
				out := v.Method(i).Call([]reflect.Value{reflect.ValueOf(ctx), req})
				resp, _ := reflect.TypeAssert[proto.Message](out[0])
				err, _ := reflect.TypeAssert[error](out[1])
				return resp, err
			}
			if !yield(v.Type().Method(i).Name, call) {
				return
			}
		}
	}
}

// serve runs both services and returns a connection to them. The servers answer with err, or echo the marker.
func serve(t *testing.T, err error, opts ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(opts...)
	server.RegisterService(&MasterServiceDesc, echoMaster{err})
	server.RegisterService(&WorkerServiceDesc, echoWorker{err})
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// An echoMaster and an echoWorker answer with their error, or with the unknown bytes of the request.
type (
	echoMaster struct{ err error }
	echoWorker struct{ err error }
)

func echo[Resp proto.Message](resp Resp, req proto.Message, err error) (Resp, error) {
	resp.ProtoReflect().SetUnknown(req.ProtoReflect().GetUnknown())
	return resp, err
}

func (e echoMaster) CreateSession(_ context.Context, req *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error) {
	return echo(&pb.CreateSessionResponse{}, req, e.err)
}
func (e echoMaster) ExtendSession(_ context.Context, req *pb.ExtendSessionRequest) (*pb.ExtendSessionResponse, error) {
	return echo(&pb.ExtendSessionResponse{}, req, e.err)
}
func (e echoMaster) PartialRunSetup(_ context.Context, req *pb.PartialRunSetupRequest) (*pb.PartialRunSetupResponse, error) {
	return echo(&pb.PartialRunSetupResponse{}, req, e.err)
}
func (e echoMaster) RunStep(_ context.Context, req *pb.RunStepRequest) (*pb.RunStepResponse, error) {
	return echo(&pb.RunStepResponse{}, req, e.err)
}
func (e echoMaster) CloseSession(_ context.Context, req *pb.CloseSessionRequest) (*pb.CloseSessionResponse, error) {
	return echo(&pb.CloseSessionResponse{}, req, e.err)
}
func (e echoMaster) ListDevices(_ context.Context, req *pb.ListDevicesRequest) (*pb.ListDevicesResponse, error) {
	return echo(&pb.ListDevicesResponse{}, req, e.err)
}
func (e echoMaster) Reset(_ context.Context, req *pb.ResetRequest) (*pb.ResetResponse, error) {
	return echo(&pb.ResetResponse{}, req, e.err)
}
func (e echoMaster) MakeCallable(_ context.Context, req *pb.MakeCallableRequest) (*pb.MakeCallableResponse, error) {
	return echo(&pb.MakeCallableResponse{}, req, e.err)
}
func (e echoMaster) RunCallable(_ context.Context, req *pb.RunCallableRequest) (*pb.RunCallableResponse, error) {
	return echo(&pb.RunCallableResponse{}, req, e.err)
}
func (e echoMaster) ReleaseCallable(_ context.Context, req *pb.ReleaseCallableRequest) (*pb.ReleaseCallableResponse, error) {
	return echo(&pb.ReleaseCallableResponse{}, req, e.err)
}

func (e echoWorker) GetStatus(_ context.Context, req *pb.GetStatusRequest) (*pb.GetStatusResponse, error) {
	return echo(&pb.GetStatusResponse{}, req, e.err)
}
func (e echoWorker) CreateWorkerSession(_ context.Context, req *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error) {
	return echo(&pb.CreateWorkerSessionResponse{}, req, e.err)
}
func (e echoWorker) DeleteWorkerSession(_ context.Context, req *pb.DeleteWorkerSessionRequest) (*pb.DeleteWorkerSessionResponse, error) {
	return echo(&pb.DeleteWorkerSessionResponse{}, req, e.err)
}
func (e echoWorker) RegisterGraph(_ context.Context, req *pb.RegisterGraphRequest) (*pb.RegisterGraphResponse, error) {
	return echo(&pb.RegisterGraphResponse{}, req, e.err)
}
func (e echoWorker) DeregisterGraph(_ context.Context, req *pb.DeregisterGraphRequest) (*pb.DeregisterGraphResponse, error) {
	return echo(&pb.DeregisterGraphResponse{}, req, e.err)
}
func (e echoWorker) RunGraph(_ context.Context, req *pb.RunGraphRequest) (*pb.RunGraphResponse, error) {
	return echo(&pb.RunGraphResponse{}, req, e.err)
}
func (e echoWorker) CleanupGraph(_ context.Context, req *pb.CleanupGraphRequest) (*pb.CleanupGraphResponse, error) {
	return echo(&pb.CleanupGraphResponse{}, req, e.err)
}
func (e echoWorker) CleanupAll(_ context.Context, req *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error) {
	return echo(&pb.CleanupAllResponse{}, req, e.err)
}
func (e echoWorker) RecvTensor(_ context.Context, req *pb.RecvTensorRequest) (*pb.RecvTensorResponse, error) {
	return echo(&pb.RecvTensorResponse{}, req, e.err)
}
func (e echoWorker) MarkRecvFinished(_ context.Context, req *pb.MarkRecvFinishedRequest) (*pb.MarkRecvFinishedResponse, error) {
	return echo(&pb.MarkRecvFinishedResponse{}, req, e.err)
}
func (e echoWorker) Logging(_ context.Context, req *pb.LoggingRequest) (*pb.LoggingResponse, error) {
	return echo(&pb.LoggingResponse{}, req, e.err)
}
func (e echoWorker) Tracing(_ context.Context, req *pb.TracingRequest) (*pb.TracingResponse, error) {
	return echo(&pb.TracingResponse{}, req, e.err)
}
func (e echoWorker) RecvBuf(_ context.Context, req *pb.RecvBufRequest) (*pb.RecvBufResponse, error) {
	return echo(&pb.RecvBufResponse{}, req, e.err)
}
func (e echoWorker) GetStepSequence(_ context.Context, req *pb.GetStepSequenceRequest) (*pb.GetStepSequenceResponse, error) {
	return echo(&pb.GetStepSequenceResponse{}, req, e.err)
}
func (e echoWorker) CompleteGroup(_ context.Context, req *pb.CompleteGroupRequest) (*pb.CompleteGroupResponse, error) {
	return echo(&pb.CompleteGroupResponse{}, req, e.err)
}
func (e echoWorker) CompleteInstance(_ context.Context, req *pb.CompleteInstanceRequest) (*pb.CompleteInstanceResponse, error) {
	return echo(&pb.CompleteInstanceResponse{}, req, e.err)
}
