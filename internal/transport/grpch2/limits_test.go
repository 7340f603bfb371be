package grpch2

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// limits are those of the tests, with times that no test waits for: their clock is fake.
var limits = Limits{
	Handshake: 10 * time.Second, Frame: 30 * time.Second, Idle: 10 * time.Minute, Request: time.Minute, Response: time.Minute,
	Streams: 3, TaskStreams: 5, RequestSize: 4 << 20, GraphSize: 2 << 20, Decompression: 100,
}

// limited returns a server with limits, and a function that connects to it over a pipe. The server
// is closed at the end of the test.
func limited(t *testing.T) (*Server, func() *peer) {
	s := NewServer(slog.New(slog.DiscardHandler))
	s.Limits = limits
	wait := func(c *Call) {
		<-c.Context().Done()
		_ = c.Reply(failure(codeCancelled, ""))
	}
	big := func(c *Call) { _ = c.Reply(Outcome{Data: [][]byte{make([]byte, 1<<20)}}) }
	s.Handle("/s/Echo", Method{NewBody: chunks, Serve: echo, Audience: Clients})
	s.Handle("/s/Graph", Method{NewBody: chunks, Serve: echo, Audience: GraphClients})
	s.Handle("/s/Wait", Method{NewBody: chunks, Serve: wait})
	s.Handle("/s/Task", Method{NewBody: chunks, Serve: wait, Audience: Tasks})
	s.Handle("/s/Big", Method{NewBody: chunks, Serve: big})
	t.Cleanup(s.Close)
	return s, func() *peer {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close() })
		s.accept(there)
		return &peer{t, here, newInput(here), newFieldReader()}
	}
}

// callHead returns the header block of a call.
func callHead(path string, fields ...string) []byte {
	return block(append([]string{":method", "POST", ":scheme", "http", ":path", path, "content-type", contentType}, fields...)...)
}

// await reads frames in the background, and returns the first of a kind with its payload, and when
// it came. The header is zero if the connection ends before.
func (p *peer) await(kind frameType) (h frameHeader, payload string, after time.Duration) {
	start := time.Now()
	for {
		h, b, err := p.read()
		if err != nil {
			return frameHeader{}, "", time.Since(start)
		}
		if h.kind == kind {
			return h, string(b), time.Since(start)
		}
	}
}

// ended expects the end of the connection with a GOAWAY that names a flag, at about a time.
func (p *peer) ended(name string, flag Limit, at time.Duration) {
	p.t.Helper()
	h, payload, after := p.await(frameGoAway)
	if h.kind != frameGoAway || !strings.Contains(payload, flag.Flag()) {
		p.t.Errorf("%s: got %+v %q, want GOAWAY that names %s", name, h, payload, flag.Flag())
	}
	if after < at || after > at+at/2 {
		p.t.Errorf("%s: the connection ended after %v, want %v", name, after, at)
	}
	if _, err := io.Copy(io.Discard, p.nc); err != nil {
		p.t.Errorf("%s: %v", name, err)
	}
}

// Peers that are slow or silent are cut off.
func TestSlowPeers(t *testing.T) {
	long := appendFrame(nil, frameHeaders, 0, 1, callHead("/s/Echo"))
	for name, tt := range map[string]struct {
		frames []byte
		limit  Limit
		at     time.Duration
	}{
		"no preface":             {nil, LimitHandshake, limits.Handshake},
		"half a preface":         {hello[:9], LimitHandshake, limits.Handshake},
		"no settings":            {[]byte(preface), LimitHandshake, limits.Handshake},
		"half of the settings":   {append([]byte(preface), appendFrameHeader(nil, 6, frameSettings, 0, 0)...), LimitHandshake, limits.Handshake},
		"part of a frame header": {cat(hello, []byte{0, 0}), LimitFrame, limits.Frame},
		"half a frame":           {cat(hello, appendFrameHeader(nil, 8, framePing, 0, 0), []byte{1}), LimitFrame, limits.Frame},
		"half a header block":    {cat(hello, long), LimitFrame, limits.Frame},
		"half a frame of data":   {cat(hello, appendHeaders(nil, 1, callHead("/s/Echo"), false), appendFrameHeader(nil, 9, frameData, 0, 1)), LimitFrame, limits.Frame},
		"no stream":              {hello, LimitIdle, limits.Idle},
		"no stream after a call": {cat(hello, appendHeaders(nil, 1, callHead("/s/Echo"), true)), LimitIdle, limits.Idle},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, connect := limited(t)
			p := connect()
			go p.nc.Write(tt.frames) //nolint:errcheck // ends with the connection
			p.ended(name, tt.limit, tt.at)
			synctest.Wait()
			if n := s.Limited()[tt.limit.String()]; n != 1 {
				t.Errorf("%s: counted %d times", name, n)
			}
		})
	}
}

