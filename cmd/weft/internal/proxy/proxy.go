// Package proxy carries the connections of programs without TLS, such as TensorFlow's clients, to a
// task with TLS. HTTP/2 is the same bytes in both, so the proxy copies bytes and parses nothing.
//
// The certificate of the proxy is the identity of all its clients. Therefore it looks up which
// local user has opened each connection, and refuses those that are not allowed.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/transport/connlimit"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/secure"
)

const (
	// bufferSize is that of the buffer for each direction of a connection, in bytes: a TLS record.
	bufferSize = 16 << 10
	// connectTimeout bounds the connection to the task, with its handshake.
	connectTimeout = 10 * time.Second
	// acceptBackoff is the pause after an accept that failed, for example for lack of descriptors.
	acceptBackoff = 100 * time.Millisecond
)

// NewLimiter returns a limiter for proxies. most is the number of connections; 0 for any. Each
// takes a descriptor for the client and one for the task. All clients have loopback addresses or
// none, so those from one address are not limited.
func NewLimiter(most int, log *slog.Logger) *connlimit.Limiter {
	return &connlimit.Limiter{Limits: grpch2.Limits{Connections: most}, Descriptors: 2, Refusal: grpch2.Refusal, Log: log}
}

// A Proxy carries the connections of one listener to one task. Its fields must not change once
// Serve was called.
type Proxy struct {
	Listener    net.Listener
	To          string       // address of the task
	Task        cluster.Task // that must answer; zero for any task
	Credentials *secure.Credentials
	// Allowed reports whether a user may use the proxy. nil allows all, without a look at the user.
	Allowed func(uid uint32) bool
	// Limiter counts the connections, those of other proxies with the same limiter too. The caller
	// closes it.
	Limiter *connlimit.Limiter
	Log     *slog.Logger

	running sync.WaitGroup
	mu      sync.Mutex
	conns   map[net.Conn]struct{} // guarded by mu; nil after Close
}

// Serve carries connections until Close is called or the listener fails. It returns when all
// connections have ended.
func (p *Proxy) Serve() error {
	p.mu.Lock()
	p.conns = map[net.Conn]struct{}{}
	p.mu.Unlock()
	defer p.running.Wait()
	for {
		c, err := p.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			p.Log.Warn("cannot accept a connection", "error", err)
			<-time.After(acceptBackoff)
			continue
		}
		release := p.Limiter.Admit(c)
		if release == nil {
			continue
		}
		if !p.add(c) {
			c.Close()
			release()
			return nil
		}
		p.running.Go(func() {
			defer release()
			defer p.remove(c)
			if err := p.carry(c); err != nil {
				p.Log.Warn("a connection has ended", "peer", c.RemoteAddr(), "to", p.To, "error", err)
			}
		})
	}
}

// Close closes the listener and all connections.
func (p *Proxy) Close() {
	p.Listener.Close()
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for c := range conns {
		c.Close()
	}
}

// add registers a connection. It reports false after Close.
func (p *Proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) remove(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// carry connects to the task and copies bytes until both directions have ended.
func (p *Proxy) carry(c net.Conn) error {
	if p.Allowed != nil {
		uid, err := UserOf(c)
		if err != nil {
			return fmt.Errorf("the user of the connection is not known: %w", err)
		}
		if !p.Allowed(uid) {
			return fmt.Errorf("user %d may not use this proxy (--allow-user)", uid)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", p.To)
	if err != nil {
		return err
	}
	task, err := p.Credentials.Client(ctx, raw, p.Task, p.To)
	if err != nil {
		return err
	}
	defer p.remove(task)
	if !p.add(task) {
		return nil
	}
	var up sync.WaitGroup
	up.Go(func() {
		copyBytes(task, c)
		_ = task.CloseWrite() // the copy has ended, whatever the reason
	})
	copyBytes(c, task)
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
	// the task answers nothing any more, so the rest of the requests is of no use
	task.Close()
	c.Close()
	up.Wait()
	return nil
}

// copyBytes copies until one end fails. Its buffer bounds the memory of a connection.
func copyBytes(to io.Writer, from io.Reader) {
	_, _ = io.CopyBuffer(onlyWriter{to}, onlyReader{from}, make([]byte, bufferSize))
}

// onlyWriter and onlyReader hide the methods with which io.CopyBuffer would use buffers of its own.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)
