package grpch2

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func client(t testing.TB, address string) *Client {
	t.Helper()
	c := NewClient(address, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	})
	t.Cleanup(c.Close)
	return c
}

func chunks(n int) Body { return NewChunks(n) }

// call makes a call and returns the response and its message.
func call(ctx context.Context, c *Client, path string, in []byte) (Response, []byte) {
	resp := c.Call(ctx, &Request{Path: path, Data: [][]byte{in[:len(in)/2], in[len(in)/2:]}, NewBody: chunks})
	if resp.Body == nil {
		return resp, nil
	}
	return resp, slices.Concat(resp.Body.(*Chunks).Data()...)
}

// referenceServer starts a server of gRPC's Go library.
func referenceServer(t testing.TB, methods map[string]func(context.Context, []byte) ([]byte, error), opts ...grpc.ServerOption) (*grpc.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(append(opts, grpc.ForceServerCodecV2(raw{encoding.GetCodecV2(proto.Name)}), grpc.MaxRecvMsgSize(1<<30))...)
	desc := grpc.ServiceDesc{ServiceName: "s", HandlerType: (*any)(nil)}
	for name, m := range methods {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: name, Handler: func(
			_ any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor,
		) (any, error) {
			var in []byte
			if err := read(&in); err != nil {
				return nil, err
			}
			out, err := m(ctx, in)
			return &out, err
		}})
	}
	s.RegisterService(&desc, nil)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func referenceEcho(_ context.Context, in []byte) ([]byte, error) { return in, nil }

func TestClientEcho(t *testing.T) {
	_, ours := serve(t, map[string]func(*Call){"/s/Echo": echo})
	_, theirs := referenceServer(t, map[string]func(context.Context, []byte) ([]byte, error){"Echo": referenceEcho})
	for _, address := range []string{ours, theirs} {
		c := client(t, address)
		for _, n := range messageSizes {
			in := pattern(n)
			if resp, out := call(t.Context(), c, "/s/Echo", in); resp.Code != 0 {
				t.Fatalf("%d bytes: %+v", n, resp)
			} else if !bytes.Equal(in, out) {
				t.Errorf("%d bytes were not echoed unchanged", n)
			}
		}
	}
}

