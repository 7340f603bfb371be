package refusal

import (
	"errors"
	"io"
	"net"
	"testing"
)

func TestRefuse(t *testing.T) {
	var s Set
	var clients []net.Conn
	for range most + 1 {
		client, server := net.Pipe()
		clients = append(clients, client)
		s.Refuse(server, []byte("too many"))
	}
	b := make([]byte, len("too many"))
	if n, err := clients[most].Read(b); !errors.Is(err, io.EOF) {
		t.Errorf("the last connection reads %q, %v", b[:n], err)
	}
	if _, err := io.ReadFull(clients[0], b); err != nil || string(b) != "too many" {
		t.Errorf("the first connection reads %q, %v", b, err)
	}
	s.Close()
	client, server := net.Pipe()
	s.Refuse(server, []byte("too late"))
	for _, nc := range append(clients, client) {
		if n, err := nc.Read(b); !errors.Is(err, io.EOF) {
			t.Errorf("after the end a connection reads %q, %v", b[:n], err)
		}
		nc.Close()
	}
}
