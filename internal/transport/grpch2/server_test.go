package grpch2

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // registers the compressor
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weft-ml/weft/internal/sys/mono"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// raw is a codec that leaves bytes unchanged.
type raw struct{ encoding.CodecV2 }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// serve starts a server with the given handlers and returns its address.
func serve(t testing.TB, methods map[string]func(*Call)) (*Server, string) {
	t.Helper()
	s, l := newServer(methods)
	startServer(t, s, l)
	return s, l.Addr().String()
}

// newServer returns a server with the given handlers, and a listener for it.
func newServer(methods map[string]func(*Call)) (*Server, net.Listener) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s := NewServer(slog.New(slog.DiscardHandler))
	for path, m := range methods {
		s.Handle(path, Method{NewBody: chunks, Serve: m, Short: true})
	}
	return s, l
}

// startServer starts a server, which is closed at the end of the test.
func startServer(t testing.TB, s *Server, l net.Listener) {
	t.Helper()
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; !errors.Is(err, ErrServerStopped) {
			t.Errorf("Serve: %v", err)
		}
	})
}

// reference returns a client of gRPC's Go library.
func reference(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{encoding.GetCodecV2(proto.Name)}),
			grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func request(c *Call) []byte { return slices.Concat(c.Request().(*Chunks).Data()...) }

// echo replies with the request.
func echo(c *Call) { _ = c.Reply(Outcome{Data: c.Request().(*Chunks).Data()}) }

// pattern returns n bytes in which every displacement shows.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 >> (i % 5))
	}
	return b
}

var messageSizes = []int{0, 1, 100, copyLimit - prefixSize, copyLimit, minFrame, firstChunk, firstChunk + 1, 1 << 20, 5 << 20}

func TestEcho(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo})
	conn := reference(t, address)
	for _, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor("gzip")}} {
		for _, n := range messageSizes {
			in, out := pattern(n), []byte(nil)
			if err := conn.Invoke(t.Context(), "/s/Echo", &in, &out, opts...); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if !bytes.Equal(in, out) {
				t.Errorf("%d bytes were not echoed unchanged", n)
			}
		}
	}
}

func TestManyCalls(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo, "/s/Slow": func(c *Call) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-c.Context().Done():
		}
		echo(c)
	}})
	conn := reference(t, address)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for j := range 30 {
				method := "/s/Echo"
				if (i+j)%7 == 0 {
					method = "/s/Slow"
				}
				in, out := pattern(i*j*200), []byte(nil)
				if err := conn.Invoke(t.Context(), method, &in, &out); err != nil {
					t.Error(err)
				} else if !bytes.Equal(in, out) {
					t.Errorf("%d bytes were not echoed unchanged", len(in))
				}
			}
		})
	}
	wg.Wait()
}

func TestFailures(t *testing.T) {
	text := "a \"text\" with\nlines, 100% ümlauts and \x00"
	_, address := serve(t, map[string]func(*Call){"/s/Fail": func(c *Call) {
		_ = c.Reply(Outcome{Code: codeUnavailable, Text: text, Trailer: []Field{{"x-bin", "\x00\xff"}, {"y", "z"}}})
	}})
	conn := reference(t, address)
	var in, out []byte
	var trailer metadata.MD
	err := conn.Invoke(t.Context(), "/s/Fail", &in, &out, grpc.Trailer(&trailer))
	if status.Code(err) != codes.Unavailable || status.Convert(err).Message() != text {
		t.Errorf("got error %v", err)
	}
	if got := trailer["x-bin"]; len(got) != 1 || got[0] != "\x00\xff" || trailer["y"][0] != "z" {
		t.Errorf("got trailers %v", trailer)
	}
	if err := conn.Invoke(t.Context(), "/s/Other", &in, &out); status.Code(err) != codes.Unimplemented {
		t.Errorf("an unknown method: got error %v", err)
	}
	large := metadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("y", 2*ownMaxHeaderList))
	if err := conn.Invoke(large, "/s/Fail", &in, &out); err == nil {
		t.Error("large metadata: no error")
	}
}

