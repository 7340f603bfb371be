package web

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// A large answer arrives, and a client that takes nothing loses its connection.
func TestPacedConn(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	defer server.Close()
	sent := make(chan error, 1)
	want := make([]byte, 3*writePiece+1)
	go func() {
		n, err := pacedConn{server, time.Minute}.Write(want)
		if n != len(want) {
			err = io.ErrShortWrite
		}
		sent <- err
	}()
	if n, err := io.ReadFull(client, make([]byte, len(want))); err != nil {
		t.Errorf("read %d bytes: %v", n, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if n, err := (pacedConn{server, time.Millisecond}).Write(want); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
}
