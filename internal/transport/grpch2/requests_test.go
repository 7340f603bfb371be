package grpch2

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
)

// serveStreams starts a server with the given methods as streams, and a unary echo.
func serveStreams(t *testing.T, streams map[string]func(*Call)) (*Server, string) {
	t.Helper()
	s, l := newServer(map[string]func(*Call){"/s/Echo": echo})
	for path, fn := range streams {
		s.Handle(path, Method{NewBody: func(n int) Body { return NewChunks(n) }, Serve: fn, Streaming: true})
	}
	startServer(t, s, l)
	return s, l.Addr().String()
}

// echoAll sends every request back and ends after the last one. A request "fail" ends it at once.
func echoAll(c *Call) {
	for {
		b, err := c.Next()
		switch {
		case errors.Is(err, io.EOF):
			_ = c.Reply(Outcome{})
			return
		case err != nil:
			late := localResponse(c.Context(), err)
			_ = c.Reply(failure(late.Code, late.Text))
			return
		}
		data := b.(*Chunks).Data()
		if bytes.Equal(bytes.Join(data, nil), []byte("fail")) {
			_ = c.Reply(failure(codeUnavailable, "as requested"))
			return
		}
		if err := c.Send(data...); err != nil {
			_ = c.Reply(failure(codeCancelled, err.Error()))
			return
		}
	}
}

func openStream(ctx context.Context, t *testing.T, conn *grpc.ClientConn, path string, opts ...grpc.CallOption) grpc.ClientStream {
	t.Helper()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func exchange(t *testing.T, s grpc.ClientStream, in []byte) {
	t.Helper()
	var out []byte
	if err := s.SendMsg(&in); err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(&out); err != nil || !bytes.Equal(in, out) {
		t.Fatalf("sent %d bytes, got %d, %v", len(in), len(out), err)
	}
}

// Requests of a stream are answered one by one, whatever their size, and before the client ends its
// half. Other calls of the connection are served meanwhile.
func TestStreamOfRequests(t *testing.T) {
	_, address := serveStreams(t, map[string]func(*Call){"/s/All": echoAll})
	conn := reference(t, address)
	s := openStream(t.Context(), t, conn, "/s/All")
	for _, n := range []int{0, 1, 5, 70_000, 3 << 20, 0, 17} {
		exchange(t, s, pattern(n))
		in, out := []byte("x"), []byte(nil)
		if err := conn.Invoke(t.Context(), "/s/Echo", &in, &out); err != nil || string(out) != "x" {
			t.Errorf("concurrent call: %q, %v", out, err)
		}
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var none []byte
	if err := s.RecvMsg(&none); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: got %v", err)
	}
	zipped := openStream(t.Context(), t, conn, "/s/All", grpc.UseCompressor(gzip.Name))
	exchange(t, zipped, pattern(100_000))
}

// A client that sends without reading the responses loses nothing.
func TestStreamWithoutWaiting(t *testing.T) {
	_, address := serveStreams(t, map[string]func(*Call){"/s/All": echoAll})
	s := openStream(t.Context(), t, reference(t, address), "/s/All")
	const n = 2000
	sent := make(chan error, 1)
	go func() {
		for i := range n {
			in := pattern(i)
			if err := s.SendMsg(&in); err != nil {
				sent <- err
				return
			}
		}
		sent <- s.CloseSend()
	}()
	for i := range n {
		var out []byte
		if err := s.RecvMsg(&out); err != nil || !bytes.Equal(out, pattern(i)) {
			t.Fatalf("message %d: %d bytes, %v", i, len(out), err)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// The handler ends a stream with an error, the client cancels one, and both ends forget them. The
// connection goes on.
func TestEndsOfStreams(t *testing.T) {
	s, address := serveStreams(t, map[string]func(*Call){"/s/All": echoAll})
	conn := reference(t, address)
	for range 100 {
		one := openStream(t.Context(), t, conn, "/s/All")
		exchange(t, one, []byte("a"))
		in, out := []byte("fail"), []byte(nil)
		if err := one.SendMsg(&in); err != nil {
			t.Fatal(err)
		}
		if err := one.RecvMsg(&out); status.Code(err) != codes.Unavailable || status.Convert(err).Message() != "as requested" {
			t.Fatalf("got %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		two := openStream(ctx, t, conn, "/s/All")
		exchange(t, two, []byte("b"))
		cancel()
		if err := two.RecvMsg(&out); status.Code(err) != codes.Canceled {
			t.Fatalf("got %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Millisecond)
		// The deadline may pass while the stream is opened.
		three, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/s/All")
		if err == nil {
			err = three.RecvMsg(&out)
		}
		if status.Code(err) != codes.DeadlineExceeded {
			t.Fatalf("got %v", err)
		}
		cancel()
	}
	s.Shutdown() // waits until all handlers have replied
}

// Requests that a handler has not taken are dropped at its end, and a request that is cut off is an
// error of its stream.
func TestUnreadRequests(t *testing.T) {
	_, address := serveStreams(t, map[string]func(*Call){"/s/None": func(c *Call) {
		if _, err := c.Next(); err != nil {
			t.Error(err)
		}
		_ = c.Reply(failure(codeUnavailable, "enough"))
	}, "/s/All": echoAll})
	all := block(":method", "POST", ":scheme", "http", ":path", "/s/All", "content-type", contentType)
	none := block(":method", "POST", ":scheme", "http", ":path", "/s/None", "content-type", contentType)
	p := newPeer(t, address)
	p.write(hello)
	message := append([]byte{0, 0, 0, 0, 4}, "abcd"...)
	p.write(cat(appendHeaders(nil, 1, none, false), appendFrame(nil, frameData, 0, 1, cat(message, message, message))))
	if got := p.status(); !strings.Contains(got, "14") {
		t.Errorf("got %q", got)
	}
	p.expectReset(1)
	p.write(cat(appendHeaders(nil, 3, all, false), appendFrame(nil, frameData, flagEndStream, 3, message[:7])))
	if got := p.status(); !strings.Contains(got, "13") {
		t.Errorf("got %q", got)
	}
}

// A stream may wait between requests forever, and not within one.
func TestSlowRequestOfStream(t *testing.T) {
	s, l := newServer(nil)
	s.Limits.Request = 20 * time.Millisecond
	s.Handle("/s/All", Method{NewBody: func(n int) Body { return NewChunks(n) }, Serve: echoAll, Streaming: true})
	startServer(t, s, l)
	p := newPeer(t, l.Addr().String())
	p.write(hello)
	all := block(":method", "POST", ":scheme", "http", ":path", "/s/All", "content-type", contentType)
	message := append([]byte{0, 0, 0, 0, 4}, "abcd"...)
	p.write(appendHeaders(nil, 1, all, false))
	wait(s, 4)
	p.write(appendFrame(nil, frameData, 0, 1, message))
	if h, _, _ := p.await(frameData); h.stream != 1 {
		t.Errorf("got %+v", h)
	}
	p.write(appendFrame(nil, frameData, 0, 1, message[:6]))
	// the response has begun, so only the stream can say that it was ended: ENHANCE_YOUR_CALM
	if got := p.status(); got != "RST_STREAM 11" {
		t.Errorf("got %q", got)
	}
}

// wait returns after a number of sweeps over a connection, long enough to find a late request.
func wait(s *Server, sweeps int) {
	s.mu.Lock()
	tick := s.sweepTick
	s.mu.Unlock()
	timer := time.NewTimer(time.Duration(sweeps*sweepParts) * tick)
	<-timer.C
}
