package main

import (
	"net"
	"sync"
	"time"
)

// A link is the way to one task: a TCP proxy that cuts, slows and swallows.
type link struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]struct{} // both ends of all connections; guarded by mu
	refuse  bool                  // new connections are closed; guarded by mu
	swallow bool                  // bytes are not forwarded; guarded by mu
	delay   time.Duration         // of every piece; guarded by mu
}

// newLink listens on a free port and forwards to target.
func newLink(target string) (*link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &link{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	k.running.Go(k.accept)
	return k, nil
}

func (k *link) address() string { return k.listener.Addr().String() }

func (k *link) accept() {
	for {
		in, err := k.listener.Accept()
		if err != nil {
			return
		}
		k.mu.Lock()
		refuse := k.refuse
		k.mu.Unlock()
		out, err := net.DialTimeout("tcp", k.target, time.Second)
		if err != nil || refuse {
			in.Close()
			if out != nil {
				out.Close()
			}
			continue
		}
		k.mu.Lock()
		k.conns[in], k.conns[out] = struct{}{}, struct{}{}
		k.mu.Unlock()
		k.running.Go(func() { k.forward(out, in) })
		k.running.Go(func() { k.forward(in, out) })
	}
}

// forward copies bytes in one direction until the connection ends. What was swallowed is lost, so
// the connection never continues after that.
func (k *link) forward(to, from net.Conn) {
	defer func() {
		to.Close()
		from.Close()
		k.mu.Lock()
		delete(k.conns, to)
		delete(k.conns, from)
		k.mu.Unlock()
	}()
	buf, lost := make([]byte, 64<<10), false
	for {
		n, err := from.Read(buf)
		k.mu.Lock()
		delay := k.delay
		lost = lost || k.swallow
		k.mu.Unlock()
		if delay > 0 {
			<-time.After(delay)
		}
		if err != nil {
			return
		}
		if lost {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// set changes the faults of the link.
func (k *link) set(refuse, swallow bool, delay time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refuse, k.swallow, k.delay = refuse, swallow, delay
}

// cut ends all connections.
func (k *link) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.conns {
		c.Close()
	}
}

func (k *link) close() {
	k.listener.Close()
	k.cut()
	k.running.Wait()
}
