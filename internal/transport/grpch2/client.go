package grpch2

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Pauses between attempts to connect.
const (
	firstBackoff  = 50 * time.Millisecond
	backoffGrowth = 1.6
	backoffJitter = 0.2
	maxBackoff    = time.Second // tasks that restart are found soon
	// connectTime is how long an attempt may take, until the server has greeted us.
	connectTime = 5 * time.Second
)

// Client calls the methods of one server. It connects when it is first used, and again whenever it
// must.
type Client struct {
	authority string
	dial      func(context.Context) (net.Conn, error)

	mu    sync.Mutex
	conn  *clientConn          // guarded by mu; takes calls if it is not nil
	conns map[*clientConn]bool // guarded by mu; all that have not ended
	// guarded by mu; closed when the attempt under way is over; nil if there is none
	connecting chan struct{}
	// guarded by mu; the last attempt, for calls that come before the next
	failed   error
	attempts int       // guarded by mu; that failed in a row
	again    time.Time // guarded by mu; when the next attempt may be made
	closed   bool      // guarded by mu

	life    context.Context // of attempts
	cancel  context.CancelFunc
	running sync.WaitGroup // attempts and connections
}

// NewClient returns a client of the server that dial connects to. Authority is what the server is
// told it is called.
func NewClient(authority string, dial func(context.Context) (net.Conn, error)) *Client {
	c := &Client{authority: authority, dial: dial, conns: map[*clientConn]bool{}}
	c.life, c.cancel = context.WithCancel(context.Background())
	return c
}

var errClosing = errors.New("the client connection is closing")

// Close ends the connections, and the calls over them, and waits until nothing of them is left.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.conn = nil
	conns := c.conns
	c.conns = map[*clientConn]bool{}
	c.mu.Unlock()
	c.cancel()
	for conn := range conns {
		conn.close()
	}
	c.running.Wait()
}

// ready returns a connection for a call. A call that waits bears with a server that cannot be
// reached.
func (c *Client) ready(ctx context.Context, wait bool) (*clientConn, error) {
	for {
		conn, attempt, err := c.look(wait)
		if conn != nil || err != nil {
			return conn, err
		}
		select {
		case <-attempt:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Failure returns why the last attempt to reach the server failed, or nil if it did not.
func (c *Client) LastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// look returns the connection or, if there is none, the attempt to make one.
func (c *Client) look(wait bool) (*clientConn, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, nil, errClosing
	case c.conn != nil:
		return c.conn, nil, nil
	case c.failed != nil && !wait && time.Now().Before(c.again):
		return nil, nil, c.failed
	case c.connecting == nil:
		c.connecting = make(chan struct{})
		c.running.Add(1)
		go c.connect(c.connecting, time.Until(c.again))
	}
	return nil, c.connecting, nil
}

// connect makes one attempt, after a pause.
func (c *Client) connect(over chan struct{}, pause time.Duration) {
	defer c.running.Done()
	defer close(over)
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-c.life.Done():
		}
	}
	ctx, cancel := context.WithTimeout(c.life, connectTime)
	defer cancel()
	nc, err := c.dial(ctx)
	var conn *clientConn
	if err == nil {
		conn, err = greet(ctx, c, nc)
	}
	c.connected(conn, err)
}

// connected takes the outcome of an attempt.
func (c *Client) connected(conn *clientConn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connecting = nil
	if err != nil {
		c.failed = fmt.Errorf("connection error: %w", err)
		c.again = time.Now().Add(backoff(c.attempts))
		c.attempts++
		return
	}
	c.failed, c.attempts, c.again = nil, 0, time.Time{}
	if c.closed {
		conn.nc.Close()
		return
	}
	c.conn = conn
	c.conns[conn] = true
	c.running.Add(1)
	conn.start()
}

// backoff returns the pause after a number of attempts that failed.
func backoff(attempts int) time.Duration {
	d := float64(firstBackoff)
	for ; attempts > 0 && d < float64(maxBackoff); attempts-- {
		d *= backoffGrowth
	}
	return time.Duration(min(d, float64(maxBackoff)) * (1 + backoffJitter*(2*rand.Float64()-1)))
}

// retire makes new calls use another connection.
func (c *Client) retire(conn *clientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == conn {
		c.conn = nil
	}
}

// remove is called when nobody reads a connection any more.
func (c *Client) remove(conn *clientConn) {
	c.retire(conn)
	c.mu.Lock()
	delete(c.conns, conn)
	c.mu.Unlock()
	c.running.Done()
}

// A Request is a call to be made.
type Request struct {
	Path         string
	Data         [][]byte // the message
	WaitForReady bool     // for a server that cannot be reached, instead of failing at once
	// CanWait says that the request may wait for others, to be written with them: no longer than a
	// few milliseconds. Only Start heeds it.
	MayDelay bool
	// Room returns the memory for the response.
	NewBody func(size int) Body
}

// A Response is the outcome of a call.
type Response struct {
	// the message of a call that succeeded, from the request's Room; the caller's to discard
	Body       Body
	Code       uint32 // of gRPC
	Text       string
	Trailer    []Field // whose names end in "-bin"
	FromServer bool    // by the server; otherwise the error is about the way to it
}

// maxTries bounds how often a call is made again that the server has not seen.
const maxTries = 5

// Call makes a call. It returns early when ctx ends.
func (c *Client) Call(ctx context.Context, r *Request) Response {
	for try := 1; ; try++ {
		conn, err := c.ready(ctx, r.WaitForReady)
		if err != nil {
			return unanswered(ctx, err)
		}
		call := newClientCall(conn, r)
		resp := call.run(ctx)
		if !call.unseen || try == maxTries || ctx.Err() != nil {
			return resp
		}
	}
}

// unanswered returns the response of a call that did not get one.
func unanswered(ctx context.Context, err error) Response {
	switch ctx.Err() {
	case nil:
		return Response{Code: codeUnavailable, Text: err.Error()}
	case context.DeadlineExceeded:
		return Response{Code: codeDeadlineExceeded, Text: context.DeadlineExceeded.Error()}
	default:
		return Response{Code: codeCancelled, Text: context.Canceled.Error()}
	}
}
