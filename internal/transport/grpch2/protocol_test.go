package grpch2

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"
)

// A peer sends and receives single frames.
type peer struct {
	t       testing.TB
	nc      net.Conn
	in      *input
	headers *fieldReader
}

// newPeer connects to a server. The test sends the preface.
func newPeer(t testing.TB, address string) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &peer{t, nc, newInput(nc), newFieldReader()}
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	if _, err := p.nc.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// next returns the next frame, except SETTINGS and WINDOW_UPDATE of the connection.
func (p *peer) next() (frameHeader, []byte) {
	p.t.Helper()
	for {
		h, payload, err := p.read()
		if err != nil {
			p.t.Fatal(err)
		}
		if h.kind != frameSettings && (h.kind != frameWindowUpdate || h.stream != 0) {
			return h, payload
		}
	}
}

func (p *peer) read() (frameHeader, []byte, error) {
	b, err := p.in.next(frameHeaderSize)
	if err != nil {
		return frameHeader{}, nil, err
	}
	h := parseFrameHeader(b)
	payload := make([]byte, h.length)
	return h, payload, p.in.read(payload)
}

// status reads a response without data and returns its gRPC or HTTP status.
func (p *peer) status() string {
	p.t.Helper()
	h, payload := p.next()
	if h.kind == frameReset {
		return fmt.Sprintf("RST_STREAM %d", binary.BigEndian.Uint32(payload))
	}
	if h.kind != frameHeaders {
		p.t.Fatalf("got %+v, want headers", h)
	}
	f, err := p.headers.read(payload)
	if err != nil {
		p.t.Fatal(err)
	}
	if f.status != "200" && f.status != "" {
		if body, text := p.next(); body.kind != frameData || !body.has(flagEndStream) || string(text) != notGRPC {
			p.t.Errorf("got %+v %q, want the body of a refusal", body, text)
		}
		return "HTTP " + f.status
	}
	return f.code
}

