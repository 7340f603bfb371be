package web

import (
	"net"
	"time"
)

const (
	// writeTimeout bounds the time in which a client takes a piece of an answer. An answer as a
	// whole has no such bound: that of a step comes when the step has ended.
	writeTimeout = time.Minute
	// writePiece is the size of a piece, in bytes.
	writePiece = 64 << 10
)

// pacedListener is a listener whose connections end if a client does not take what is written. It
// would hold one of the few connections forever otherwise.
type pacedListener struct{ net.Listener }

// Accept returns the next connection.
func (l pacedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return pacedConn{c, writeTimeout}, nil
}

type pacedConn struct {
	net.Conn
	timeout time.Duration // of a piece
}

// Write writes b in pieces, each with a deadline of its own.
func (c pacedConn) Write(b []byte) (written int, err error) {
	for {
		piece := b[written:min(len(b), written+writePiece)]
		if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(piece)
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}
