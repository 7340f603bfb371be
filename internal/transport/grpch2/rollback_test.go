package grpch2

import (
	"bytes"
	"testing"
)

// A call is rolled back if its caller cancels it before the response is written, or afterwards.
func TestRollback(t *testing.T) {
	rolledBack := make(chan byte, 2*maxRollbacks) // for those at the end of the connection, too
	waiting, resume := make(chan struct{}), make(chan struct{})
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo, "/s/Make": func(c *Call) {
		what := request(c)[0]
		if what == 'w' {
			waiting <- struct{}{}
			<-resume
			<-c.Context().Done()
		}
		c.ReplyWithRollback(Outcome{Data: c.Request().(*Chunks).Data()}, func() { rolledBack <- what })
	}})
	makeHead := block(":method", "POST", ":scheme", "http", ":path", "/s/Make", "content-type", contentType)
	send := func(id uint32, head []byte, what byte) []byte {
		return cat(appendHeaders(nil, id, head, false), appendFrame(nil, frameData, flagEndStream, id, []byte{0, 0, 0, 0, 1, what}))
	}
	p := newPeer(t, address)
	answered := func(id uint32) {
		t.Helper()
		for {
			if h, _ := p.next(); h.stream == id && h.has(flagEndStream) {
				return
			}
		}
	}
	p.write(cat(hello, send(1, makeHead, 'w')))
	<-waiting
	p.write(cat(appendUint32Frame(nil, frameReset, 1, uint32(codeCancel)), send(3, head, 'x')))
	answered(3) // the reset was read before this request
	resume <- struct{}{}
	if got := <-rolledBack; got != 'w' {
		t.Errorf("rolled back %q", got)
	}

	for i, what := range []byte("abc") {
		id := uint32(5 + 2*i)
		p.write(send(id, makeHead, what))
		answered(id)
	}
	p.write(cat(appendUint32Frame(nil, frameReset, 7, uint32(codeCancel)), appendUint32Frame(nil, frameReset, 7, uint32(codeCancel)),
		appendUint32Frame(nil, frameReset, 9, uint32(codeNone)), send(11, head, 'x')))
	answered(11)
	if got := <-rolledBack; got != 'b' {
		t.Errorf("rolled back %q", got)
	}

	for id := uint32(13); id < 13+4*maxRollbacks; id += 2 {
		p.write(send(id, makeHead, 'd'))
		answered(id)
	}
	p.write(cat(appendUint32Frame(nil, frameReset, 5, uint32(codeCancel)), send(201, head, 'x')))
	answered(201)
	if len(rolledBack) > 0 {
		t.Errorf("rolled back %q, which was rolled back before or is too old", <-rolledBack)
	}
}

// A call is rolled back if its connection ends before the caller confirms that it has read the
// response, and not afterwards.
func TestRollbackAtEnd(t *testing.T) {
	rolledBack := make(chan byte, 10)
	_, address := serve(t, map[string]func(*Call){"/s/Make": func(c *Call) {
		what := request(c)[0]
		c.ReplyWithRollback(Outcome{Data: c.Request().(*Chunks).Data()}, func() { rolledBack <- what })
	}})
	head := block(":method", "POST", ":scheme", "http", ":path", "/s/Make", "content-type", contentType)
	for _, tt := range []struct {
		calls, confirmed, want string
	}{
		{"a", "", "a"},
		{"bc", "b", "c"},
		{"de", "de", ""},
		{"f", "", "f"}, // shows that nothing of the connection before was rolled back
	} {
		p := newPeer(t, address)
		p.write(hello)
		for i, what := range []byte(tt.calls) {
			id := uint32(1 + 2*i)
			p.write(cat(appendHeaders(nil, id, head, false), appendFrame(nil, frameData, flagEndStream, id, []byte{0, 0, 0, 0, 1, what})))
			for answered := false; ; {
				h, payload := p.next()
				if h.kind == framePing && !h.has(flagAck) {
					if !answered {
						t.Fatal("PING comes before the end of the response")
					}
					if bytes.IndexByte([]byte(tt.confirmed), what) >= 0 {
						p.write(appendFrame(nil, framePing, flagAck, 0, payload))
					}
					break
				}
				answered = answered || h.stream == id && h.has(flagEndStream)
			}
		}
		p.write(appendFrame(nil, framePing, 0, 0, make([]byte, 8)))
		for h, _ := p.next(); h.kind != framePing; h, _ = p.next() {
			// the answer shows that the server has read all of that
		}
		p.nc.Close()
		for _, want := range []byte(tt.want) {
			if got := <-rolledBack; got != want {
				t.Errorf("calls %q, confirmed %q: rolled back %q, want %q", tt.calls, tt.confirmed, got, want)
			}
		}
	}
}