// block returns a header block as another implementation encodes it.
func block(fields ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(fields); i += 2 {
		if err := e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

var (
	hello = append([]byte(preface), appendFrame(nil, frameSettings, 0, 0, nil)...)
	head  = block(":method", "POST", ":scheme", "http", ":path", "/s/Echo", ":authority", "x", "content-type", contentType, "te", "trailers")
)

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func setting(id settingID, value uint32) []byte {
	return appendFrame(nil, frameSettings, 0, 0, appendSetting(nil, id, value))
}

// A breach of the protocol ends the connection with a GOAWAY that has the right code.
func TestBreaches(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo})
	open := appendHeaders(nil, 1, head, false)
	for name, tt := range map[string]struct {
		frames []byte
		want   errCode
	}{
		"settings on a stream":           {appendFrame(nil, frameSettings, 0, 1, nil), codeProtocol},
		"half a setting":                 {appendFrame(nil, frameSettings, 0, 0, make([]byte, 5)), codeFrameSize},
		"acknowledgement with payload":   {appendFrame(nil, frameSettings, flagAck, 0, make([]byte, 6)), codeFrameSize},
		"window too large":               {setting(settingInitialWindow, 1<<31), codeFlowControl},
		"frames too small":               {setting(settingMaxFrame, 100), codeProtocol},
		"frames too large":               {setting(settingMaxFrame, 1<<24), codeProtocol},
		"push setting of 2":              {setting(settingEnablePush, 2), codeProtocol},
		"a push":                         {appendFrame(nil, framePushPromise, 0, 1, make([]byte, 4)), codeProtocol},
		"a frame too large":              {appendFrameHeader(nil, ownMaxFrame+1, frameData, 0, 1), codeFrameSize},
		"headers too large":              {appendFrameHeader(nil, maxBlock+1, frameHeaders, 0, 1), codeEnhanceYourCalm},
		"ping of another size":           {appendFrame(nil, framePing, 0, 0, make([]byte, 7)), codeFrameSize},
		"ping on a stream":               {appendFrame(nil, framePing, 0, 1, make([]byte, 8)), codeProtocol},
		"reset of idle stream":           {appendUint32Frame(nil, frameReset, 5, 0), codeProtocol},
		"reset of the connection":        {appendUint32Frame(nil, frameReset, 0, 0), codeProtocol},
		"window of idle stream":          {appendUint32Frame(nil, frameWindowUpdate, 5, 1), codeProtocol},
		"window increment 0":             {appendUint32Frame(nil, frameWindowUpdate, 0, 0), codeProtocol},
		"connection window too large":    {appendUint32Frame(nil, frameWindowUpdate, 0, maxWindow), codeFlowControl},
		"data of idle stream":            {appendFrame(nil, frameData, 0, 5, []byte("x")), codeProtocol},
		"data on the connection":         {appendFrame(nil, frameData, 0, 0, []byte("x")), codeProtocol},
		"padding beyond the data":        {cat(open, appendFrame(nil, frameData, flagPadded, 1, []byte{1})), codeProtocol},
		"padding without length":         {cat(open, appendFrame(nil, frameData, flagPadded, 1, nil)), codeProtocol},
		"padded headers":                 {appendFrame(nil, frameHeaders, flagPadded|flagEndHeaders, 1, []byte{9}), codeProtocol},
		"headers without priority":       {appendFrame(nil, frameHeaders, flagPriority|flagEndHeaders, 1, []byte{9}), codeFrameSize},
		"headers on the connection":      {appendHeaders(nil, 0, head, false), codeProtocol},
		"even stream":                    {appendHeaders(nil, 2, head, false), codeProtocol},
		"interrupted headers":            {cat(appendFrame(nil, frameHeaders, 0, 1, head), appendFrame(nil, framePing, 0, 0, make([]byte, 8))), codeProtocol},
		"continuation on another stream": {cat(appendFrame(nil, frameHeaders, 0, 1, head[:9]), appendFrame(nil, frameContinuation, flagEndHeaders, 3, head[9:])), codeProtocol},
		"continuation without headers":   {appendFrame(nil, frameContinuation, flagEndHeaders, 1, head), codeProtocol},
		"headers without end":            {cat(appendFrame(nil, frameHeaders, 0, 1, head), appendFrame(nil, frameContinuation, 0, 1, nil)), codeEnhanceYourCalm},
		"bad compression":                {appendHeaders(nil, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, false), codeCompression},
		"truncated headers":              {appendHeaders(nil, 1, head[:len(head)-1], false), codeCompression},
		"short GOAWAY":                   {appendFrame(nil, frameGoAway, 0, 0, make([]byte, 7)), codeFrameSize},
	} {
		p := newPeer(t, address)
		p.write(cat(hello, tt.frames))
		for {
			h, payload, err := p.read()
			if err != nil {
				t.Errorf("%s: the connection ended with %v and not with GOAWAY", name, err)
				break
			}
			if h.kind == frameGoAway {
				if got := errCode(binary.BigEndian.Uint32(payload[4:])); got != tt.want {
					t.Errorf("%s: got code %d (%s), want %d", name, got, payload[8:], tt.want)
				}
				break
			}
		}
		if _, err := io.Copy(io.Discard, p.nc); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: the connection stays open: %v", name, err)
		}
	}
}

