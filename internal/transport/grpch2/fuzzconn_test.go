package grpch2

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"
)

// FuzzServerConnection sends arbitrary bytes as a whole connection, in pieces of arbitrary size.
// The server must neither panic nor hang.
func FuzzServerConnection(f *testing.F) {
	data := appendFrame(nil, frameData, flagEndStream, 1, make([]byte, prefixSize))
	f.Add(cat(hello, appendHeaders(nil, 1, head, false), data), byte(0))
	f.Add(cat(hello, appendHeaders(nil, 1, head, false), data, data), byte(3))
	f.Add(cat(hello, appendHeaders(nil, 3, head, true), appendHeaders(nil, 1, head, true)), byte(9))
	f.Add(cat(hello, appendFrame(nil, frameHeaders, 0, 1, head[:9]), appendFrame(nil, frameContinuation, flagEndHeaders, 1, head[9:])), byte(7))
	f.Add(cat(hello, appendHeaders(nil, 1, block(":method", "GET", ":scheme", "http", ":path", "/"), true)), byte(0))
	f.Fuzz(func(t *testing.T, connection []byte, piece byte) {
		s := NewServer(slog.New(slog.DiscardHandler))
		s.Limits = limits
		s.Handle("/s/Echo", Method{NewBody: chunks, Serve: echo, Short: true, Audience: Clients})
		here, there := net.Pipe()
		s.accept(there)
		go io.Copy(io.Discard, here) //nolint:errcheck // ends with the pipe
		writePieces(here, connection, int(piece))
		here.Close()
		s.Close()
	})
}

// FuzzClientConnection answers a call with arbitrary bytes. The client must neither panic nor hang.
func FuzzClientConnection(f *testing.F) {
	settings := appendFrame(nil, frameSettings, 0, 0, nil)
	answer := cat(appendHeaders(nil, 1, block(":status", "200", "content-type", contentType), false),
		appendFrame(nil, frameData, 0, 1, []byte{0, 0, 0, 0, 1, 'x'}), appendHeaders(nil, 1, block("grpc-status", "0"), true))
	f.Add(cat(settings, answer), byte(0))
	f.Add(cat(settings, appendHeaders(nil, 1, block(":status", "100"), false), answer), byte(5))
	f.Add(cat(settings, goAway(1, codeNone, "x"), answer), byte(1))
	f.Add(cat(settings, goAway(0, codeNone, "x")), byte(0))
	f.Add(cat(settings, appendUint32Frame(nil, frameReset, 1, uint32(codeRefused))), byte(0))
	f.Add(cat(setting(settingWeft, 1), appendHeaders(nil, 1, block(":status", "503"), true)), byte(2))
	f.Fuzz(func(t *testing.T, connection []byte, piece byte) {
		dialed := false
		c := NewClient("x", func(context.Context) (net.Conn, error) {
			if dialed {
				return nil, io.EOF
			}
			dialed = true
			here, there := net.Pipe()
			go io.Copy(io.Discard, there) //nolint:errcheck // ends with the pipe
			go func() {
				writePieces(there, connection, int(piece))
				there.Close()
			}()
			return here, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c.Call(ctx, &Request{Path: "/s/Echo", Data: [][]byte{{'x'}}, NewBody: chunks})
		if ctx.Err() != nil {
			t.Error("the call hangs")
		}
		c.Close()
	})
}

// writePieces writes bytes in pieces of a size, or at once for 0.
func writePieces(w io.Writer, b []byte, piece int) {
	for len(b) > 0 {
		n := len(b)
		if piece > 0 {
			n = min(n, piece)
		}
		if _, err := w.Write(b[:n]); err != nil {
			return
		}
		b = b[n:]
	}
}

// FuzzHeaderBlock decodes two header blocks of a connection, which share a table, and checks that a
// valid request has the fields that a server relies on.
func FuzzHeaderBlock(f *testing.F) {
	f.Add(head, head)
	f.Add(block(":method", "POST", ":scheme", "http", ":path", "/s/Echo", "x-bin", "\x00", "te", "trailers"), []byte{0xbe})
	f.Add(block("grpc-status", "3", "grpc-message", "a%20b"), []byte{0x20})
	f.Add(block(":status", "200", "Upper", "x"), []byte{0x3f, 0xe1, 0x1f})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		r := newFieldReader()
		for _, b := range [][]byte{first, second} {
			s, err := r.read(b)
			if err != nil {
				return
			}
			if s.tooLarge() {
				continue
			}
			if s.checkRequest() == "" && (s.path == "" || hasControl(s.path) || s.status != "" || s.pseudo&requiredPseudo != requiredPseudo) {
				t.Errorf("accepted %+v", s)
			}
			if s.checkResponse() == "" && s.pseudo != pseudoStatus {
				t.Errorf("accepted %+v", s)
			}
			for _, field := range s.binary {
				if s.checkTrailers() == "" && !isFieldName(field.Name) {
					t.Errorf("accepted the name %q", field.Name)
				}
			}
		}
	})
}
