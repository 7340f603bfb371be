package grpch2

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"
)

// openCall returns the frames of a call whose client never ends its half of the stream, as the
// masters of TensorFlow 1.4 send them.
func openCall(id uint32, message []byte) []byte {
	return cat(appendHeaders(nil, id, head, false), appendFrame(nil, frameData, 0, id, message))
}

// response reads a response with data and the RST_STREAM behind it. It returns the data.
func (p *peer) response(id uint32) []byte {
	p.t.Helper()
	var data []byte
	for {
		h, payload := p.next()
		switch {
		case h.stream != id:
			p.t.Fatalf("got %+v, want stream %d", h, id)
		case h.kind == frameData:
			data = append(data, payload...)
		case h.kind == frameHeaders && h.has(flagEndStream):
			return data
		}
	}
}

// expectReset reads RST_STREAM with NO_ERROR.
func (p *peer) expectReset(id uint32) {
	p.t.Helper()
	h, payload := p.next()
	if h.kind != frameReset || h.stream != id || !bytes.Equal(payload, make([]byte, 4)) {
		p.t.Fatalf("got %+v with %v, want RST_STREAM with NO_ERROR", h, payload)
	}
}

// A call is served when its message is complete. A thousand calls whose streams stay half open
// leave no stream behind, on any kind of handler.
func TestCallsOfClientsThatNeverHalfClose(t *testing.T) {
	pooled := make(chan struct{})
	s, address := serve(t, map[string]func(*Call){
		"/s/Echo": echo,
		"/s/Late": func(c *Call) { go func() { <-pooled; echo(c) }() },
	})
	close(pooled)
	late := block(":method", "POST", ":scheme", "http", ":path", "/s/Late", "content-type", contentType)
	p := newPeer(t, address)
	p.write(hello)
	message := append([]byte{0, 0, 0, 0, 4}, "abcd"...)
	empty := make([]byte, prefixSize)
	for i := range 1000 {
		id := uint32(2*i + 1)
		switch i % 4 {
		case 0: // an empty message
			p.write(openCall(id, empty))
			p.response(id)
		case 1:
			p.write(openCall(id, message))
			if got := p.response(id); !bytes.Equal(got, message) {
				t.Fatalf("got %q", got)
			}
		case 2: // the message in two frames
			p.write(cat(openCall(id, message[:7]), appendFrame(nil, frameData, 0, id, message[7:])))
			p.response(id)
		case 3:
			p.write(cat(appendHeaders(nil, id, late, false), appendFrame(nil, frameData, 0, id, message)))
			p.response(id)
		}
		p.expectReset(id)
	}
	// the server has read everything before this when it answers
	p.write(cat(appendHeaders(nil, 2001, head, false), appendFrame(nil, frameData, flagEndStream, 2001, empty)))
	p.response(2001)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if n := c.activeCalls.Load(); n != 0 {
			t.Errorf("%d active calls", n)
		}
	}
}

// The client may end its half at any time: in a frame of its own, with trailers or with RST_STREAM,
// before and after the response.
func TestLateHalfClose(t *testing.T) {
	answer := make(chan struct{})
	_, address := serve(t, map[string]func(*Call){"/s/Echo": func(c *Call) {
		go func() { <-answer; echo(c) }()
	}})
	message := append([]byte{0, 0, 0, 0, 4}, "abcd"...)
	for name, end := range map[string][]byte{
		"data":     appendFrame(nil, frameData, flagEndStream, 1, nil),
		"trailers": appendHeaders(nil, 1, block("x", "y"), true),
		"reset":    appendUint32Frame(nil, frameReset, 1, uint32(codeNone)),
	} {
		ping := appendFrame(nil, framePing, 0, 0, make([]byte, 8))
		p := newPeer(t, address)
		p.write(cat(hello, openCall(1, message)))
		if name != "reset" {
			p.write(cat(end, ping))
			if h, _ := p.next(); h.kind != framePing { // the end has been read
				t.Fatalf("%s: got %+v", name, h)
			}
			answer <- struct{}{}
			p.response(1)
		} else {
			answer <- struct{}{}
			p.response(1)
			p.expectReset(1)
			p.write(end)
		}
		// the connection remains usable, and no reset was sent for an ended stream
		p.write(openCall(3, message))
		answer <- struct{}{}
		p.response(3)
		p.expectReset(3)
		p.write(appendFrame(nil, frameData, flagEndStream, 3, nil))
		p.write(ping)
		if h, _ := p.next(); h.kind != framePing {
			t.Errorf("%s: got %+v after the end of a stream that was answered", name, h)
		}
	}
}

