package grpch2

import (
	"crypto/tls"
	"net"
	"runtime"
	"testing"
)

// connected returns the ends of a TCP connection.
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

func TestLookoutSeesWhatArrivesAndTakesNothing(t *testing.T) {
	if !canLook {
		t.Skip("sockets cannot be looked at here")
	}
	a, b := connected(t)
	var l lookout
	l.init(b)
	seen := func() (yes bool) {
		if err := l.raw.Read(func(fd uintptr) bool { yes = arrived(fd); return true }); err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if seen() {
		t.Error("something has arrived before it was sent")
	}
	if _, err := a.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for !seen() {
		runtime.Gosched()
	}
	l.wait = 0
	l.await()
	var buf [2]byte
	if n, err := b.Read(buf[:]); n != 1 || err != nil {
		t.Errorf("read %d bytes, error %v, want the one that was sent", n, err)
	}
	a.Close()
	for !seen() { // the end is something to be read
		runtime.Gosched()
	}
}

func TestLookoutLooksOnlyForWhatComesSoon(t *testing.T) {
	var l lookout
	l.init(nil)
	if l.soon() {
		t.Error("looks for a peer of which nothing is known")
	}
	for range 8 {
		l.came(int64(lookFor) / 4)
	}
	if !l.soon() {
		t.Error("does not look for a quick peer")
	}
	callers.Add(2)
	if l.soon() {
		t.Error("looks while others wait as well")
	}
	callers.Add(-2)
	l.came(100 * int64(lookFor))
	l.came(100 * int64(lookFor))
	if l.soon() {
		t.Error("looks for a slow peer")
	}
}

func TestLookoutFindsTheSocketBelowTLS(t *testing.T) {
	if !canLook {
		t.Skip("sockets cannot be looked at here")
	}
	_, b := connected(t)
	var l lookout
	l.init(tls.Server(b, &tls.Config{}))
	if l.raw == nil {
		t.Error("no socket is found")
	}
}
