package rpc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Names of the methods on the wire, from TensorFlow's libraries.
var wireMethods = map[string][]string{
	"tensorflow.MasterService": {"CloseSession", "CreateSession", "ExtendSession", "ListDevices", "MakeCallable",
		"PartialRunSetup", "ReleaseCallable", "Reset", "RunCallable", "RunStep"},
	"tensorflow.WorkerService": {"CleanupAll", "CleanupGraph", "CompleteGroup", "CompleteInstance", "CreateWorkerSession",
		"DeleteWorkerSession", "DeregisterGraph", "GetStatus", "GetStepSequence", "Logging", "MarkRecvFinished", "RecvBuf",
		"RecvTensor", "RegisterGraph", "RunGraph", "Tracing"},
}

func TestMethodNames(t *testing.T) {
	server := NewServer(NewReceiveLimiter(nil), discard)
	RegisterMaster(server, echo{}, discard)
	RegisterWorker(server, echo{}, discard)
	var want []string
	for service, methods := range wireMethods {
		for _, m := range methods {
			want = append(want, "/"+service+"/"+m)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(server.Paths())); !slices.Equal(got, want) {
		t.Errorf("got methods %q, want %q", got, want)
	}
}

func TestEveryMethodReachesItsServer(t *testing.T) {
	for name, call := range calls(serve(t, echo{})) {
		resp, err := call(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !isMarked(resp) {
			t.Errorf("%s: got response %v", name, resp)
		}
	}
}

func TestErrorsReachTheClient(t *testing.T) {
	sent := status.Abortedf("Session 1 is not found.").WithPayload(status.PayloadWorkerRestarted, []byte("why"))
	for name, call := range calls(serve(t, echo{err: sent})) {
		resp, err := call(t.Context())
		var got *status.Error
		if !errors.As(err, &got) || got.Code != status.Aborted || !strings.HasPrefix(got.Message, sent.Message) ||
			string(got.Payloads[status.PayloadWorkerRestarted]) != "why" {
			t.Errorf("%s: got error %#v", name, err)
		}
		if !reflect.ValueOf(resp).IsNil() {
			t.Errorf("%s: got a response beside the error", name)
		}
	}
}

// Errors in the body are not truncated, and keep their payloads.
func TestErrorsInTheBody(t *testing.T) {
	sent := status.Abortedf("%s", strings.Repeat("long ", 10_000)).Derive()
	conn := serve(t, echo{err: sent})
	step, err := NewMasterClient(conn, "test").RunStep(t.Context(), &message.RunStepRequest{StoreErrorsInBody: true})
	if err != nil {
		t.Fatal(err)
	}
	part, err := NewWorkerClient(conn, "/job:ps/replica:0/task:0").RunGraph(t.Context(), &message.RunGraphRequest{StoreErrorsInBody: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []*status.Error{step.Err, part.Err} {
		if got == nil || got.Code != sent.Code || got.Message != sent.Message || !status.IsDerived(got) {
			t.Errorf("got %#v", got)
		}
	}
}

func TestMalformedRequests(t *testing.T) {
	conn := serve(t, echo{})
	for service, methods := range wireMethods {
		for _, name := range methods {
			// A string that is longer than the message.
			err := invokeRaw(t.Context(), conn, "/"+service+"/"+name, []byte{0x0a, 0xff, 0xff, 0x03, 0x00})
			if status.CodeOf(err) != status.Internal || err.Error() != "Unable to parse request" {
				t.Errorf("%s: got error %v", name, err)
			}
		}
	}
}

type panicking struct{ Master }

func (panicking) Reset(context.Context, *pb.ResetRequest) (*pb.ResetResponse, error) { panic("oh no") }

func TestPanicIsAnError(t *testing.T) {
	var log bytes.Buffer
	conn := serveWith(t, func(s *Server) { RegisterMaster(s, panicking{echo{}}, slog.New(slog.NewTextHandler(&log, nil))) })
	client := NewMasterClient(conn, "test")
	_, err := client.Reset(t.Context(), &pb.ResetRequest{})
	if status.CodeOf(err) != status.Internal || !strings.Contains(err.Error(), "oh no") {
		t.Errorf("got error %v", err)
	}
	if _, err := client.ListDevices(t.Context(), &pb.ListDevicesRequest{}); err != nil {
		t.Errorf("after the panic: %v", err)
	}
	if !strings.Contains(log.String(), "TestPanicIsAnError") && !strings.Contains(log.String(), "serve_test.go") {
		t.Errorf("the log has no stack: %s", log.String())
	}
}

// blocking is a worker whose RunGraph waits until its caller gives up.
type blocking struct {
	Worker
	running, ended chan struct{}
}

func (b blocking) RunGraph(ctx context.Context, _ *message.RunGraphRequest) (*message.RunGraphResponse, error) {
	close(b.running)
	<-ctx.Done()
	close(b.ended)
	return nil, status.FromContext(ctx, "running")
}

func TestCancellationReachesTheServer(t *testing.T) {
	b := blocking{echo{}, make(chan struct{}), make(chan struct{})}
	conn := serveWith(t, func(s *Server) { RegisterWorker(s, b, discard) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-b.running
		cancel()
	}()
	_, err := NewWorkerClient(conn, "/job:ps/replica:0/task:0").RunGraph(ctx, &message.RunGraphRequest{})
	if status.CodeOf(err) != status.Cancelled || !status.IsDerived(err) {
		t.Errorf("got error %v, want a derived cancellation", err)
	}
	<-b.ended
}

func TestDeadline(t *testing.T) {
	b := blocking{echo{}, make(chan struct{}), make(chan struct{})}
	conn := serveWith(t, func(s *Server) { RegisterWorker(s, b, discard) })
	for deadline := 20 * time.Millisecond; ; deadline *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		_, err := NewWorkerClient(conn, "/job:ps/replica:0/task:0").RunGraph(ctx, &message.RunGraphRequest{})
		cancel()
		if status.CodeOf(err) != status.DeadlineExceeded {
			t.Errorf("got error %v", err)
		}
		select {
		case <-b.ended:
			return
		case <-b.running:
			<-b.ended
			return
		case <-time.After(deadline): // the call has not arrived in time
		}
	}
}

func TestUnreachablePeerIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	conn, err := Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const task = "/job:ps/replica:0/task:3"
	_, err = NewWorkerClient(conn, task).RunGraph(t.Context(), &message.RunGraphRequest{})
	if status.CodeOf(err) != status.Unavailable || !strings.Contains(err.Error(), task) || !strings.Contains(err.Error(), address) {
		t.Errorf("got error %v, want one that names %s and %s", err, task, address)
	}
}

// A call makes one call with a marked request.
type call func(context.Context) (any, error)

// calls returns every method of both clients.
func calls(conn *Conn) map[string]call {
	out := map[string]call{}
	for _, client := range []any{NewMasterClient(conn, "test"), NewWorkerClient(conn, "/job:ps/replica:0/task:0")} {
		v := reflect.ValueOf(client)
		for i := range v.NumMethod() {
			// it calls no method of its name
			if in := v.Method(i).Type(); in.NumIn() < 2 || in.In(1).Kind() != reflect.Pointer {
				continue
			}
			out[v.Type().Method(i).Name] = func(ctx context.Context) (any, error) {
				req := reflect.New(v.Method(i).Type().In(1).Elem())
				mark(req.Interface())
				got := answer(v.Method(i), reflect.ValueOf(ctx), req)
				err, _ := reflect.TypeAssert[error](got[1])
				return got[0].Interface(), err
			}
		}
	}
	return out
}

// answer calls a method, and waits for the answer of an asynchronous one.
func answer(method, ctx, req reflect.Value) []reflect.Value {
	if method.Type().NumIn() == 2 {
		return method.Call([]reflect.Value{ctx, req})
	}
	answers := make(chan []reflect.Value, 2)
	done := reflect.MakeFunc(method.Type().In(2), func(args []reflect.Value) []reflect.Value {
		answers <- args
		return nil
	})
	method.Call([]reflect.Value{ctx, req, done})
	return <-answers
}

// A field that no message has, and a name.
var (
	marker     = []byte{0xc2, 0x3e, 1, 'x'}
	markerName = "marker"
)

func mark(req any) {
	switch req := req.(type) {
	case proto.Message:
		req.ProtoReflect().SetUnknown(marker)
	case *message.RunStepRequest:
		req.Session = markerName
	case *message.RunCallableRequest:
		req.Session = markerName
	case *message.RunGraphRequest:
		req.Session = markerName
	case *message.RecvTensorRequest:
		req.Key = markerName
	}
}

func isMarked(resp any) bool {
	switch resp := resp.(type) {
	case proto.Message:
		return bytes.Equal(resp.ProtoReflect().GetUnknown(), marker)
	case *message.RunStepResponse:
		return resp.Tensors[0].Name == markerName
	case *message.RunCallableResponse:
		return tensor.Value[string](&resp.Fetches[0]) == markerName
	case *message.RunGraphResponse:
		return resp.Recv[0].Name == markerName
	case *message.RecvTensorResponse:
		return tensor.Value[string](&resp.Tensor) == markerName
	}
	return false
}

// serve runs both services of e and returns a connection to them.
func serve(t testing.TB, e echo) *Conn {
	t.Helper()
	return serveWith(t, func(s *Server) {
		RegisterMaster(s, e, discard)
		RegisterWorker(s, e, discard)
		RegisterInspection(s, e, discard)
		RegisterEager(s, e, discard)
	})
}

func serveWith(t testing.TB, register func(*Server)) *Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(NewReceiveLimiter(nil), discard)
	register(server)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-stopped; !errors.Is(err, ErrServerStopped) {
			t.Error(err)
		}
	})
	return dial(t, listener.Addr().String())
}

func dial(t testing.TB, address string) *Conn {
	t.Helper()
	conn, err := Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// invokeRaw calls a method with a request of the given bytes.
func invokeRaw(ctx context.Context, conn *Conn, method string, req []byte) error {
	resp := conn.client.Call(ctx, &grpch2.Request{Path: method, Data: [][]byte{req}, NewBody: conn.limiter.newBody(nil)})
	if resp.Code != 0 {
		return responseStatus(&resp)
	}
	return nil
}

// discard is a logger without output.
var discard = slog.New(slog.DiscardHandler)