// Bytes that keep coming are not cut off, and neither are calls that wait for their response.
func TestPatientPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, connect := limited(t)
		p := connect()
		go func() {
			n := 20
			_, _ = p.nc.Write(cat(hello, appendHeaders(nil, 1, callHead("/s/Wait"), false), appendFrame(nil, frameData, flagEndStream, 1, make([]byte, prefixSize))))
			_, _ = p.nc.Write(cat(appendHeaders(nil, 3, callHead("/s/Echo"), false), appendFrameHeader(nil, prefixSize+n, frameData, flagEndStream, 3), []byte{0, 0, 0, 0, byte(n)}))
			for range n { // 400 s altogether
				<-time.After(20 * time.Second) // of the fake clock
				_, _ = p.nc.Write([]byte{'x'})
			}
		}()
		h, payload, after := p.await(frameData)
		if h.stream != 3 || !strings.HasSuffix(payload, "xxx") || after != 400*time.Second {
			t.Errorf("got %+v %q after %v", h, payload, after)
		}
	})
}

// A connection of a task may be idle.
func TestIdleTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, connect := limited(t)
		p := connect()
		go p.nc.Write(cat(hello, appendHeaders(nil, 1, callHead("/s/Task"), false), appendUint32Frame(nil, frameReset, 1, uint32(codeCancel)))) //nolint:errcheck // see below
		go func() {
			<-time.After(24 * time.Hour) // of the fake clock
			_, _ = p.nc.Write(appendFrame(nil, framePing, 0, 0, make([]byte, 8)))
		}()
		if h, _, _ := p.await(framePing); h.kind != framePing {
			t.Error("the connection was closed")
		}
	})
}

// A request whose rest does not arrive ends with an error, and the connection goes on.
func TestSlowRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, connect := limited(t)
		p := connect()
		go p.nc.Write(cat(hello, appendHeaders(nil, 1, callHead("/s/Echo"), false), appendFrame(nil, frameData, 0, 1, []byte{0, 0, 0, 0, 9, 1}))) //nolint:errcheck // see below
		h, payload, after := p.await(frameHeaders)
		f, err := newFieldReader().read([]byte(payload))
		if err != nil || h.stream != 1 || f.code != "8" || !strings.Contains(f.text, "1m0s, set by --request-timeout") {
			t.Errorf("got %+v %+v %v", h, f, err)
		}
		if after < limits.Request || after > limits.Request*3/2 {
			t.Errorf("the request ended after %v", after)
		}
		if h, payload, _ := p.await(frameReset); h.stream != 1 || binary.BigEndian.Uint32([]byte(payload)) != uint32(codeEnhanceYourCalm) {
			t.Errorf("got %+v %q", h, payload)
		}
		go p.nc.Write(cat(appendHeaders(nil, 3, callHead("/s/Echo"), false), appendFrame(nil, frameData, flagEndStream, 3, make([]byte, prefixSize)))) //nolint:errcheck // see below
		if h, _, _ := p.await(frameData); h.stream != 3 {
			t.Error("the next call was not answered")
		}
		if n := s.Limited()["request"]; n != 1 {
			t.Errorf("counted %d times", n)
		}
	})
}

