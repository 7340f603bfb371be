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

// A hole is a proxy that stops to forward bytes and keeps the connections open.
type hole struct{ swallow atomic.Bool }

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

// A client notices that its server has vanished behind a proxy, and does not end a connection whose
// server only takes long.
func TestKeepalive(t *testing.T) {
	for name, tt := range map[string]struct {
		weft    bool
		swallow time.Duration // when the proxy begins to swallow; 0 for never
		within  time.Duration // until the call fails
		pings   int32         // in an hour, if the server is alive
	}{
		"weft":              {true, 0, 0, 180},
		"stranger":          {false, 0, 0, 12},
		"weft vanishes":     {true, time.Minute, 40 * time.Second, 0},
		"stranger vanishes": {false, time.Minute, 340 * time.Second, 0},
		"vanishes early":    {false, time.Second, 40 * time.Second, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var h hole
			var pings atomic.Int32
			s := NewServer(slog.New(slog.DiscardHandler))
			hour := time.Hour + time.Second
			s.Handle("/s/Wait", Method{NewBody: chunks, Serve: func(c *Call) {
				select {
				case <-time.After(hour):
				case <-c.Context().Done():
				}
				echo(c)
			}})
			defer s.Close()
			client := NewClient("x", func(context.Context) (net.Conn, error) {
				here, proxy := net.Pipe()
				onward, there := net.Pipe()
				go h.forward(onward, proxy, &pings)
				go h.forward(proxy, onward, new(atomic.Int32))
				s.accept(there)
				return here, nil
			})
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
			if tt.swallow == 0 {
				if r.Code != codeOK || pings.Load() < tt.pings-12 || pings.Load() > tt.pings {
					t.Errorf("%s: got %+v after %v and %d PINGs", name, r, after, pings.Load())
				}
				return
			}
			if r.Code != codeUnavailable || !strings.Contains(r.Text, "PING") || after > tt.swallow+tt.within {
				t.Errorf("%s: got %+v after %v", name, r, after)
			}
		})
	}
}
