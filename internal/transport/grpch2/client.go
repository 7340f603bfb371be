package grpch2

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/sys/failpoint"
)

// Backoff between attempts to connect.
const (
	firstBackoff  = 50 * time.Millisecond
	backoffGrowth = 1.6
	backoffJitter = 0.2
	maxBackoff    = time.Second // bounds how long a restarted task stays unnoticed
	// connectTimeout bounds one attempt, including the handshake of HTTP/2.
	connectTimeout = 5 * time.Second
)

// Client calls the methods of one server over one connection at a time. It connects on first use,
// and again after a connection has ended. Its methods may be called concurrently.
type Client struct {
	// Keepalive detects that the server has vanished. It must be set before the first call.
	Keepalive Keepalive
	// Observer is notified of calls, with Peer as the name of the server; nil for none. Both must
	// be set before the first call.
	Observer CallObserver
	Peer     string
	// Tracer makes spans of calls; nil for none. It must be set before the first call.
	Tracer CallTracer

	calls     callCounters
	authority string
	dial      func(context.Context) (net.Conn, error)

	mu    sync.Mutex
	conn  *clientConn          // for new calls; nil if there is none; guarded by mu
	conns map[*clientConn]bool // connections that have not ended; guarded by mu
	// closed at the end of the attempt in progress; nil if there is none; guarded by mu
	connecting chan struct{}
	// error of the last attempt; returned to calls before nextAttempt; guarded by mu
	lastErr     error
	attempts    int       // failed attempts in a row; guarded by mu
	nextAttempt time.Time // earliest time of the next attempt; guarded by mu
	closed      bool      // guarded by mu

	ctx     context.Context // of attempts; ended by Close
	cancel  context.CancelFunc
	running sync.WaitGroup // attempts and connections
}

