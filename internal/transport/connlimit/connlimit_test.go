package connlimit

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-ml/weft/internal/transport/grpch2"
)

// server accepts connections and returns them.
func server(t *testing.T, limits grpch2.Limits) (l *Limiter, dial func() net.Conn, accepted chan net.Conn, log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	l = &Limiter{Limits: limits, Refusal: func(why string) []byte { return []byte("refused: " + why) }, Log: slog.New(slog.NewTextHandler(log, nil))}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted = make(chan net.Conn, 300)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		listener := l.Listener(tcp)
		for {
			nc, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- nc
		}
	}()
	t.Cleanup(func() {
		tcp.Close()
		<-ended
		l.Close()
	})
	return l, func() net.Conn {
		nc, err := net.Dial("tcp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}, accepted, log
}

func TestLimits(t *testing.T) {
	for want, limits := range map[string]grpch2.Limits{
		"too many connections (2, set by --max-connections)":                               {Connections: 2, AddressConnections: 9},
		"too many connections from this address (2, set by --max-connections-per-address)": {Connections: 9, AddressConnections: 2},
	} {
		l, dial, accepted, log := server(t, limits)
		dial()
		first := <-accepted
		dial()
		second := <-accepted
		defer second.Close()
		for range 3 {
			told(t, dial(), want)
		}
		for range 2 { // closing it twice makes room for one
			first.Close()
		}
		dial()
		defer (<-accepted).Close()
		told(t, dial(), want)
		hits := uint64(0)
		for _, n := range l.Limited() {
			hits += n
		}
		if lines := strings.Count(log.String(), want); hits != 4 || lines != 1 {
			t.Errorf("got %v and %d lines in the log, want 4 and 1", l.Limited(), lines)
		}
	}
}

// told checks the reason that a refused client receives.
func told(t *testing.T, nc net.Conn, want string) {
	t.Helper()
	got := make([]byte, len("refused: ")+len(want))
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != "refused: "+want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	nc.Close()
}

// A client that does not read does not hold the limiter.
func TestClose(t *testing.T) {
	l, dial, accepted, _ := server(t, grpch2.Limits{Connections: 1})
	dial()
	defer (<-accepted).Close()
	refused := dial()
	l.Close()
	if _, err := io.ReadAll(refused); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the refused connection: %v", err)
	}
}