func TestFirstFrame(t *testing.T) {
	_, address := serve(t, nil)
	for name, start := range map[string][]byte{
		"another protocol": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"no settings":      cat([]byte(preface), appendFrame(nil, framePing, 0, 0, make([]byte, 8))),
		"acknowledgement":  cat([]byte(preface), appendFrame(nil, frameSettings, flagAck, 0, nil)),
	} {
		p := newPeer(t, address)
		p.write(start)
		if _, err := io.Copy(io.Discard, p.nc); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An invalid call fails, and the connection remains usable.
func TestBadCalls(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo})
	post := []string{":method", "POST", ":scheme", "http", ":path", "/s/Echo"}
	with := func(fields ...string) []byte { return block(append(slices.Clip(post), fields...)...) }
	empty := make([]byte, prefixSize)
	for name, tt := range map[string]struct {
		head, data []byte
		want       string
	}{
		"another verb":      {block(":method", "GET", ":scheme", "http", ":path", "/s/Echo", "content-type", contentType), empty, "HTTP 405"},
		"another content":   {with("content-type", "text/html"), empty, "HTTP 415"},
		"no content type":   {with(), empty, "HTTP 415"},
		"another method":    {block(":method", "POST", ":scheme", "http", ":path", "/s/Other", "content-type", contentType), empty, "12"},
		"no path":           {block(":method", "POST", ":scheme", "http", "content-type", contentType), empty, "RST_STREAM 1"},
		"compression":       {with("content-type", contentType, "grpc-encoding", "snappy"), empty, "12"},
		"timeout":           {with("content-type", contentType, "grpc-timeout", "1x"), empty, "13"},
		"long timeout":      {with("content-type", contentType, "grpc-timeout", "123456789S"), empty, "13"},
		"metadata":          {with("content-type", contentType, "x", strings.Repeat("y", ownMaxHeaderList)), empty, "8"},
		"no message":        {head, nil, "13"},
		"half a prefix":     {head, empty[:3], "13"},
		"half a message":    {head, []byte{0, 0, 0, 0, 5, 1, 2}, "13"},
		"two messages":      {head, make([]byte, 2*prefixSize), "13"},
		"too large":         {head, []byte{0, 0xff, 0xff, 0xff, 0xff, 1}, "8"},
		"unknown flags":     {head, []byte{2, 0, 0, 0, 0}, "13"},
		"compressed how?":   {head, []byte{1, 0, 0, 0, 1, 'x'}, "13"},
		"badly compressed":  {with("content-type", contentType, "grpc-encoding", "gzip"), []byte{1, 0, 0, 0, 1, 'x'}, "13"},
		"badly compressed2": {with("content-type", contentType, "grpc-encoding", "deflate"), []byte{1, 0, 0, 0, 1, 'x'}, "13"},
	} {
		p := newPeer(t, address)
		p.write(cat(hello, appendHeaders(nil, 1, tt.head, false), appendFrame(nil, frameData, flagEndStream, 1, tt.data)))
		if got := p.status(); got != tt.want {
			t.Errorf("%s: got status %s, want %s", name, got, tt.want)
		}
		p.write(cat(appendHeaders(nil, 3, head, false), appendFrame(nil, frameData, flagEndStream, 3, empty)))
		for {
			h, _ := p.next()
			if h.stream == 3 && h.has(flagEndStream) {
				break
			}
		}
	}
}

// Padding, priorities, continuations, unknown frame types and partial reads do not change the
// message.
func TestOddFraming(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo})
	p := newPeer(t, address)
	message := append([]byte{0, 0, 0, 0, 4}, "abcd"...)
	frames := cat(hello,
		appendFrame(nil, frameHeaders, flagPadded|flagPriority, 1, cat([]byte{2}, make([]byte, 5), head[:7], make([]byte, 2))),
		appendFrame(nil, frameContinuation, 0, 1, head[7:8]),
		appendFrame(nil, frameContinuation, flagEndHeaders, 1, head[8:]),
		appendFrame(nil, framePriority, 0, 9, make([]byte, 5)),
		appendFrame(nil, 0x42, 0xff, 1, make([]byte, 100)),
		appendFrame(nil, frameData, 0, 1, nil))
	for _, b := range message {
		frames = append(frames, appendFrame(nil, frameData, flagPadded, 1, []byte{3, b, 0, 0, 0})...)
	}
	frames = append(frames, appendHeaders(nil, 1, block("x", "y"), true)...) // trailers
	go func() {
		for len(frames) > 0 { // every frame is cut somewhere
			n := min(11, len(frames))
			if _, err := p.nc.Write(frames[:n]); err != nil {
				return
			}
			frames = frames[n:]
		}
	}()
	if h, _ := p.next(); h.kind != frameHeaders || h.stream != 1 {
		t.Fatalf("got %+v", h)
	}
	if h, got := p.next(); h.kind != frameData || !bytes.Equal(got, message) {
		t.Fatalf("got %+v with %q", h, got)
	}
}

// A server sends no more than the windows allow, and continues after WINDOW_UPDATE.
func TestWindows(t *testing.T) {
	big := pattern(100_000)
	_, address := serve(t, map[string]func(*Call){"/s/Echo": func(c *Call) { _ = c.Reply(Outcome{Data: [][]byte{big[:1], big[1:]}}) }})
	p := newPeer(t, address)
	p.write(cat([]byte(preface), setting(settingInitialWindow, 10), appendHeaders(nil, 1, head, false),
		appendFrame(nil, frameData, flagEndStream, 1, make([]byte, prefixSize))))
	if h, _ := p.next(); h.kind != frameHeaders {
		t.Fatalf("got %+v", h)
	}
	var got []byte
	data := func(want int) {
		t.Helper()
		for want > 0 {
			h, payload := p.next()
			if h.kind != frameData || h.length > want {
				t.Fatalf("got %+v, want %d bytes of data", h, want)
			}
			got, want = append(got, payload...), want-h.length
		}
	}
	data(10)
	p.write(appendUint32Frame(nil, frameWindowUpdate, 1, 7))
	data(7)
	p.write(setting(settingInitialWindow, 30)) // applies to open streams, too
	data(20)
	p.write(appendUint32Frame(nil, frameWindowUpdate, 1, 1<<20))
	data(firstWindow - 37) // the window of the connection
	p.write(appendUint32Frame(nil, frameWindowUpdate, 0, 1<<20))
	data(len(big) + prefixSize - firstWindow)
	if !bytes.Equal(got[prefixSize:], big) {
		t.Error("the message was changed")
	}
	if status := p.status(); status != "0" {
		t.Errorf("got status %s", status)
	}
}

