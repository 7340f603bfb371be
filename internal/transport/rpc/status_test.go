package rpc

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"net"
	"strings"
	"testing"
	"unicode/utf8"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	gstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

// restarted is the grpc-status-details-bin trailer of a restarted worker of TensorFlow 2.21.
var restarted = "\x0a\x4e\x0a\x4a" + status.PayloadWorkerRestarted + "\x12\x00"

// foreign serves a method that fails like TensorFlow's servers: the details are only a container.
func foreign(t *testing.T, code codes.Code, msg, details string) *Conn {
	return serveReference(t, func(s *grpc.Server) {
		s.RegisterService(&grpc.ServiceDesc{
			ServiceName: WorkerService, HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{
				MethodName: "Tracing",
				Handler: func(_ any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
					if err := grpc.SetTrailer(ctx, metadata.Pairs(payloadTrailer, details)); err != nil {
						return nil, err
					}
					return nil, gstatus.Error(code, msg)
				},
			}},
		}, nil)
	})
}

// serveReference runs a server of gRPC's own implementation and returns a connection to it.
func serveReference(t *testing.T, register func(*grpc.Server)) *Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return dial(t, listener.Addr().String())
}

func TestErrorsFromTensorFlow(t *testing.T) {
	for _, msg := range []string{
		"RecvTensor expects a different device incarnation: 1 vs. 2.",
		"quotes \" and \\, lines\nand tabs\t, grpc-message=\"x\", 100% of ümlaute",
		"",
	} {
		for _, code := range []codes.Code{codes.Aborted, codes.Internal, codes.Unavailable, codes.FailedPrecondition} {
			conn := foreign(t, code, msg, restarted)
			_, err := NewWorkerClient(conn, "/job:ps/replica:0/task:0").Tracing(t.Context(), &pb.TracingRequest{})
			var got *status.Error
			if !errors.As(err, &got) {
				t.Fatalf("got error %v", err)
			}
			text, _, _ := strings.Cut(got.Message, "\nAdditional GRPC error information from remote target /job:ps/replica:0/task:0 while calling")
			if got.Code != status.Code(code) || text != msg {
				t.Errorf("got %v %q, want %v %q", got.Code, text, code, msg)
			}
			if value, ok := got.Payloads[status.PayloadWorkerRestarted]; !ok || len(value) > 0 {
				t.Errorf("got payloads %v", got.Payloads)
			}
		}
	}
}

func TestPayloadsBetweenCPlusPlusPeers(t *testing.T) {
	// Between C++ peers of gRPC, a leading zero byte means that the value is not in base64.
	trailer := []grpch2.Field{{Name: payloadTrailer, Value: "\x00" + restarted}}
	if got := decodePayloads(trailer, payloadTrailer); len(got) != 1 {
		t.Errorf("got payloads %v", got)
	}
}

// The trailer must be readable by gRPC for Go, as a google.rpc.Status, and by TensorFlow, as a
// GrpcPayloadContainer.
func TestTrailerSuitsBothSides(t *testing.T) {
	payloads := map[string][]byte{status.PayloadDerived: nil, "x": []byte("value")}
	sent := &status.Error{Code: status.Cancelled, Message: "gone", Payloads: payloads}
	details := []byte(failed(sent).Trailer[0].Value)
	var st spb.Status
	if err := proto.Unmarshal(details, &st); err != nil || st.Code != int32(codes.Canceled) || st.Message != "gone" {
		t.Errorf("as a Status: %v, %v", &st, err)
	}
	var container pb.GrpcPayloadContainer
	if err := proto.Unmarshal(details, &container); err != nil {
		t.Fatal(err)
	}
	same := func(a, b []byte) bool { return string(a) == string(b) }
	if !maps.EqualFunc(container.Payloads, payloads, same) {
		t.Errorf("as a container: %v", container.Payloads)
	}
}

func TestNoTrailerWithoutPayloads(t *testing.T) {
	if trailer := failed(status.Abortedf("x")).Trailer; trailer != nil {
		t.Errorf("got %v", trailer)
	}
}

func TestMessagesAreCut(t *testing.T) {
	for _, in := range []string{
		strings.Repeat("x", maxMessage), strings.Repeat("x", maxMessage+1), strings.Repeat("x", 100<<10),
		strings.Repeat("日本語", 2000), "x" + strings.Repeat("日本語", 2000), "broken \xff\xfe text", strings.Repeat("\xff", 5000),
	} {
		got := statusMessage(in)
		if !utf8.ValidString(got) || len(got) > maxMessage+len(truncated) {
			t.Errorf("%.20q…: got %d bytes", in, len(got))
		}
		if (len(strings.ToValidUTF8(in, "\uFFFD")) > maxMessage) != strings.HasSuffix(got, truncated) {
			t.Errorf("%.20q…: got %q at the end", in, got[len(got)-20:])
		}
	}
}

// A long or unprintable message reaches the client.
func TestOddMessagesArrive(t *testing.T) {
	long := strings.Repeat("é\n", 20_000)
	for _, msg := range []string{long, "broken \xff text", "\x00"} {
		conn := serve(t, echo{err: status.Internalf("%s", msg)})
		want := strings.ToValidUTF8(msg, "\uFFFD")
		for name, call := range calls(conn) {
			_, err := call(t.Context())
			if status.CodeOf(err) != status.Internal {
				t.Errorf("%s: got error %.100v", name, err)
			}
			if got := err.Error(); !strings.HasPrefix(got, want[:min(len(want), 100)]) {
				t.Errorf("%s: got %.100q", name, got)
			}
		}
	}
}

func TestCancellationIsDerived(t *testing.T) {
	conn := serve(t, echo{err: status.Cancelledf("step was cancelled")})
	_, err := NewWorkerClient(conn, "/job:ps/replica:0/task:0").Tracing(t.Context(), &pb.TracingRequest{})
	if !status.IsDerived(err) {
		t.Errorf("got %#v", err)
	}
}

func FuzzPayloads(f *testing.F) {
	f.Add([]byte(restarted))
	bytes, _ := hex.DecodeString("0a4e0a4a")
	f.Add(bytes)
	f.Fuzz(func(t *testing.T, in []byte) {
		payloads := decodePayloads([]grpch2.Field{{Name: payloadTrailer, Value: string(in)}}, payloadTrailer)
		again := decodePayloads([]grpch2.Field{{Name: payloadTrailer, Value: string(encodePayloads(payloads))}}, payloadTrailer)
		if len(encodePayloads(payloads)) > 0 && len(again) != len(payloads) {
			t.Errorf("got %v again for %v", again, payloads)
		}
	})
}
