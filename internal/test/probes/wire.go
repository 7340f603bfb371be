package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// Types and flags of HTTP/2 frames.
const (
	frameData         = 0
	frameHeaders      = 1
	framePriority     = 2
	frameReset        = 3
	frameSettings     = 4
	framePushPromise  = 5
	framePing         = 6
	frameWindowUpdate = 8
	frameContinuation = 9

	flagEndStream  = 1
	flagEndHeaders = 4
)

// wire is a raw connection to a server.
type wire struct {
	net.Conn
	out bytes.Buffer // frames to send
}

// wire opens a connection of HTTP/2. What the server sends is dropped.
func (c *client) wire() (*wire, error) {
	conn, err := net.DialTimeout("tcp", c.address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		conn.Close()
		return nil, err
	}
	w := &wire{Conn: conn}
	w.out.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	w.frame(frameSettings, 0, 0, nil)
	return w, nil
}

// frame appends a frame.
func (w *wire) frame(kind, flags byte, stream uint32, payload []byte) {
	w.frameOfLength(len(payload), kind, flags, stream, payload)
}

// frameOfLength appends a frame whose header has another length than the payload.
func (w *wire) frameOfLength(length int, kind, flags byte, stream uint32, payload []byte) {
	head := [9]byte{byte(length >> 16), byte(length >> 8), byte(length), kind, flags}
	binary.BigEndian.PutUint32(head[5:], stream)
	w.out.Write(head[:])
	w.out.Write(payload)
}

// headers is the header block of a call.
func headers(path string, more ...string) []byte {
	fields := append([]string{":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", "content-type", "application/grpc", "te", "trailers"}, more...)
	var block []byte
	for i := 0; i < len(fields); i += 2 {
		block = append(block, 0) // literal without indexing, new name
		for _, text := range fields[i : i+2] {
			block = append(appendPrefixed(block, 0, 7, len(text)), text...)
		}
	}
	return block
}

// appendPrefixed appends an integer of HPACK.
func appendPrefixed(b []byte, first byte, bits uint, n int) []byte {
	most := 1<<bits - 1
	if n < most {
		return append(b, first|byte(n))
	}
	b, n = append(b, first|byte(most)), n-most
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// finish sends the frames, and reads until the server closes the connection or for a second. A
// server that has closed the connection is no error.
func (w *wire) finish() {
	defer w.Close()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, w.Conn) // until the deadline
	}()
	_, _ = w.Write(w.out.Bytes()) // the server may close the connection
	_ = w.SetReadDeadline(time.Now().Add(time.Second))
	<-drained
}

// frames sends what build appends after the handshake.
func frames(build func(w *wire)) func(c *client) error {
	return func(c *client) error {
		w, err := c.wire()
		if err != nil {
			return err
		}
		build(w)
		w.finish()
		return c.alive()
	}
}

// anyMethod is the path of a method.
const anyMethod = "/tensorflow.MasterService/ListDevices"