// A response that waits for a window ends with its stream, and later responses are sent.
func TestResetWhileSending(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": func(c *Call) {
		_ = c.Reply(Outcome{Data: [][]byte{make([]byte, 50_000*(1-len(request(c))))}})
	}})
	p := newPeer(t, address)
	p.write(cat([]byte(preface), setting(settingInitialWindow, 10), appendHeaders(nil, 1, head, false),
		appendFrame(nil, frameData, flagEndStream, 1, make([]byte, prefixSize))))
	p.next() // headers
	p.next() // data
	p.write(cat(appendUint32Frame(nil, frameReset, 1, uint32(codeCancel)), appendHeaders(nil, 3, head, false),
		appendFrame(nil, frameData, flagEndStream, 3, []byte{0, 0, 0, 0, 1, 'x'})))
	for {
		if h, _ := p.next(); h.stream == 3 && h.has(flagEndStream) {
			return
		}
	}
}

// Peers that read no answers, or reset each call that they open, do not disturb other connections.
func TestFloods(t *testing.T) {
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo, "/s/Wait": func(c *Call) {
		<-c.Context().Done()
		_ = c.Reply(failure(codeCancelled, ""))
	}})
	wait := block(":method", "POST", ":scheme", "http", ":path", "/s/Wait", "content-type", contentType)
	ping := bytes.Repeat(appendFrame(nil, framePing, 0, 0, make([]byte, 8)), 1000)
	for name, flood := range map[string]func(i int) []byte{
		"pings":    func(int) []byte { return ping },
		"settings": func(int) []byte { return bytes.Repeat(setting(settingInitialWindow, 5), 1000) },
		"resets": func(i int) []byte {
			id := uint32(2*i + 1)
			return cat(appendHeaders(nil, id, wait, false), appendFrame(nil, frameData, flagEndStream, id, make([]byte, prefixSize)),
				appendUint32Frame(nil, frameReset, id, uint32(codeCancel)))
		},
	} {
		p := newPeer(t, address)
		p.write(hello)
		for i := range 3000 {
			if err := p.nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, err := p.nc.Write(flood(i)); err != nil {
				break
			}
		}
		other := newPeer(t, address)
		other.write(cat(hello, appendHeaders(nil, 1, head, false), appendFrame(nil, frameData, flagEndStream, 1, make([]byte, prefixSize))))
		if h, _ := other.next(); h.kind != frameHeaders {
			t.Errorf("%s: got %+v", name, h)
		}
	}
}

// FuzzServer sends arbitrary bytes after the preface. The server must neither panic nor hang.
func FuzzServer(f *testing.F) {
	f.Add(cat(appendHeaders(nil, 1, head, false), appendFrame(nil, frameData, flagEndStream, 1, make([]byte, prefixSize))))
	f.Add(cat(setting(settingInitialWindow, 5), appendUint32Frame(nil, frameWindowUpdate, 0, 1), appendFrame(nil, framePing, 0, 0, make([]byte, 8))))
	f.Add(cat(appendFrame(nil, frameHeaders, 0, 1, head), appendFrame(nil, frameContinuation, flagEndHeaders, 1, nil)))
	f.Fuzz(func(t *testing.T, frames []byte) {
		s := NewServer(slog.New(slog.DiscardHandler))
		s.Handle("/s/Echo", Method{NewBody: chunks, Serve: echo, Short: true})
		here, there := net.Pipe()
		s.accept(there)
		go io.Copy(io.Discard, here) //nolint:errcheck // ends with the pipe
		_, _ = here.Write(hello)
		_, _ = here.Write(frames)
		here.Close()
		s.Close()
	})
}