// NewClient returns a client of the server that dial connects to. Authority is the :authority of
// its requests.
func NewClient(authority string, dial func(context.Context) (net.Conn, error)) *Client {
	c := &Client{Keepalive: DefaultKeepalive, authority: authority, dial: dial, conns: map[*clientConn]bool{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

var errClosing = errors.New("the client connection is closing")

// Close closes the connections, fails their calls, and returns when no goroutine of the client is
// left.
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

// waitConn returns a connection for a call. With wait, it retries until ctx ends instead of
// returning the error of an attempt.
func (c *Client) waitConn(ctx context.Context, wait bool) (*clientConn, error) {
	for {
		conn, attempt, err := c.connOrAttempt(wait)
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

// LastError returns the error of the last attempt to connect, or nil if it succeeded.
func (c *Client) LastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastErr
}

// connOrAttempt returns the connection or, if there is none, a channel that is closed at the end of
// the attempt in progress. It starts an attempt if necessary.
func (c *Client) connOrAttempt(wait bool) (*clientConn, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, nil, errClosing
	case c.conn != nil:
		return c.conn, nil, nil
	case c.lastErr != nil && !wait && time.Now().Before(c.nextAttempt):
		return nil, nil, c.lastErr
	case c.connecting == nil:
		c.connecting = make(chan struct{})
		c.running.Add(1)
		go c.connect(c.connecting, time.Until(c.nextAttempt))
	}
	return nil, c.connecting, nil
}

// connect makes one attempt after a delay.
func (c *Client) connect(done chan struct{}, delay time.Duration) {
	defer c.running.Done()
	defer close(done)
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-c.ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(c.ctx, connectTimeout)
	defer cancel()
	var nc net.Conn
	err := failpoint.Hit("grpch2/dial")
	if err == nil {
		nc, err = c.dial(ctx)
	}
	var conn *clientConn
	if err == nil {
		conn, err = handshake(ctx, c, nc)
	}
	c.finishConnect(conn, err)
	if conn != nil {
		conn.retireWhenSecure()
	}
}

// finishConnect records the result of an attempt.
func (c *Client) finishConnect(conn *clientConn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connecting = nil
	if err != nil {
		c.lastErr = fmt.Errorf("connection error: %w", err)
		c.nextAttempt = time.Now().Add(backoff(c.attempts))
		c.attempts++
		return
	}
	c.lastErr, c.attempts, c.nextAttempt = nil, 0, time.Time{}
	if c.closed {
		conn.nc.Close()
		return
	}
	c.conn = conn
	c.conns[conn] = true
	c.running.Add(1)
	conn.start()
}

// backoff returns the delay after a number of failed attempts.
func backoff(attempts int) time.Duration {
	d := float64(firstBackoff)
	for ; attempts > 0 && d < float64(maxBackoff); attempts-- {
		d *= backoffGrowth
	}
	return time.Duration(min(d, float64(maxBackoff)) * (1 + backoffJitter*(2*rand.Float64()-1)))
}

// retire stops new calls from using a connection.
func (c *Client) retire(conn *clientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == conn {
		c.conn = nil
	}
}

// removeConn forgets a connection whose reading has ended.
func (c *Client) removeConn(conn *clientConn) {
	c.retire(conn)
	c.mu.Lock()
	delete(c.conns, conn)
	c.mu.Unlock()
	c.running.Done()
}

// A Request describes a call. It must not change, nor be used for another call, before the call has
// ended.
type Request struct {
	Path         string
	Data         [][]byte // the message
	WaitForReady bool     // retry while the server cannot be reached, instead of failing
	// MayDelay allows the request to be queued for up to flushDelay, to be written with the next
	// one. Only Start supports it.
	MayDelay bool
	// NewBody returns the memory for a response of size bytes.
	NewBody func(size int) Body

	traced TraceHeaders // names the span of the call
}

// A Response is the result of a call.
type Response struct {
	// message of a successful call, from the request's NewBody; owned by the caller, who must
	// discard or use it
	Body       Body
	Code       uint32  // gRPC status code; 0 for success
	Text       string  // grpc-message, or the local error
	Trailer    []Field // trailers whose names end in "-bin"
	FromServer bool    // the server sent the status; otherwise the error is local
}

const (
	// maxTries bounds the attempts of a call that the server provably has not processed.
	maxTries = 5
	// firstRetryPause is the pause before the third attempt. Later pauses double. The second
	// attempt is made at once: most calls are refused because the server's limit on streams was not
	// known yet, or because the server is going away.
	firstRetryPause = 4 * time.Millisecond
)

// Call makes a call and waits for its response, or for the end of ctx.
func (c *Client) Call(ctx context.Context, r *Request) Response {
	observed := c.observe(ctx, r)
	call, resp := c.tryCall(ctx, r)
	c.observeEnd(observed, r, call, &resp)
	return resp
}

// tryCall makes a call, again if the server has not processed it. The call is nil if there was no
// connection.
func (c *Client) tryCall(ctx context.Context, r *Request) (*clientCall, Response) {
	c.calls.started.Add(1)
	for try := 1; ; try++ {
		conn, err := c.waitConn(ctx, r.WaitForReady)
		if err != nil {
			c.calls.failed.Add(1)
			return nil, localResponse(ctx, err)
		}
		call := newClientCall(conn, r)
		resp := call.run(ctx)
		if !call.retryable || try == maxTries || ctx.Err() != nil || !pauseAfter(ctx, try) {
			c.calls.end(resp.Code)
			return call, resp
		}
	}
}

// pauseAfter waits between two attempts of a call. It reports false if ctx ends.
func pauseAfter(ctx context.Context, try int) bool {
	if try == 1 {
		return true
	}
	select {
	case <-time.After(firstRetryPause << (try - 2)):
		return true
	case <-ctx.Done():
		return false
	}
}

// localResponse returns the response of a call that got none from the server, because of ctx or
// err.
func localResponse(ctx context.Context, err error) Response {
	switch ctx.Err() {
	case nil:
		return Response{Code: codeUnavailable, Text: err.Error()}
	case context.DeadlineExceeded:
		return Response{Code: codeDeadlineExceeded, Text: context.DeadlineExceeded.Error()}
	default:
		return Response{Code: codeCancelled, Text: context.Canceled.Error()}
	}
}
