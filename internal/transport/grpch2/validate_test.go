package grpch2

import (
	"encoding/binary"
	"strings"
	"testing"
)

// Requests with a malformed header block, and requests whose data has another length than they
// announce, end with RST_STREAM PROTOCOL_ERROR.
func TestMalformedRequests(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo})
	with := func(fields ...string) []byte {
		return block(append([]string{":method", "POST", ":scheme", "http", ":path", "/s/Echo", "content-type", contentType}, fields...)...)
	}
	for name, block := range map[string][]byte{
		"upper case":           with("X-Test", "ok"),
		"empty name":           with("", "ok"),
		"space in a name":      with("x test", "ok"),
		"other letters":        with("ä", "ok"),
		"line break":           with("x", "a\r\nb: c"),
		"null byte":            with("x", "a\x00"),
		"unknown pseudo":       block(":method", "POST", ":scheme", "http", ":path", "/s/Echo", ":test", "ok", "content-type", contentType),
		"late pseudo":          with(":authority", "x"),
		"status":               block(":method", "POST", ":scheme", "http", ":path", "/s/Echo", ":status", "200", "content-type", contentType),
		"two paths":            block(":method", "POST", ":scheme", "http", ":path", "/s/Echo", ":path", "/s/Echo", "content-type", contentType),
		"no scheme":            block(":method", "POST", ":path", "/s/Echo", "content-type", contentType),
		"no method":            block(":scheme", "http", ":path", "/s/Echo", "content-type", contentType),
		"empty path":           block(":method", "POST", ":scheme", "http", ":path", "", "content-type", contentType),
		"line break in a path": block(":method", "POST", ":scheme", "http", ":path", "/s/Echo\n", "content-type", contentType),
		"connection":           with("connection", "keep-alive"),
		"upgrade":              with("upgrade", "h2c"),
		"te":                   with("te", "trailers, deflate"),
		"length":               with("content-length", "6"),
		"no number":            with("content-length", "+5"),
		"two lengths":          with("content-length", "5", "content-length", "6"),
		"length of all data":   with("content-length", "4"),
	} {
		p := newPeer(t, address)
		p.write(cat(hello, appendHeaders(nil, 1, block, false), appendFrame(nil, frameData, flagEndStream, 1, make([]byte, prefixSize))))
		for {
			h, payload := p.next()
			if h.kind == frameReset {
				if code := errCode(binary.BigEndian.Uint32(payload)); code != codeProtocol {
					t.Errorf("%s: got code %d", name, code)
				}
				break
			}
			if h.kind == frameData {
				t.Errorf("%s: the request was served", name)
				break
			}
		}
	}
}

// What is unusual and valid is served.
func TestUnusualRequests(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo})
	for name, fields := range map[string][]string{
		"tabs":            {"x", "\ta b "},
		"bytes":           {"x", "\xff\x80"},
		"binary":          {"x-bin", "\x00\n"},
		"symbols":         {"!#$%&'*+-.^_`|~0z", "1"},
		"length":          {"content-length", "5"},
		"the same length": {"content-length", "5", "content-length", "5"},
	} {
		p := newPeer(t, address)
		head := block(append([]string{":method", "POST", ":scheme", "http", ":path", "/s/Echo", "content-type", contentType}, fields...)...)
		p.write(cat(hello, appendHeaders(nil, 1, head, false), appendFrame(nil, frameData, flagEndStream, 1, make([]byte, prefixSize))))
		if h, _ := p.next(); h.kind != frameHeaders || h.has(flagEndStream) {
			t.Errorf("%s: got %+v", name, h)
		}
	}
}

