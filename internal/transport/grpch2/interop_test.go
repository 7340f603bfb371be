package grpch2

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// testService returns the unary methods of gRPC's interoperability tests.
func testService() map[string]func(*Call) {
	return map[string]func(*Call){
		testpb.TestService_EmptyCall_FullMethodName: func(c *Call) { _ = c.Reply(Outcome{}) },
		testpb.TestService_UnaryCall_FullMethodName: func(c *Call) {
			var req testpb.SimpleRequest
			if err := proto.Unmarshal(request(c), &req); err != nil {
				_ = c.Reply(failure(codeInternalError, err.Error()))
				return
			}
			if s := req.GetResponseStatus(); s.GetCode() != 0 {
				_ = c.Reply(failure(uint32(s.GetCode()), s.GetMessage()))
				return
			}
			if req.GetResponseSize() < 0 { // waits, as the streaming cases do
				<-c.Context().Done()
				code := uint32(codeCancelled)
				if errors.Is(c.Context().Err(), context.DeadlineExceeded) {
					code = codeDeadlineExceeded
				}
				_ = c.Reply(failure(code, ""))
				return
			}
			data, err := proto.Marshal(&testpb.SimpleResponse{Payload: &testpb.Payload{Body: make([]byte, req.GetResponseSize())}})
			if err != nil {
				panic(err)
			}
			_ = c.Reply(Outcome{Data: [][]byte{data}, Trailer: []Field{{"x-grpc-test-echo-trailing-bin", "\xab\xab\xab"}}})
		},
	}
}

// TestInterop runs the cases of gRPC's interoperability tests that need no streams, with the client
// of gRPC's Go library.
func TestInterop(t *testing.T) {
	_, address := serve(t, testService())
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	service := testpb.NewTestServiceClient(conn)
	large := &testpb.SimpleRequest{ResponseSize: 314159, Payload: &testpb.Payload{Body: make([]byte, 271828)}}
	checkLarge := func(opts ...grpc.CallOption) {
		t.Helper()
		resp, err := service.UnaryCall(t.Context(), large, opts...)
		if err != nil || len(resp.GetPayload().GetBody()) != 314159 {
			t.Errorf("got %d bytes, %v", len(resp.GetPayload().GetBody()), err)
		}
	}
	checkStatus := func(name string, err error, code codes.Code, text string) {
		t.Helper()
		if s := status.Convert(err); s.Code() != code || text != "" && s.Message() != text {
			t.Errorf("%s: got %v", name, err)
		}
	}

	if _, err := service.EmptyCall(t.Context(), &testpb.Empty{}); err != nil { // empty_unary
		t.Error(err)
	}
	checkLarge()                           // large_unary
	checkLarge(grpc.UseCompressor("gzip")) // client_compressed_unary, server_compressed_unary

	// custom_metadata: the server ignores what the client sends
	var trailer metadata.MD
	md := metadata.Pairs("x-grpc-test-echo-initial", "test_initial_metadata_value", "x-grpc-test-echo-trailing-bin", "\xab\xab\xab")
	if _, err := service.UnaryCall(metadata.NewOutgoingContext(t.Context(), md), large, grpc.Trailer(&trailer)); err != nil {
		t.Error(err)
	}
	if got := trailer.Get("x-grpc-test-echo-trailing-bin"); !slices.Equal(got, []string{"\xab\xab\xab"}) {
		t.Errorf("got trailers %q", trailer)
	}

	for _, text := range []string{"test status message", "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"} {
		_, err := service.UnaryCall(t.Context(), &testpb.SimpleRequest{ResponseStatus: &testpb.EchoStatus{Code: 2, Message: text}})
		checkStatus("status_code_and_message", err, codes.Unknown, text)
	}

	_, err = service.UnimplementedCall(t.Context(), &testpb.Empty{})
	checkStatus("unimplemented_method", err, codes.Unimplemented, "")
	_, err = testpb.NewUnimplementedServiceClient(conn).UnimplementedCall(t.Context(), &testpb.Empty{})
	checkStatus("unimplemented_service", err, codes.Unimplemented, "")

	endless := &testpb.SimpleRequest{ResponseSize: -1}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = service.UnaryCall(ctx, endless)
	checkStatus("timeout_on_sleeping_server", err, codes.DeadlineExceeded, "")
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	_, err = service.UnaryCall(ctx, endless)
	checkStatus("cancel_after_begin", err, codes.Canceled, "")

	_, err = service.UnaryCall(metadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("y", 2*ownMaxHeaderList)), large)
	if err == nil {
		t.Error("metadata beyond the limit was accepted")
	}
	checkLarge() // the connection is usable
}