// A response that the client does not take is dropped after the time-out, or at the deadline of the
// call.
func TestSlowReader(t *testing.T) {
	for name, tt := range map[string]struct {
		fields []string
		at     time.Duration
	}{
		"time-out": {nil, limits.Response},
		"deadline": {[]string{"grpc-timeout", "20S"}, 20 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, connect := limited(t)
			p := connect()
			go p.nc.Write(cat([]byte(preface), setting(settingInitialWindow, 10), appendHeaders(nil, 1, callHead("/s/Big", tt.fields...), false), //nolint:errcheck // see below
				appendFrame(nil, frameData, flagEndStream, 1, make([]byte, prefixSize))))
			h, _, after := p.await(frameReset)
			if h.stream != 1 || after < tt.at || after > tt.at+limits.Frame/2 {
				t.Errorf("%s: got %+v after %v", name, h, after)
			}
		})
	}
}

// A client that does not read its socket is cut off.
func TestNoReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, connect := limited(t)
		p := connect()
		if _, err := p.nc.Write(hello); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()                       // the server writes its settings
		<-time.After(limits.Response * 3 / 2) // of the fake clock
		synctest.Wait()
		if n := s.Limited()["response"]; n != 1 {
			t.Errorf("counted %d times", n)
		}
		if _, err := io.Copy(io.Discard, p.nc); err != nil {
			t.Error(err)
		}
	})
}

// A client may have as many streams as the server announces. A task may have more.
func TestStreamLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, connect := limited(t)
		p := connect()
		waits := func(from, n int) (b []byte) {
			for i := range n {
				b = appendHeaders(b, uint32(from+2*i), callHead("/s/Wait"), false)
			}
			return b
		}
		go p.nc.Write(cat(hello, waits(1, 4))) //nolint:errcheck // see below
		if _, payload, _ := p.await(frameSettings); !strings.Contains(payload, string(appendSetting(nil, settingMaxStreams, 3))) {
			t.Errorf("got settings %q", payload)
		}
		if h, payload, _ := p.await(frameReset); h.stream != 7 || binary.BigEndian.Uint32([]byte(payload)) != uint32(codeRefused) {
			t.Errorf("got %+v %q", h, payload)
		}
		go p.nc.Write(cat(appendUint32Frame(nil, frameReset, 1, uint32(codeCancel)), appendHeaders(nil, 9, callHead("/s/Task"), false), waits(11, 3))) //nolint:errcheck // see below
		if _, payload, _ := p.await(frameSettings); payload != string(appendSetting(nil, settingMaxStreams, 5)) {
			t.Errorf("got settings %q", payload)
		}
		if h, _, _ := p.await(frameReset); h.stream != 15 {
			t.Errorf("got %+v", h)
		}
		if n := s.Limited()["streams"]; n != 2 {
			t.Errorf("counted %d times", n)
		}
	})
}

// Requests and decompressed requests beyond their limits are answered with an error that names it.
func TestRequestSizes(t *testing.T) {
	zip := func(n int) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return prefixed(compressFlag, [][]byte{b.Bytes()})[1]
	}
	for name, tt := range map[string]struct {
		path   string
		size   int
		packed []byte
		want   string
	}{
		"largest":          {"/s/Echo", 4 << 20, nil, ""},
		"too large":        {"/s/Echo", 4<<20 + 1, nil, "Received message larger than max (4194305 vs. 4194304, set by --max-request-size)"},
		"too large graph":  {"/s/Graph", 2<<20 + 1, nil, "Received message larger than max (2097153 vs. 2097152, set by --max-graph-size)"},
		"of a task":        {"/s/Wait", 4<<20 + 1, nil, ""},
		"small bomb":       {"/s/Echo", 0, zip(1 << 20), ""},
		"bomb":             {"/s/Echo", 0, zip(3 << 20), "set by --max-decompression)"},
		"compressed graph": {"/s/Graph", 0, zip(5 << 20), "set by --max-"},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, connect := limited(t)
			p := connect()
			message, flag := tt.packed, byte(0)
			if message == nil {
				message = make([]byte, min(tt.size, 10)) // the rest is not sent
			} else {
				flag, tt.size = compressFlag, len(message)
			}
			head := callHead(tt.path, "grpc-encoding", "gzip")
			data := cat([]byte{flag}, binary.BigEndian.AppendUint32(nil, uint32(tt.size)), message)
			go p.nc.Write(cat(hello, appendHeaders(nil, 1, head, false), appendFrame(nil, frameData, 0, 1, data), //nolint:errcheck // see below
				appendFrame(nil, framePing, 0, 0, make([]byte, 8))))
			got := ""
			for {
				h, payload, err := p.read()
				if err != nil || h.kind == framePing && tt.packed == nil || h.kind == frameData {
					break
				}
				if h.kind == frameHeaders {
					if f, err := p.headers.read(payload); err == nil && f.code == "8" {
						got = f.text
						break
					}
				}
			}
			if !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("%s: got %q, want %q", name, got, tt.want)
			}
		})
	}
}