// A second message fails a call that is being served.
func TestSecondMessageOfOpenStream(t *testing.T) {
	cancelled := make(chan struct{})
	_, address := serve(t, map[string]func(*Call){"/s/Echo": func(c *Call) {
		go func() {
			<-c.Context().Done()
			echo(c)
			close(cancelled)
		}()
	}})
	p := newPeer(t, address)
	empty := make([]byte, prefixSize)
	p.write(cat(hello, openCall(1, empty), appendFrame(nil, frameData, 0, 1, empty)))
	if got := p.status(); got != "13" {
		t.Errorf("got status %s", got)
	}
	p.expectReset(1)
	select {
	case <-cancelled:
	case <-time.After(time.Minute):
		t.Error("the handler was not cancelled")
	}
}

// RST_STREAM cancels a call whose stream is half open.
func TestCancelOfOpenStream(t *testing.T) {
	served, cancelled := make(chan struct{}), make(chan error)
	_, address := serve(t, map[string]func(*Call){"/s/Echo": func(c *Call) {
		close(served)
		<-c.Context().Done()
		cancelled <- c.Context().Err()
		echo(c)
	}})
	p := newPeer(t, address)
	p.write(cat(hello, openCall(1, make([]byte, prefixSize))))
	<-served
	p.write(appendUint32Frame(nil, frameReset, 1, uint32(codeCancel)))
	if err := <-cancelled; err != context.Canceled { //nolint:errorlint // exact
		t.Errorf("got %v", err)
	}
}

// A server learns the user-agent of its clients, and sends messages in the form that they take.
func TestIdentify(t *testing.T) {
	type key struct{}
	s, address := newServer(map[string]func(*Call){"/s/Fail": func(c *Call) {
		agent, _ := c.Context().Value(key{}).(string)
		_ = c.Reply(failure(codeUnknown, agent+"\n100%"))
	}})
	s.Identify = func(_ net.Conn, agent string) Caller {
		return Caller{Context: context.WithValue(context.Background(), key{}, agent), RawMessages: agent == "old"}
	}
	startServer(t, s, address)
	p := newPeer(t, address.Addr().String())
	p.write(hello)
	for i, tt := range []struct{ agent, want string }{
		{"new", "new%0A100%25"}, {"new", "new%0A100%25"}, {"old", "old\n100%"}, {"", "%0A100%25"}, {"new", "new%0A100%25"},
	} {
		id := uint32(2*i + 1)
		fields := []string{":method", "POST", ":scheme", "http", ":path", "/s/Fail", "content-type", contentType}
		if tt.agent != "" {
			fields = append(fields, "user-agent", tt.agent)
		}
		p.write(cat(appendHeaders(nil, id, block(fields...), false), appendFrame(nil, frameData, flagEndStream, id, make([]byte, prefixSize))))
		_, payload := p.next()
		f, err := p.headers.read(payload)
		if err != nil || f.text != tt.want {
			t.Errorf("got %q (%v), want %q", f.text, err, tt.want)
		}
	}
}

// A client that resets a stream which it has not opened loses the connection, unless it is known to
// do so: by the user-agent of an earlier call, or by a setting.
func TestIdleReset(t *testing.T) {
	message := make([]byte, prefixSize)
	agent := func(tolerant bool) func(net.Conn, string) Caller {
		return func(net.Conn, string) Caller {
			return Caller{Context: context.Background(), ResetsIdleStreams: tolerant}
		}
	}
	coreHello := cat([]byte(preface), setting(settingTrueBinary, 1))
	for name, tt := range map[string]struct {
		identify func(net.Conn, string) Caller
		hello    []byte
		called   bool   // whether the connection has had a call
		stream   uint32 // reset
		breach   bool
	}{
		"unknown agent":         {agent(false), hello, true, 5, true},
		"known agent":           {agent(true), hello, true, 5, false},
		"no call yet":           {agent(true), hello, false, 5, true},
		"setting":               {agent(false), coreHello, true, 5, false},
		"setting, no call yet":  {agent(false), coreHello, false, 1, false},
		"setting, far stream":   {agent(false), coreHello, true, 513, false},
		"setting, twice before": {agent(false), cat(coreHello, appendUint32Frame(nil, frameReset, 1, uint32(codeCancel))), false, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := newServer(map[string]func(*Call){"/s/Echo": echo})
			s.Identify = tt.identify
			startServer(t, s, l)
			p := newPeer(t, l.Addr().String())
			p.write(tt.hello)
			if tt.called {
				p.write(openCall(1, message))
				p.response(1)
				p.expectReset(1)
			}
			next := tt.stream + 2
			p.write(cat(appendUint32Frame(nil, frameReset, tt.stream, uint32(codeCancel)), openCall(next, message)))
			if tt.breach {
				if h, _ := p.next(); h.kind != frameGoAway {
					t.Errorf("got %+v, want GOAWAY", h)
				}
				return
			}
			p.response(next)
			p.expectReset(next)
		})
	}
}