func TestManyClientCalls(t *testing.T) {
	wait := func(ctx context.Context) {
		select {
		case <-time.After(time.Duration(rand.IntN(3)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	_, ours := serve(t, map[string]func(*Call){"/s/Echo": echo, "/s/Slow": func(c *Call) {
		wait(c.Context())
		echo(c)
	}})
	_, theirs := referenceServer(t, map[string]func(context.Context, []byte) ([]byte, error){"Echo": referenceEcho,
		"Slow": func(ctx context.Context, in []byte) ([]byte, error) {
			wait(ctx)
			return in, nil
		}}, grpc.MaxConcurrentStreams(5))
	for _, address := range []string{ours, theirs} {
		c := client(t, address)
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				for j := range 30 {
					ctx, cancel := context.WithCancel(t.Context())
					method := "/s/Echo"
					if (i+j)%5 == 0 {
						method = "/s/Slow"
					}
					if (i+j)%11 == 0 { // cancels at a random time
						go cancel()
					}
					in := pattern(i * j * 200)
					resp, out := call(ctx, c, method, in)
					if resp.Code != 0 && ctx.Err() == nil {
						t.Errorf("got %+v", resp)
					} else if resp.Code == 0 && !bytes.Equal(in, out) {
						t.Errorf("%d bytes were not echoed unchanged", len(in))
					}
					cancel()
				}
			})
		}
		wg.Wait()
	}
}

func TestClientFailures(t *testing.T) {
	text := "a \"text\" with\nlines, 100% ümlauts and \x00"
	_, address := referenceServer(t, map[string]func(context.Context, []byte) ([]byte, error){
		"Fail": func(ctx context.Context, _ []byte) ([]byte, error) {
			err := grpc.SetTrailer(ctx, metadata.Pairs("x-bin", "\x00\xff", "y", "z"))
			return nil, status.Error(codes.DataLoss, text+fmt.Sprint(err))
		},
		"Wait": func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, status.FromContextError(ctx.Err()).Err()
		}})
	c := client(t, address)
	resp, _ := call(t.Context(), c, "/s/Fail", nil)
	if resp.Code != 15 || resp.Text != text+"<nil>" || !resp.FromServer || !slices.Equal(resp.Trailer, []Field{{"x-bin", "\x00\xff"}}) {
		t.Errorf("got %+v", resp)
	}
	if resp, _ := call(t.Context(), c, "/s/Other", nil); resp.Code != codeUnimplemented {
		t.Errorf("got %+v", resp)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if resp, _ := call(ctx, c, "/s/Wait", nil); resp.Code != codeDeadlineExceeded {
		t.Errorf("got %+v", resp)
	}
	if resp, _ := call(ctx, c, "/s/Wait", nil); resp.Code != codeDeadlineExceeded {
		t.Errorf("got %+v", resp)
	}
}

// A server may cancel an expired call before its caller does.
func TestServerCancelsExpiredCallFirst(t *testing.T) {
	for deadline, want := range map[time.Time]uint32{
		{}:                           codeCancelled,
		time.Now().Add(time.Hour):    codeCancelled,
		time.Now().Add(-time.Second): codeDeadlineExceeded,
	} {
		call := newClientCall(nil, &Request{})
		call.deadline = deadline
		if call.reset(codeCancel, nil); call.response.Code != want {
			t.Errorf("deadline %v: got %+v", deadline, call.response)
		}
	}
}

// A cancelled call returns at once, and the server learns of it, whichever goroutine reads the
// connection.
func TestClientCancellation(t *testing.T) {
	waiting, ended := make(chan struct{}), make(chan struct{})
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo, "/s/Wait": func(c *Call) {
		waiting <- struct{}{}
		<-c.Context().Done()
		_ = c.Reply(failure(codeCancelled, ""))
		ended <- struct{}{}
	}})
	c := client(t, address)
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan Response)
		go func() {
			resp, _ := call(ctx, c, "/s/Wait", nil)
			done <- resp
		}()
		<-waiting
		if resp, _ := call(t.Context(), c, "/s/Echo", []byte("x")); resp.Code != codeOK {
			t.Errorf("concurrent call: %+v", resp)
		}
		cancel()
		if resp := <-done; resp.Code != codeCancelled || resp.FromServer {
			t.Errorf("got %+v", resp)
		}
		<-ended
	}
}

func TestWaitForReady(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := client(t, address)
	for range 2 { // during the attempt to connect, and after it
		if resp, _ := call(t.Context(), c, "/s/Echo", nil); resp.Code != codeUnavailable || !strings.Contains(resp.Text, address) {
			t.Errorf("got %+v", resp)
		}
	}
	done := make(chan Response)
	go func() { done <- c.Call(t.Context(), &Request{Path: "/s/Echo", WaitForReady: true, NewBody: chunks}) }()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if resp := c.Call(ctx, &Request{Path: "/s/Echo", WaitForReady: true, NewBody: chunks}); resp.Code != codeDeadlineExceeded {
		t.Errorf("got %+v", resp)
	}
	if l, err = net.Listen("tcp", address); err != nil {
		t.Skip("another program took the port:", err)
	}
	s, _ := serve(t, nil)
	s.Handle("/s/Echo", Method{NewBody: chunks, Serve: echo})
	go s.Serve(l) //nolint:errcheck // ends with the server
	if resp := <-done; resp.Code != codeOK {
		t.Errorf("got %+v", resp)
	}
}