var wireProbes = []probe{
	{name: "h2-rapid-reset", run: frames(func(w *wire) {
		for id := uint32(1); id < 40_000; id += 2 {
			w.frame(frameHeaders, flagEndHeaders, id, headers(anyMethod))
			w.frame(frameReset, 0, id, []byte{0, 0, 0, 8})
		}
	})},
	{name: "h2-ping-flood", run: frames(func(w *wire) {
		for range 200_000 {
			w.frame(framePing, 0, 0, make([]byte, 8))
		}
	})},
	{name: "h2-settings-flood", run: frames(func(w *wire) {
		for range 200_000 {
			w.frame(frameSettings, 0, 0, []byte{0, 4, 0, 1, 0, 0})
		}
	})},
	{name: "h2-continuation-flood", run: frames(func(w *wire) {
		w.frame(frameHeaders, 0, 1, headers(anyMethod))
		for range 2000 {
			w.frame(frameContinuation, 0, 1, headers(strings.Repeat("x", 8000)))
		}
	})},
	{name: "h2-empty-continuations", run: frames(func(w *wire) {
		w.frame(frameHeaders, 0, 1, headers(anyMethod))
		for range 500_000 {
			w.frame(frameContinuation, 0, 1, nil)
		}
	})},
	{name: "h2-hpack-bomb", run: frames(func(w *wire) {
		name := []byte{0x40, 1, 'a'} // a literal that enters the table
		name = append(appendPrefixed(name, 0, 7, 3900), bytes.Repeat([]byte{'b'}, 3900)...)
		for id := uint32(1); id < 200; id += 2 {
			w.frame(frameHeaders, flagEndHeaders, id, append(headers(anyMethod), append(name, bytes.Repeat([]byte{0xbe}, 8000)...)...))
		}
	})},
	{name: "h2-table-size", run: frames(func(w *wire) {
		w.frame(frameHeaders, flagEndHeaders, 1, appendPrefixed(nil, 0x20, 5, 1<<30))
	})},
	{name: "h2-window-overflow", run: frames(func(w *wire) {
		w.frame(frameHeaders, flagEndHeaders, 1, headers(anyMethod))
		for range 2 {
			w.frame(frameWindowUpdate, 0, 1, []byte{0x7f, 0xff, 0xff, 0xff})
			w.frame(frameWindowUpdate, 0, 0, []byte{0x7f, 0xff, 0xff, 0xff})
		}
	})},
	{name: "h2-zero-window", run: frames(func(w *wire) {
		w.frame(frameSettings, 0, 0, []byte{0, 4, 0, 0, 0, 0})
		for id := uint32(1); id < 1000; id += 2 {
			w.frame(frameHeaders, flagEndHeaders, id, headers(anyMethod))
			w.frame(frameData, flagEndStream, id, make([]byte, 5))
		}
	})},
	{name: "h2-large-frame", run: frames(func(w *wire) { w.frameOfLength(1<<24-1, frameData, 0, 1, make([]byte, 1<<20)) })},
	{name: "h2-half-frame", run: frames(func(w *wire) { w.frameOfLength(8000, frameHeaders, 0, 1, []byte{0}) })},
	{name: "h2-data-without-stream", run: frames(func(w *wire) { w.frame(frameData, 0, 0, make([]byte, 100)) })},
	{name: "h2-even-stream", run: frames(func(w *wire) { w.frame(frameHeaders, flagEndHeaders, 2, headers(anyMethod)) })},
	{name: "h2-self-dependency", run: frames(func(w *wire) { w.frame(framePriority, 0, 1, []byte{0, 0, 0, 1, 9}) })},
	{name: "h2-push-promise", run: frames(func(w *wire) { w.frame(framePushPromise, flagEndHeaders, 1, make([]byte, 8)) })},
	{name: "h2-unknown-frames", run: frames(func(w *wire) {
		for range 100_000 {
			w.frame(0x7f, 0xff, 7, make([]byte, 20))
		}
	})},
	{name: "h2-empty-data", run: frames(func(w *wire) {
		w.frame(frameHeaders, flagEndHeaders, 1, headers(anyMethod))
		for range 500_000 {
			w.frame(frameData, 0, 1, nil)
		}
	})},
	{name: "h2-many-streams", run: frames(func(w *wire) {
		for id := uint32(1); id < 20_000; id += 2 {
			w.frame(frameHeaders, flagEndHeaders, id, headers(anyMethod))
		}
	})},
	{name: "h2-many-fields", run: frames(func(w *wire) {
		w.frame(frameHeaders, flagEndHeaders, 1, append(headers(anyMethod), bytes.Repeat(headers("")[:1:1], 8000)...))
	})},
	{name: "h2-smuggled-fields", run: frames(func(w *wire) {
		w.frame(frameHeaders, flagEndHeaders, 1, headers(anyMethod, "transfer-encoding", "chunked", "connection", "close", "content-length", "-1"))
		w.frame(frameHeaders, flagEndHeaders, 3, headers(anyMethod, ":path", "/twice"))
		w.frame(frameHeaders, flagEndHeaders, 5, headers("/\x00\r\n"))
	})},
	{name: "h2-garbage", run: func(c *client) error {
		for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01", strings.Repeat("\xff", 1<<20), "PRI * HTTP/2.0\r\n"} {
			conn, err := net.DialTimeout("tcp", c.address, 5*time.Second)
			if err != nil {
				return err
			}
			(&wire{Conn: conn, out: *bytes.NewBufferString(text)}).finish()
		}
		return c.alive()
	}},
	{name: "h2-many-connections", run: func(c *client) error {
		for range 1500 {
			conn, err := net.DialTimeout("tcp", c.address, 5*time.Second)
			if err != nil {
				return err
			}
			defer conn.Close()
		}
		return c.alive()
	}},
	{name: "grpc-length", run: grpcMessage(nil, []byte{0, 0xff, 0xff, 0xff, 0xff, 1})},
	{name: "grpc-unknown-compression", run: grpcMessage([]string{"grpc-encoding", "zip"}, []byte{1, 0, 0, 0, 1, 1})},
	{name: "grpc-compressed-without", run: grpcMessage(nil, []byte{1, 0, 0, 0, 1, 1})},
	{name: "grpc-bad-gzip", run: grpcMessage([]string{"grpc-encoding", "gzip"}, []byte{1, 0, 0, 0, 3, 0x1f, 0x8b, 9})},
	{name: "grpc-two-messages", run: grpcMessage(nil, make([]byte, 10))},
	{name: "grpc-timeouts", run: func(c *client) error {
		for _, timeout := range []string{"0n", "-1S", "99999999H", "999999999999S", "S", "1x", "\xff"} {
			if err := grpcMessage([]string{"grpc-timeout", timeout}, make([]byte, 5))(c); err != nil {
				return fmt.Errorf("%q: %w", timeout, err)
			}
		}
		return nil
	}},
	{name: "side-channel", run: func(c *client) error {
		table, err := os.ReadFile("/proc/net/unix")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(table)) {
			at := strings.Index(line, "@")
			if at < 0 || !strings.Contains(line, "weft") {
				continue
			}
			conn, err := net.DialTimeout("unix", strings.TrimSpace(line[at:]), time.Second)
			if err != nil {
				continue // it belongs to another program
			}
			(&wire{Conn: conn, out: *bytes.NewBuffer(bytes.Repeat([]byte{0xff}, 1<<16))}).finish()
		}
		return c.alive()
	}},
}

// grpcMessage makes a call whose body is given, with additional header fields.
func grpcMessage(fields []string, body []byte) func(*client) error {
	return frames(func(w *wire) {
		w.frame(frameHeaders, flagEndHeaders, 1, headers(anyMethod, fields...))
		w.frame(frameData, flagEndStream, 1, body)
	})
}

// errSilent is the error of a server that does not serve other connections after a probe.
var errSilent = errors.New("the server does not answer afterwards")

// alive makes a call on a connection of its own.
func (c *client) alive() error {
	other, err := dial(c.ctx, c.address)
	if err != nil {
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	defer other.close()
	if err := other.once("a = Const() value=float[]{1}\ny = Identity(a)\n"); err != nil {
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	return nil
}
