package grpch2

import (
	"crypto/tls"
	"net"
	"runtime"
	"testing"
)

// connected returns both ends of a TCP connection.
func connected(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b
}

func TestReadableReportsDataAndTakesNone(t *testing.T) {
	if !canPoll {
		t.Skip("this system cannot poll sockets")
	}
	a, b := connected(t)
	var p spinPoller
	p.init(b)
	check := func() (yes bool) {
		if err := p.raw.Read(func(fd uintptr) bool { yes = readable(fd); return true }); err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if check() {
		t.Error("the socket is readable before anything was sent")
	}
	if _, err := a.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for !check() {
		runtime.Gosched()
	}
	p.meanWait = 0
	p.spin()
	var buf [2]byte
	if n, err := b.Read(buf[:]); n != 1 || err != nil {
		t.Errorf("read %d bytes, error %v, want the one that was sent", n, err)
	}
	a.Close()
	for !check() { // a closed connection is readable, too
		runtime.Gosched()
	}
}

func TestReadersSpinForQuickPeersOnly(t *testing.T) {
	var p spinPoller
	p.init(nil)
	if p.shouldSpin() {
		t.Error("spins for an unknown peer")
	}
	for range 8 {
		p.record(int64(spinLimit) / 4)
	}
	if !p.shouldSpin() {
		t.Error("does not spin for a quick peer")
	}
	p.streams = true
	if p.shouldSpin() {
		t.Error("spins for a stream")
	}
	p.streams = false
	waitingCallers.Add(2)
	if p.shouldSpin() {
		t.Error("spins while two callers wait")
	}
	waitingCallers.Add(-2)
	p.record(100 * int64(spinLimit))
	p.record(100 * int64(spinLimit))
	if p.shouldSpin() {
		t.Error("spins for a slow peer")
	}
}

func TestPollerFindsTheSocketBelowTLS(t *testing.T) {
	if !canPoll {
		t.Skip("this system cannot poll sockets")
	}
	_, b := connected(t)
	var p spinPoller
	p.init(tls.Server(b, &tls.Config{}))
	if p.raw == nil {
		t.Error("no socket is found")
	}
}
