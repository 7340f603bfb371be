package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/trust"
)

// maxRecord is the largest payload of a TLS record, in bytes.
const maxRecord = 16 << 10

// Reasons for the end of a connection.
const (
	endRevoked = "the certificate of the peer is revoked"
	endPeer    = "the certificate of the peer has ended"
	endOwn     = "the certificate of this process has ended"
)

// Conn is a connection with TLS. Like every net.Conn it has at most one reader and one writer at a
// time.
type Conn struct {
	*tls.Conn
	raw   *rawConn
	creds *Credentials
	more  bool   // the last read filled its buffer, so that there may be more; owned by the reader
	small []byte // buffers that are put together to one record; owned by the writer

	// set by the handshake
	principal *trust.Principal
	leaf      *x509.Certificate // of the peer; nil if it has none
	ends      time.Time         // end of the first certificate that ends; zero for never
	own       bool              // the own certificate is the one that ends first

	mu      sync.Mutex
	retire  func(why string) // guarded by mu; nil if it was not set or was called
	retired string           // reason, if retire was not set yet; guarded by mu
}

// Server returns a connection that was accepted. The handshake is made by Handshake, or by the
// first Read or Write.
func (c *Credentials) Server(nc net.Conn) *Conn {
	conn := &Conn{raw: &rawConn{Conn: nc, server: true}, creds: c}
	conn.Conn = tls.Server(conn.raw, c.server(conn))
	return conn
}

// Client makes the handshake over a connection to a task at an address, or to any task if task is
// zero. It closes the connection if that fails.
func (c *Credentials) Client(ctx context.Context, nc net.Conn, task cluster.Task, address string) (*Conn, error) {
	c.refresh(false)
	conn := &Conn{raw: &rawConn{Conn: nc}, creds: c}
	conn.Conn = tls.Client(conn.raw, c.client(conn, task, address))
	if err := conn.Handshake(ctx); err != nil {
		nc.Close()
		return nil, fmt.Errorf("TLS handshake with %s: %w", address, err)
	}
	return conn, nil
}

// Handshake makes the handshake. The error of a server whose client speaks HTTP/2 without TLS is
// ErrPlaintext.
func (c *Conn) Handshake(ctx context.Context) error {
	if err := c.HandshakeContext(ctx); err != nil {
		return err
	}
	c.creds.mu.Lock()
	defer c.creds.mu.Unlock()
	c.creds.conns[c] = struct{}{}
	return nil
}

// admit records what the peer is. It is called within the handshake.
func (c *Conn) admit(m *material, p *trust.Principal, ends time.Time, leaf *x509.Certificate) {
	c.principal, c.leaf, c.ends = p, leaf, ends
	if own := m.cert.Leaf.NotAfter; ends.IsZero() || own.Before(ends) {
		c.ends, c.own = own, true
	}
}

// Principal returns what the peer is. It is nil before the handshake.
func (c *Conn) Principal() *trust.Principal { return c.principal }

// Plain returns the connection below TLS.
func (c *Conn) Plain() net.Conn { return c.raw.Conn }

// NetConn returns the connection below TLS.
func (c *Conn) NetConn() net.Conn { return c.raw.Conn }

// ended returns why the connection must end, "" if it may go on.
func (c *Conn) ended(m *material, now time.Time) string {
	switch {
	case c.leaf != nil && m.isRevoked(c.leaf):
		return endRevoked
	case c.ends.IsZero() || now.Before(c.ends):
		return ""
	case c.own:
		return endOwn
	}
	return endPeer
}

// OnRetire sets the function that is called once, when the connection should end after its present
// calls.
func (c *Conn) OnRetire(f func(why string)) {
	c.mu.Lock()
	why := c.retired
	if why == "" {
		c.retire = f
	}
	c.mu.Unlock()
	if why != "" {
		f(why)
	}
}

func (c *Conn) retireOnce(why string) {
	c.mu.Lock()
	f := c.retire
	c.retire, c.retired = nil, why
	c.mu.Unlock()
	if f != nil {
		f(why)
	}
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.more = n == len(b)
	return n, err
}

// Buffered reports whether Read may return bytes that have left the socket already, so that it is
// useless to wait for the socket.
func (c *Conn) Buffered() bool { return c.more || c.raw.start < c.raw.end }

// WriteBuffers writes buffers in as few records and system calls as possible. crypto/tls makes a
// record and a system call of each Write.
func (c *Conn) WriteBuffers(v net.Buffers) error {
	c.raw.cork()
	err := c.writeRecords(v)
	if e := c.raw.uncork(); err == nil {
		err = e
	}
	return err
}

func (c *Conn) writeRecords(v net.Buffers) error {
	small := c.small[:0]
	defer func() { c.small = small[:0] }()
	for _, b := range v {
		for len(b) > 0 {
			if len(small) == 0 && len(b) >= maxRecord {
				n := len(b) - len(b)%maxRecord
				if _, err := c.Conn.Write(b[:n]); err != nil {
					return err
				}
				b = b[n:]
				continue
			}
			k := min(maxRecord-len(small), len(b))
			small = append(small, b[:k]...)
			b = b[k:]
			if len(small) < maxRecord {
				continue
			}
			if _, err := c.Conn.Write(small); err != nil {
				return err
			}
			small = small[:0]
		}
	}
	if len(small) == 0 {
		return nil
	}
	_, err := c.Conn.Write(small)
	return err
}

// Close closes the connection. It does not wait for a peer that reads nothing.
func (c *Conn) Close() error {
	c.creds.mu.Lock()
	delete(c.creds.conns, c)
	c.creds.mu.Unlock()
	c.raw.closing.Store(true)
	return c.Conn.Close()
}
