package grpch2

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A strictServer allows one stream at a time and answers each call at once, except calls to
// /s/Wait. It refuses the first calls that it gets, and calls beyond its limit.
type strictServer struct {
	t       testing.TB
	refuse  int // calls that are still refused whatever is open
	refused int
	calls   int
}

// serve answers the frames of one connection.
func (s *strictServer) serve(nc net.Conn) {
	p := &peer{s.t, nc, newInput(nc), newFieldReader()}
	if err := p.in.read(make([]byte, len(preface))); err != nil {
		return
	}
	answers := make(chan []byte, 64)
	defer close(answers)
	go func() { // a pipe has no buffer, and the client does not read while it writes
		for b := range answers {
			_, _ = nc.Write(b)
		}
	}()
	answers <- setting(settingMaxStreams, 1)
	open := map[uint32]bool{} // value: the call is answered
	for {
		h, payload, err := p.read()
		if err != nil {
			return
		}
		switch h.kind {
		case frameHeaders:
			s.calls++
			if s.refuse > 0 || len(open) > 0 {
				s.refuse--
				s.refused++
				answers <- appendUint32Frame(nil, frameReset, h.stream, uint32(codeRefused))
				continue
			}
			f, err := p.headers.read(payload)
			if err != nil {
				s.t.Error(err)
				return
			}
			open[h.stream] = f.path != "/s/Wait"
		case frameData:
			if open[h.stream] && h.has(flagEndStream) {
				delete(open, h.stream)
				answers <- cat(
					appendHeaders(nil, h.stream, appendResponse(nil), false),
					appendFrame(nil, frameData, 0, h.stream, make([]byte, 5)),
					appendHeaders(nil, h.stream, (&Outcome{}).appendTrailer(nil, false), true))
			}
		case frameReset:
			delete(open, h.stream)
		default:
		}
	}
}

// client returns a client of the server.
func (s *strictServer) client() *Client {
	return NewClient("x", func(context.Context) (net.Conn, error) {
		here, there := net.Pipe()
		go s.serve(there)
		return here, nil
	})
}

// A refused call is made again: at once, and then after pauses.
func TestRefusedCalls(t *testing.T) {
	for refuse, want := range map[int]struct {
		code   uint32
		within time.Duration
	}{
		0:            {codeOK, 0},
		1:            {codeOK, 0},
		2:            {codeOK, firstRetryPause},
		maxTries - 1: {codeOK, 7 * firstRetryPause},
		maxTries:     {codeUnavailable, 7 * firstRetryPause},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &strictServer{t: t, refuse: refuse}
			c := s.client()
			defer c.Close()
			start := time.Now()
			resp, _ := call(t.Context(), c, "/s/Echo", nil)
			if took := time.Since(start); resp.Code != want.code || took != want.within {
				t.Errorf("refused %d times: got %+v after %v, want code %d after %v", refuse, resp, took, want.code, want.within)
			}
		})
	}
}

// A pause between attempts ends with the context of the call.
func TestRefusedCallIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strictServer{t: t, refuse: maxTries}
		c := s.client()
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), firstRetryPause/2)
		defer cancel()
		if resp, _ := call(ctx, c, "/s/Echo", nil); resp.Code == codeOK || s.calls != 2 {
			t.Errorf("got %+v after %d calls", resp, s.calls)
		}
	})
}

// A call that takes the place of a cancelled one is written behind its RST_STREAM.
func TestPlaceOfCancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strictServer{t: t}
		c := s.client()
		defer c.Close()
		call(t.Context(), c, "/s/Echo", nil) // learns the limit
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					call(ctx, c, "/s/Wait", nil)
					cancel()
					if resp, _ := call(t.Context(), c, "/s/Echo", nil); resp.Code != codeOK {
						t.Errorf("got %+v", resp)
					}
				}
			})
		}
		wg.Wait()
		if s.refused > 0 {
			t.Errorf("%d of %d calls were refused", s.refused, s.calls)
		}
	})
}
