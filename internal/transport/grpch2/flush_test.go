package grpch2

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener for connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if nc, ok := <-p; ok {
		return nc, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return nil }

// countingConn counts the writes to a connection.
type countingConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// inMemory serves methods in a synctest bubble, whose time advances only while all goroutines
// block. It returns a connected client, the server, and the number of writes of each side.
func inMemory(t *testing.T, methods map[string]func(*Call)) (c *Client, s *Server, requests, responses *atomic.Int32) {
	s = NewServer(slog.New(slog.DiscardHandler))
	for path, m := range methods {
		s.Handle(path, Method{NewBody: chunks, Serve: m, Short: true})
	}
	listener := make(pipes, 1)
	requests, responses = new(atomic.Int32), new(atomic.Int32)
	served := make(chan error)
	go func() { served <- s.Serve(listener) }()
	c = NewClient("x", func(context.Context) (net.Conn, error) {
		here, there := net.Pipe()
		listener <- countingConn{there, responses}
		return countingConn{here, requests}, nil
	})
	t.Cleanup(func() {
		c.Close()
		s.Close()
		close(listener)
		if err := <-served; !errors.Is(err, ErrServerStopped) {
			t.Errorf("Serve: %v", err)
		}
	})
	if resp, _ := call(t.Context(), c, "/s/Echo", nil); resp.Code != codeOK {
		t.Fatalf("got %+v", resp)
	}
	synctest.Wait()
	requests.Store(0)
	responses.Store(0)
	return c, s, requests, responses
}

// start makes a call that increments answered.
func start(t *testing.T, c *Client, mayDelay bool, answered *atomic.Int32) {
	r := &Request{Path: "/s/Echo", Data: [][]byte{{1, 2, 3}}, NewBody: chunks, MayDelay: mayDelay}
	c.Start(t.Context(), r, func(resp Response) {
		if resp.Code != codeOK {
			t.Errorf("got %+v", resp)
		}
		answered.Add(1)
	})
}

// Delayed requests are written with the next one that is not delayed, and the responses to requests
// that arrive together are written together.
func TestDelayedRequestsShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, requests, responses := inMemory(t, map[string]func(*Call){"/s/Echo": echo})
		var answered atomic.Int32
		for round := range int32(5) {
			start(t, c, true, &answered)
			start(t, c, true, &answered)
			synctest.Wait()
			if n := requests.Load(); n != round {
				t.Fatalf("%d writes of delayed requests in round %d", n, round)
			}
			start(t, c, false, &answered)
			synctest.Wait()
			if n := answered.Load(); n != 3*(round+1) {
				t.Fatalf("%d answers in round %d", n, round)
			}
			if out, in := requests.Load(), responses.Load(); out != round+1 || in != round+1 {
				t.Errorf("%d and %d writes in round %d", out, in, round)
			}
		}
	})
}

// Delayed requests are written after flushDelay, or by Flush.
func TestDelayedRequestsAreWrittenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, requests, _ := inMemory(t, map[string]func(*Call){"/s/Echo": echo})
		var answered atomic.Int32
		for round := range int32(3) {
			begin := time.Now()
			start(t, c, true, &answered)
			start(t, c, true, &answered)
			for answered.Load() < 2*(round+1) {
				<-time.After(time.Millisecond)
			}
			synctest.Wait() // until the reader blocks again
			if took := time.Since(begin); took > 2*flushDelay || requests.Load() != round+1 {
				t.Errorf("%d writes after %v in round %d", requests.Load(), took, round)
			}
		}
		requests.Store(0)
		start(t, c, true, &answered)
		c.Flush()
		synctest.Wait()
		if requests.Load() != 1 || answered.Load() != 7 {
			t.Errorf("%d writes, %d answers", requests.Load(), answered.Load())
		}
	})
}

// Responses are not held back for a request that has arrived only partly.
func TestResponsesDoNotWaitForPartialRequests(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo})
	p := newPeer(t, address)
	whole := func(id uint32) []byte {
		return cat(appendHeaders(nil, id, head, false), appendFrame(nil, frameData, flagEndStream, id, []byte{0, 0, 0, 0, 1, 'x'}))
	}
	third := whole(5)
	p.write(cat(hello, whole(1), whole(3), third[:len(third)-3]))
	answered := func(id uint32) {
		t.Helper()
		for {
			if h, _ := p.next(); h.stream == id && h.has(flagEndStream) {
				return
			}
		}
	}
	answered(1)
	answered(3)
	p.write(third[len(third)-3:])
	answered(5)
}
