package grpch2

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
)

// startAll makes calls with Start, and returns their responses in order.
func startAll(ctx context.Context, c *Client, path string, messages [][]byte) []Response {
	out := make([]Response, len(messages))
	var wg sync.WaitGroup
	for i, in := range messages {
		wg.Add(1)
		c.Start(ctx, &Request{Path: path, Data: [][]byte{in}, NewBody: chunks}, func(resp Response) {
			out[i] = resp
			wg.Done()
		})
	}
	wg.Wait()
	return out
}

func TestStart(t *testing.T) {
	_, ours := serve(t, map[string]func(*Call){"/s/Echo": echo})
	_, theirs := referenceServer(t, map[string]func(context.Context, []byte) ([]byte, error){"Echo": referenceEcho},
		grpc.MaxConcurrentStreams(5))
	for _, address := range []string{ours, theirs} {
		c := client(t, address)
		for range 3 { // the first round also connects
			var messages [][]byte
			for i := range 40 {
				messages = append(messages, pattern(i*i*100))
			}
			for i, resp := range startAll(t.Context(), c, "/s/Echo", messages) {
				if resp.Code != 0 {
					t.Fatalf("%d bytes: %+v", len(messages[i]), resp)
				}
				if !bytes.Equal(slices.Concat(resp.Body.(*Chunks).Data()...), messages[i]) {
					t.Errorf("%d bytes were not echoed unchanged", len(messages[i]))
				}
			}
			if resp, out := call(t.Context(), c, "/s/Echo", messages[1]); resp.Code != 0 || !bytes.Equal(out, messages[1]) {
				t.Errorf("Call after Start: %+v", resp)
			}
		}
	}
}

func TestStartedCallsEndWithTheirContext(t *testing.T) {
	begun := make(chan struct{})
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo, "/s/Wait": func(c *Call) {
		begun <- struct{}{}
		<-c.Context().Done()
		_ = c.Reply(Outcome{Code: codeCancelled})
	}})
	c := client(t, address)
	if resp, _ := call(t.Context(), c, "/s/Echo", nil); resp.Code != 0 {
		t.Fatalf("got %+v", resp)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		<-begun
		cancel()
	}()
	for _, resp := range startAll(ctx, c, "/s/Wait", make([][]byte, 2)) {
		if resp.Code != codeCancelled || resp.FromServer {
			t.Errorf("got %+v, want a local cancellation", resp)
		}
	}
	for _, resp := range startAll(ctx, c, "/s/Echo", make([][]byte, 2)) {
		if resp.Code != codeCancelled {
			t.Errorf("after the end of the context: got %+v", resp)
		}
	}
}

func TestStartedCallsEndWithTheirConnection(t *testing.T) {
	begun := make(chan struct{})
	server, address := serve(t, map[string]func(*Call){"/s/Echo": echo, "/s/Wait": func(c *Call) {
		close(begun)
		<-c.Context().Done()
		_ = c.Reply(Outcome{Code: codeCancelled})
	}})
	c := client(t, address)
	if resp, _ := call(t.Context(), c, "/s/Echo", nil); resp.Code != 0 {
		t.Fatalf("got %+v", resp)
	}
	go func() {
		<-begun
		server.Close()
	}()
	for _, resp := range startAll(t.Context(), c, "/s/Wait", make([][]byte, 1)) {
		if resp.Code != codeUnavailable || resp.FromServer {
			t.Errorf("got %+v", resp)
		}
	}
	for _, resp := range startAll(t.Context(), c, "/s/Echo", make([][]byte, 1)) {
		if resp.Code != codeUnavailable {
			t.Errorf("without a server: got %+v", resp)
		}
	}
}
