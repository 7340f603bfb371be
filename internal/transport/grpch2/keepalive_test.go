package grpch2

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A hole is a proxy between a client and a server that stops to forward bytes and keeps the
// connections open.
type hole struct {
	swallow atomic.Bool
	pings   [2]atomic.Int32 // from the client, and from the server
}

// dial returns a connection to a server, through the hole.
func (h *hole) dial(s *Server) net.Conn {
	here, proxy := net.Pipe()
	onward, there := net.Pipe()
	go h.forward(onward, proxy, &h.pings[0])
	go h.forward(proxy, onward, &h.pings[1])
	s.accept(there)
	return here
}

// forward copies bytes until a connection ends.
func (h *hole) forward(to, from net.Conn, pings *atomic.Int32) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			to.Close()
			return
		}
		if n == frameHeaderSize+8 && frameType(buf[3]) == framePing && buf[flagsAt] == 0 {
			pings.Add(1)
		}
		if !h.swallow.Load() {
			if _, err := to.Write(buf[:n]); err != nil {
				from.Close()
				return
			}
		}
	}
}

// waitServer returns a server with a method that takes long, and ends with its call or after d. It
// passes the end of the call's context to ended.
func waitServer(d time.Duration, audience Audience, ended chan<- time.Time) *Server {
	s := NewServer(slog.New(slog.DiscardHandler))
	s.Handle("/s/Wait", Method{NewBody: chunks, Audience: audience, Serve: func(c *Call) {
		select {
		case <-time.After(d):
		case <-c.Context().Done():
			ended <- time.Now()
		}
		echo(c)
	}})
	s.Handle("/s/Echo", Method{NewBody: chunks, Serve: echo, Audience: audience})
	return s
}

// A client notices that its server has vanished behind a proxy, and does not end a connection whose
// server only takes long.
func TestKeepalive(t *testing.T) {
	for name, tt := range map[string]struct {
		weft    bool
		busy    bool          // the server does not answer probes either
		swallow time.Duration // when the proxy begins to swallow; 0 for never
		within  time.Duration // until the call fails
		pings   int32         // in an hour, if the server is alive
	}{
		"weft":                   {true, false, 0, 0, 180},
		"stranger":               {false, false, 0, 0, 0},
		"busy stranger":          {false, true, 0, 0, freePings + 11},
		"weft vanishes":          {true, false, time.Minute, 40 * time.Second, 0},
		"stranger vanishes":      {false, false, time.Minute, 60 * time.Second, 0},
		"vanishes early":         {false, false, time.Second, 60 * time.Second, 0},
		"busy stranger vanishes": {false, true, 5 * time.Second, 60 * time.Second, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var h hole
			s := waitServer(time.Hour+time.Second, Everyone, make(chan time.Time, 10))
			if tt.busy {
				s.Handle(probePath, Method{NewBody: chunks, Serve: func(c *Call) {
					<-c.Context().Done()
					_ = c.Reply(failure(codeCancelled, ""))
				}})
			}
			defer s.Close()
			client := NewClient("x", func(context.Context) (net.Conn, error) { return h.dial(s), nil })
			defer client.Close()
			start := time.Now()
			if tt.swallow > 0 {
				time.AfterFunc(tt.swallow, func() { h.swallow.Store(true) })
			}
			done := make(chan Response, 1)
			client.Start(t.Context(), &Request{Path: "/s/Wait", Data: [][]byte{{'x'}}, NewBody: chunks}, func(r Response) { done <- r })
			if !tt.weft {
				synctest.Wait()
				<-time.After(time.Millisecond) // of the fake clock
				client.mu.Lock()
				conn := client.conn
				client.mu.Unlock()
				conn.out.mu.Lock()
				conn.out.peer.weft = false
				conn.out.mu.Unlock()
			}
			r := <-done
			after := time.Since(start)
			pings := h.pings[0].Load()
			if tt.swallow == 0 {
				if r.Code != codeOK || pings < tt.pings-tt.pings/10 || pings > tt.pings {
					t.Errorf("%s: got %+v after %v and %d PINGs", name, r, after, pings)
				}
				return
			}
			if r.Code != codeUnavailable || !strings.Contains(r.Text, "PING") || after > tt.swallow+tt.within {
				t.Errorf("%s: got %+v after %v", name, r, after)
			}
		})
	}
}

// A client replaces an idle connection to Weft that leads nowhere before its next call.
func TestKeepaliveOfIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hole
		s := waitServer(time.Second, Everyone, nil)
		s.Limits.Keepalive = DefaultKeepalive
		defer s.Close()
		client := NewClient("x", func(context.Context) (net.Conn, error) {
			h.swallow.Store(false)
			return h.dial(s), nil
		})
		defer client.Close()
		r := &Request{Path: "/s/Echo", Data: [][]byte{{'x'}}, NewBody: chunks}
		if resp := client.Call(t.Context(), r); resp.Code != codeOK {
			t.Fatalf("got %+v", resp)
		}
		<-time.After(time.Hour) // of the fake clock
		if n := connections(s); n != 1 || h.pings[0].Load() < 40 {
			t.Errorf("%d connections and %d PINGs after an hour", n, h.pings[0].Load())
		}
		h.swallow.Store(true)
		<-time.After(2*time.Minute + 10*time.Second)
		if n := connections(s); n != 0 {
			t.Errorf("the server keeps %d connections", n)
		}
		if resp := client.Call(t.Context(), r); resp.Code != codeOK {
			t.Errorf("got %+v", resp)
		}
	})
}

// A server notices that a client has vanished that waits for a response, or that is an idle task.
// It does not end the connection of a client that answers.
func TestServerKeepalive(t *testing.T) {
	for name, tt := range map[string]struct {
		audience Audience
		path     string
		within   time.Duration // until the connection ends after the client has vanished
	}{
		"busy client": {Clients, "/s/Wait", 45 * time.Second},
		"busy task":   {Tasks, "/s/Wait", 45 * time.Second},
		"idle task":   {Tasks, "/s/Echo", 95 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var h hole
			ended := make(chan time.Time, 1)
			s := waitServer(3*time.Hour, tt.audience, ended)
			s.Limits = limits
			s.Limits.Keepalive = DefaultKeepalive
			defer s.Close()
			nc := h.dial(s)
			p := &peer{t, nc, newInput(nc), newFieldReader()}
			go p.write(cat(hello, appendHeaders(nil, 1, callHead(tt.path), false),
				appendFrame(nil, frameData, flagEndStream, 1, make([]byte, prefixSize))))
			gone := make(chan struct{})
			go func() { // answers PINGs
				for {
					f, b, err := p.read()
					if err != nil {
						close(gone)
						return
					}
					if f.kind == framePing && !f.has(flagAck) {
						_, _ = p.nc.Write(appendFrame(nil, framePing, flagAck, 0, b))
					}
				}
			}()
			<-time.After(time.Hour)
			if n := connections(s); n != 1 || h.pings[1].Load() < 30 {
				t.Errorf("%s: %d connections and %d PINGs after an hour", name, n, h.pings[1].Load())
			}
			h.swallow.Store(true)
			vanished := time.Now()
			<-gone
			if took := time.Since(vanished); took > tt.within {
				t.Errorf("%s: the connection ended after %v", name, took)
			}
			if tt.path == "/s/Wait" {
				<-ended
			}
			if n := s.Limited()["keepalive"]; n != 1 {
				t.Errorf("%s: counted %d", name, n)
			}
		})
	}
}