// from is a connection whose client has an IP address.
type from struct {
	net.Conn
	ip string
}

func (c from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.ip), 1))
}

// A client whose certificate names it has its own limit. Tasks have none.
func TestConnectionsOfName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, connect := limited(t)
		s.Limits.NameConnections = 2
		name := "client a"
		s.NameOf = func(net.Conn) string { return name }
		admitted := func() *peer {
			t.Helper()
			p := connect()
			go p.nc.Write(hello) //nolint:errcheck // the next line finds out
			if h, _, _ := p.await(frameSettings); h.kind != frameSettings {
				t.Error("a connection was refused")
			}
			synctest.Wait()
			return p
		}
		first := admitted()
		admitted()
		third := connect()
		go third.nc.Write(hello) //nolint:errcheck // the server refuses it
		third.ended("third of a client", LimitNameConnections, 0)
		name = "client b"
		admitted()
		name = "" // a task
		for range 3 {
			admitted()
		}
		name = "client a"
		first.nc.Close()
		synctest.Wait()
		admitted()
		if n := s.Limited()["principal_connections"]; n != 1 {
			t.Errorf("counted %d times, want 1", n)
		}
	})
}

// Clients are refused at a limit on connections. Tasks get in.
func TestConnectionLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := limited(t)
		s.Limits.Connections, s.Limits.AddressConnections = 4, 2
		s.IsTaskAddress = func(ip netip.Addr) bool { return ip == netip.MustParseAddr("10.0.0.9") }
		connect := func(ip string) *peer {
			here, there := net.Pipe()
			t.Cleanup(func() { here.Close() })
			s.accept(from{there, ip})
			p := &peer{t, here, newInput(here), newFieldReader()}
			go here.Write(hello) //nolint:errcheck // see below
			return p
		}
		settle := func(p *peer) {
			t.Helper()
			if h, _, _ := p.await(frameSettings); h.kind != frameSettings {
				t.Error("a connection was refused")
			}
			synctest.Wait()
		}
		first := connect("10.0.0.1")
		settle(first)
		go first.nc.Write(appendHeaders(nil, 1, callHead("/s/Wait"), true)) //nolint:errcheck // keeps it from being evicted
		settle(connect("10.0.0.1"))
		connect("10.0.0.1").ended("third of an address", LimitAddressConnections, 0)
		idle := connect("10.0.0.2")
		settle(idle)
		task := connect("10.0.0.9")
		settle(task)
		go task.nc.Write(appendHeaders(nil, 1, callHead("/s/Task"), false)) //nolint:errcheck // see below
		synctest.Wait()
		connect("10.0.0.3").ended("fifth", LimitConnections, 0)
		for range 3 {
			settle(connect("10.0.0.9"))
		}
		synctest.Wait()
		if n := s.Limited()["address_connections"]; n < 1 {
			t.Errorf("counted %d times", n)
		}
		go idle.nc.Write(appendFrame(nil, framePing, 0, 0, make([]byte, 8))) //nolint:errcheck // the connection may have ended
		if h, payload, _ := idle.await(frameGoAway); h.kind != frameGoAway || !strings.Contains(payload, "--max-connections") {
			t.Errorf("the idle connection of a client was not ended for a task: %+v %q", h, payload)
		}
		go task.nc.Write(appendFrame(nil, framePing, 0, 0, make([]byte, 8))) //nolint:errcheck // see below
		if h, _, _ := task.await(framePing); h.kind != framePing {
			t.Error("the connection of a task was ended")
		}
	})
}
