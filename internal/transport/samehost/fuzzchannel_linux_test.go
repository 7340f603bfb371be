package samehost

import (
	"io"
	"log/slog"
	"net"
	"testing"
)

// FuzzChannel sends arbitrary bytes over a channel for large tensors, with and without the secret.
// The lender must neither panic nor hang, and must not keep the channel.
func FuzzChannel(f *testing.F) {
	l := NewLender(slog.New(slog.DiscardHandler))
	f.Cleanup(l.Close)
	l.mu.Lock()
	l.handshakeLocked()
	listener := l.listener
	l.mu.Unlock()
	if listener == nil || listener.socket == nil {
		f.Skip("no socket")
	}
	f.Add(true, []byte{})
	f.Add(false, make([]byte, secretSize))
	f.Add(true, make([]byte, 3*leaseIDSize))
	f.Add(true, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, secret bool, data []byte) {
		conn, err := net.DialUnix("unix", nil, listener.socket.Addr().(*net.UnixAddr)) //nolint:forcetypeassert // a Unix socket
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if secret {
			data = append(append([]byte(nil), listener.secret...), data...)
		}
		_, _ = conn.Write(data) // the lender may have closed the channel
		if err := conn.CloseWrite(); err == nil {
			_, _ = io.Copy(io.Discard, conn) // until the lender closes it
		}
	})
}
