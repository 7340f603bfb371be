package grpch2

import "testing"

// A call is rolled back if its caller cancels it before the response is written, or afterwards.
func TestRollback(t *testing.T) {
	rolledBack := make(chan byte, 10)
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