// The cancellation of a call reaches its handler, both on the reader goroutine and on a worker.
func TestCancellation(t *testing.T) {
	waiting := make(chan struct{})
	ended := make(chan error)
	_, address := serve(t, map[string]func(*Call){"/s/Wait": func(c *Call) {
		waiting <- struct{}{}
		<-c.Context().Done()
		ended <- c.Context().Err()
		_ = c.Reply(failure(codeCancelled, "gone"))
	}})
	conn := reference(t, address)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			var in, out []byte
			done <- conn.Invoke(ctx, "/s/Wait", &in, &out)
		}()
		<-waiting
		cancel()
		if err := <-done; status.Code(err) != codes.Canceled {
			t.Errorf("got error %v", err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler got %v", err)
		}
	}
}

// A deadline reaches the handler: by the timer of the server or as RST_STREAM of the client,
// whichever comes first.
func TestDeadline(t *testing.T) {
	ended := make(chan error, 1)
	_, address := serve(t, map[string]func(*Call){"/s/Wait": func(c *Call) {
		<-c.Context().Done()
		ended <- c.Context().Err()
		_ = c.Reply(failure(codeDeadlineExceeded, "late"))
	}})
	conn := reference(t, address)
	for deadline := 20 * time.Millisecond; ; deadline *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		var in, out []byte
		err := conn.Invoke(ctx, "/s/Wait", &in, &out)
		cancel()
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got error %v", err)
		}
		select {
		case err := <-ended:
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				t.Errorf("the handler got %v", err)
			}
			return
		case <-time.After(deadline): // the call did not reach the server in time
		}
	}
}

// Short calls are served while a long one blocks on the same connection.
func TestLongCallsDoNotBlock(t *testing.T) {
	release := make(chan struct{})
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo, "/s/Wait": func(c *Call) {
		<-release
		echo(c)
	}})
	conn := reference(t, address)
	done := make(chan error)
	go func() {
		var in, out []byte
		done <- conn.Invoke(t.Context(), "/s/Wait", &in, &out)
	}()
	for range 100 {
		var in, out []byte
		if err := conn.Invoke(t.Context(), "/s/Echo", &in, &out); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Shutdown waits for calls in progress.
func TestShutdown(t *testing.T) {
	waiting, release := make(chan struct{}), make(chan struct{})
	s, address := serve(t, map[string]func(*Call){"/s/Wait": func(c *Call) {
		close(waiting)
		<-release
		echo(c)
	}})
	conn := reference(t, address)
	done := make(chan error)
	go func() {
		in, out := []byte("x"), []byte(nil)
		done <- conn.Invoke(t.Context(), "/s/Wait", &in, &out)
	}()
	<-waiting
	stopped := make(chan struct{})
	go func() {
		s.Shutdown()
		close(stopped)
	}()
	for !s.isStopping() {
		runtime.Gosched()
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-stopped
}

func TestCloseCancelsCalls(t *testing.T) {
	waiting := make(chan struct{})
	s, address := serve(t, map[string]func(*Call){"/s/Wait": func(c *Call) {
		close(waiting)
		<-c.Context().Done()
		_ = c.Reply(failure(codeCancelled, "gone"))
	}})
	conn := reference(t, address)
	done := make(chan error)
	go func() {
		var in, out []byte
		done <- conn.Invoke(t.Context(), "/s/Wait", &in, &out)
	}()
	<-waiting
	s.Close()
	if err := <-done; status.Code(err) != codes.Unavailable {
		t.Errorf("got error %v", err)
	}
}

// Long calls are not served by the reader, even if no other call is in progress.
func TestReaderDoesNotServeLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _, _ := inMemory(t, map[string]func(*Call){
			"/s/Long": func(c *Call) {
				<-time.After(2 * inlineLimit)
				echo(c)
			},
			"/s/Echo": echo,
		})
		for range gaugeThreshold/gaugeStep + 1 {
			if resp, _ := call(t.Context(), c, "/s/Long", nil); resp.Code != codeOK {
				t.Fatal(resp.Text)
			}
		}
		conns := s.stop()
		s.Close() // waits for the readers
		for _, conn := range conns {
			conn.lastReply.Store(mono.Nanos() - int64(minTurnaround))
			for path, want := range map[string]bool{"/s/Long": false, "/s/Echo": true} {
				conn.concurrentCalls.score.Store(0)
				if got := conn.canServeInline(s.methods[path]); got != want {
					t.Errorf("%s may be served by the reader: %v, want %v", path, got, want)
				}
			}
		}
	})
}
