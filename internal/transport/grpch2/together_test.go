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

// pipes is a listener whose connections are in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if nc, ok := <-p; ok {
		return nc, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return nil }

// counted counts what is written to a connection.
type counted struct {
	net.Conn
	writes *atomic.Int32
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// inMemory serves Echo in a bubble, whose time stands still while anybody has something to do. It
// returns a client that is connected, and how often each side has written.
func inMemory(t *testing.T) (c *Client, requests, responses *atomic.Int32) {
	s := NewServer(slog.New(slog.DiscardHandler))
	s.Handle("/s/Echo", Method{NewBody: chunks, Serve: echo, Short: true})
	listener := make(pipes, 1)
	requests, responses = new(atomic.Int32), new(atomic.Int32)
	served := make(chan error)
	go func() { served <- s.Serve(listener) }()
	c = NewClient("x", func(context.Context) (net.Conn, error) {
		here, there := net.Pipe()
		listener <- counted{there, responses}
		return counted{here, requests}, nil
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
	return c, requests, responses
}

// start makes a call that adds to answered.
func start(t *testing.T, c *Client, canWait bool, answered *atomic.Int32) {
	r := &Request{Path: "/s/Echo", Data: [][]byte{{1, 2, 3}}, NewBody: chunks, MayDelay: canWait}
	c.Start(t.Context(), r, func(resp Response) {
		if resp.Code != codeOK {
			t.Errorf("got %+v", resp)
		}
		answered.Add(1)
	})
}

// Requests that can wait go out with the next that cannot, and the answers to those that come
// together go back together.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, requests, responses := inMemory(t)
		var answered atomic.Int32
		for round := range int32(5) {
			start(t, c, true, &answered)
			start(t, c, true, &answered)
			synctest.Wait()
			if n := requests.Load(); n != round {
				t.Fatalf("%d writes before anything must be written in round %d", n, round)
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

// Requests that can wait do not wait long, and as long as nobody says that they should go.
func TestNobodyWaitsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, requests, _ := inMemory(t)
		var answered atomic.Int32
		for round := range int32(3) {
			begin := time.Now()
			start(t, c, true, &answered)
			start(t, c, true, &answered)
			for answered.Load() < 2*(round+1) {
				<-time.After(time.Millisecond)
			}
			synctest.Wait() // who reads may still be busy
			if took := time.Since(begin); took > 2*soon || requests.Load() != round+1 {
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

// The rest of a request that is on its way does not hold back answers.
func TestAnswersDoNotWaitForHalfARequest(t *testing.T) {
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