// Frames on streams that the client has ended are errors; those that may have crossed a reset by
// the server are not.
func TestLateFrames(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo, "/s/Wait": func(c *Call) {
		<-c.Context().Done()
		_ = c.Reply(failure(codeCancelled, ""))
	}})
	wait := block(":method", "POST", ":scheme", "http", ":path", "/s/Wait", "content-type", contentType)
	unknown := block(":method", "POST", ":scheme", "http", ":path", "/s/Other", "content-type", contentType)
	data := appendFrame(nil, frameData, flagEndStream, 3, make([]byte, prefixSize))
	reset := appendUint32Frame(nil, frameReset, 3, uint32(codeCancel))
	for name, tt := range map[string]struct {
		frames []byte
		want   errCode // codeNone if the frames are accepted
		goAway bool
	}{
		"data while it is served":    {cat(appendHeaders(nil, 3, wait, false), data, data), codeStreamClosed, false},
		"headers while it is served": {cat(appendHeaders(nil, 3, wait, false), data, appendHeaders(nil, 3, wait, true)), codeStreamClosed, true},
		"data after reset":           {cat(appendHeaders(nil, 3, wait, false), reset, data), codeStreamClosed, false},
		"headers after reset":        {cat(appendHeaders(nil, 3, wait, false), reset, appendHeaders(nil, 3, wait, true)), codeStreamClosed, true},
		"headers after the answer":   {cat(appendHeaders(nil, 3, unknown, true), appendHeaders(nil, 3, wait, true)), codeStreamClosed, true},
		"lower number":               {cat(appendHeaders(nil, 3, unknown, true), appendHeaders(nil, 1, wait, true)), codeProtocol, true},
		"data after a refusal":       {cat(appendHeaders(nil, 3, unknown, false), data), codeNone, false},
		"headers after a refusal":    {cat(appendHeaders(nil, 3, unknown, false), appendHeaders(nil, 3, block("x", "y"), true)), codeNone, false},
		"reset after the answer":     {cat(appendHeaders(nil, 3, unknown, true), reset, reset), codeNone, false},
		"depends on itself":          {appendFrame(nil, framePriority, 0, 3, []byte{0, 0, 0, 3, 9}), codeProtocol, true},
		"headers depend on itself":   {appendFrame(nil, frameHeaders, flagPriority|flagEndHeaders, 3, cat([]byte{0, 0, 0, 3, 9}, wait)), codeProtocol, true},
	} {
		p := newPeer(t, address)
		p.write(cat(hello, tt.frames, appendFrame(nil, framePing, 0, 0, make([]byte, 8))))
		got, away := codeNone, false
		for {
			h, payload, err := p.read()
			if err != nil || h.kind == framePing {
				break
			}
			switch {
			case h.kind == frameGoAway:
				got, away = errCode(binary.BigEndian.Uint32(payload[4:])), true
			case h.kind == frameReset && h.stream == 3:
				got = errCode(binary.BigEndian.Uint32(payload))
			}
		}
		if got != tt.want || away != tt.goAway {
			t.Errorf("%s: got code %d (GOAWAY %v), want %d", name, got, away, tt.want)
		}
	}
}

// A client rejects responses with malformed headers, and accepts raw text in grpc-message.
func TestMalformedResponses(t *testing.T) {
	for name, tt := range map[string]struct {
		fields []string
		want   string
	}{
		"raw text":       {[]string{":status", "200", "content-type", contentType, "grpc-status", "3", "grpc-message", "a\nb"}, "a\nb"},
		"upper case":     {[]string{":status", "200", "content-type", contentType, "Grpc-Status", "3"}, "invalid characters"},
		"request":        {[]string{":status", "200", ":path", "/", "content-type", contentType, "grpc-status", "3"}, "pseudo-header"},
		"two statuses":   {[]string{":status", "200", ":status", "200", "content-type", contentType, "grpc-status", "3"}, "repeated"},
		"not the status": {[]string{"content-type", contentType, "grpc-status", "3"}, "pseudo-header"},
	} {
		r := newFieldReader()
		f, err := r.read(block(tt.fields...))
		if err != nil {
			t.Fatal(err)
		}
		got := f.checkResponse()
		if got == "" {
			got = f.text
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestStreamHistory(t *testing.T) {
	var h streamHistory
	last := uint32(0)
	open := func(id uint32) { h.open(id, last); last = id }
	check := func(id uint32, want endState) {
		t.Helper()
		if got := h.state(id, last); got != want {
			t.Errorf("stream %d after %d: got %d, want %d", id, last, got, want)
		}
	}
	open(5)
	check(1, neverOpened)
	check(3, neverOpened)
	check(5, endedHere)
	h.end(5)
	check(5, endedByClient)
	for range historySize / 2 { // every other stream is skipped
		open(last + 4)
		h.end(last)
	}
	check(5, endedHere) // forgotten
	check(last, endedByClient)
	check(last-2, neverOpened)
	check(last-4, endedByClient)
	open(last + 100*historySize)
	check(last, endedHere)
	check(last-2, neverOpened)
	check(last-2*historySize, endedHere)
}