// The client reconnects to a restarted server. Calls that the old server had received fail.
func TestServerRestarts(t *testing.T) {
	waiting := make(chan struct{})
	methods := map[string]func(*Call){"/s/Echo": echo, "/s/Wait": func(c *Call) {
		close(waiting)
		<-c.Context().Done()
		_ = c.Reply(failure(codeCancelled, ""))
	}}
	s, address := serve(t, methods)
	c := client(t, address)
	done := make(chan Response)
	go func() {
		resp, _ := call(t.Context(), c, "/s/Wait", nil)
		done <- resp
	}()
	<-waiting
	s.Close()
	if resp := <-done; resp.Code != codeUnavailable || resp.FromServer {
		t.Errorf("got %+v", resp)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip("another program took the port:", err)
	}
	again, _ := serve(t, nil)
	again.Handle("/s/Echo", Method{NewBody: chunks, Serve: echo})
	go again.Serve(l) //nolint:errcheck // ends with the server
	resp := c.Call(t.Context(), &Request{Path: "/s/Echo", WaitForReady: true, NewBody: chunks})
	if resp.Code != codeOK {
		t.Errorf("got %+v", resp)
	}
}

// While a server drains, calls in progress end normally and new ones fail.
func TestServerDrains(t *testing.T) {
	waiting, release := make(chan struct{}), make(chan struct{})
	s, address := serve(t, map[string]func(*Call){"/s/Wait": func(c *Call) {
		close(waiting)
		<-release
		echo(c)
	}})
	c := client(t, address)
	done := make(chan Response)
	go func() {
		resp, _ := call(t.Context(), c, "/s/Wait", []byte("x"))
		done <- resp
	}()
	<-waiting
	stopped := make(chan struct{})
	go func() {
		s.Shutdown()
		close(stopped)
	}()
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		for ctx.Err() == nil { // until the client has read GOAWAY
			if resp, _ := call(ctx, c, "/s/Other", nil); resp.Code == codeUnavailable {
				break
			}
		}
		cancel()
	}
	close(release)
	if resp := <-done; resp.Code != codeOK {
		t.Errorf("got %+v", resp)
	}
	<-stopped
}

func TestClosedClient(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo})
	c := client(t, address)
	if resp, _ := call(t.Context(), c, "/s/Echo", nil); resp.Code != codeOK {
		t.Errorf("got %+v", resp)
	}
	c.Close()
	if resp, _ := call(t.Context(), c, "/s/Echo", nil); resp.Code != codeUnavailable {
		t.Errorf("got %+v", resp)
	}
}

// FuzzClient answers a call with arbitrary bytes. The client must neither panic nor hang.
func FuzzClient(f *testing.F) {
	ok := appendHeaders(nil, 1, appendResponse(nil), false)
	trailers := appendHeaders(nil, 1, (&Outcome{}).appendTrailer(nil, false), true)
	f.Add(cat(ok, appendFrame(nil, frameData, 0, 1, []byte{0, 0, 0, 0, 1, 'x'}), trailers))
	f.Add(cat(ok, appendUint32Frame(nil, frameReset, 1, 2)))
	f.Add(cat(goAway(0, codeNone, "bye")))
	f.Add(appendHeaders(nil, 1, (&Outcome{Code: 3, Text: "no"}).appendTrailer(appendResponse(nil), false), true))
	f.Fuzz(func(_ *testing.T, frames []byte) {
		first := true
		c := NewClient("x", func(context.Context) (net.Conn, error) {
			if !first {
				return nil, errClosing
			}
			first = false
			here, there := net.Pipe()
			go func() {
				buf := make([]byte, 1<<16)
				_, _ = here.Read(buf) // preface and settings
				_, _ = here.Write(appendFrame(nil, frameSettings, 0, 0, nil))
				_, _ = here.Read(buf) // the acknowledgement or the call
				_, _ = here.Read(buf)
				go func() {
					for {
						if _, err := here.Read(buf); err != nil {
							return
						}
					}
				}()
				_, _ = here.Write(frames)
				here.Close()
			}()
			return there, nil
		})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c.Call(ctx, &Request{Path: "/s/Echo", Data: [][]byte{[]byte("x")}, NewBody: chunks})
		c.Close()
	})
}
