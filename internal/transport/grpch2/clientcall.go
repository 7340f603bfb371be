package grpch2

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// clientCall is one call in progress.
type clientCall struct {
	stream
	conn     *clientConn
	request  *Request
	deadline time.Time // zero if there is none

	// The following fields are guarded by the read token until the call ends.
	headersSeen bool // the headers of the response have arrived
	encoding    string
	partial     Response // status of the response so far

	// The following fields are written by the goroutine that removes the stream.
	response  Response
	retryable bool // the server has not processed the call

	done chan struct{} // receives one value when response is set

	// The following fields are set for calls made by Start.
	callback   func(Response)
	observed   observation
	ctx        context.Context
	stopCancel func() bool // unregisters cancel from ctx; nil if ctx never ends
	probe      bool        // the call is made by keepalive, and not made again
}

func newClientCall(c *clientConn, r *Request) *clientCall {
	call := &clientCall{conn: c, request: r, done: make(chan struct{}, 1)}
	call.owner, call.contentLength = call, -1
	return call
}

// run makes the call and returns its response.
func (c *clientCall) run(ctx context.Context) Response {
	c.deadline, _ = ctx.Deadline()
	if err := ctx.Err(); err != nil {
		return localResponse(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { c.cancel(ctx) })
	defer stop()
	if err := c.send(); err != nil {
		c.fail(err)
	}
	waitingCallers.Add(1)
	c.wait()
	waitingCallers.Add(-1)
	if c.response.Code == codeOK && c.in.compressed {
		c.decompress()
	}
	return c.response
}

func (c *clientCall) send() error {
	return c.conn.out.send(&c.stream, c, prefixed(0, c.request.Data), c.request.MayDelay && c.callback != nil)
}

// appendHeaderFrames opens the stream and appends its headers.
func (c *clientCall) appendHeaderFrames(b []byte) []byte {
	c.id = c.conn.next
	c.conn.next += 2
	c.conn.addStream(&c.stream)
	if !c.probe {
		c.conn.startKeepalive()
	}
	var block [320]byte
	fields := appendIndexed(appendIndexed(block[:0], staticMethodPOST), staticSchemeHTTP)
	fields = appendNamed(fields, staticPath, c.request.Path)
	fields = appendNamed(fields, staticAuthority, c.conn.client.authority)
	fields = appendNamed(fields, staticContentType, contentType)
	fields = appendField(fields, "te", "trailers")
	fields = appendNamed(fields, staticUserAgent, UserAgent)
	if !c.deadline.IsZero() {
		fields = appendField(fields, "grpc-timeout", formatTimeout(time.Until(c.deadline)))
	}
	fields = c.request.traced.append(fields)
	return appendHeaders(b, c.id, fields, false)
}

func (c *clientCall) appendTrailerFrames(b []byte) []byte { return b }

func (c *clientCall) canStart() (bool, error) {
	switch {
	case c.conn.goingAway || c.conn.next > maxStreamID:
		return false, errGoneAway
	case len(c.conn.streams) >= int(min(c.conn.out.peer.streams, maxStreamID)):
		return false, nil
	}
	return true, nil
}

var errGoneAway = errors.New("the connection accepts no new calls")

// wait returns when the call has ended. It reads the connection if no other goroutine does.
func (c *clientCall) wait() {
	if c.conn.token.reacquire() {
		c.read()
	} else {
		<-c.done
	}
}

// read reads the connection until the call has ended, and then passes the read token on.
func (c *clientCall) read() {
	c.conn.in.r.poller.yieldFirst = false
	for {
		select {
		case <-c.done:
			c.conn.yieldToken()
			return
		default:
		}
		if !c.conn.readOne() {
			<-c.done // another goroutine reads, or the connection has ended
			return
		}
	}
}

// finish ends a call whose response is complete.
func (c *clientCall) finish() {
	if !c.conn.removeStream(&c.stream) {
		return
	}
	c.conn.alive.answers.Add(1)
	c.response = c.partial
	c.response.FromServer = true
	if c.response.Code == codeOK {
		if body, ok := c.takeBody(); ok {
			c.response.Body = body
		} else {
			c.response = Response{Code: codeInternalError, Text: "a response without a whole message", FromServer: true}
		}
	}
	c.in.abandon()
	c.conn.closeWhenDone()
	if c.callback != nil {
		c.deliver()
		return
	}
	c.complete()
}

func (c *clientCall) takeBody() (Body, bool) {
	if !c.in.complete() {
		return nil, false
	}
	return c.in.take()
}

// complete delivers the response: to the waiting caller or, on a new goroutine, to the callback.
func (c *clientCall) complete() {
	if c.callback != nil {
		go c.deliver()
		return
	}
	c.done <- struct{}{}
}

// takeHeaders interprets headers or trailers. It returns a description of what is invalid, or "".
func (c *clientCall) takeHeaders(f *fields, end bool) string {
	if !c.headersSeen {
		c.headersSeen = true
		c.encoding = f.encoding
		switch {
		case f.status != "200":
			c.partial.Code, c.partial.Text = codeFromHTTP(f.status), "unexpected HTTP status code received from server: "+f.status
			return c.rejectResponse(end)
		case !strings.HasPrefix(f.contentType, contentType):
			c.partial.Code, c.partial.Text = codeUnknown, fmt.Sprintf("unexpected content-type %q", f.contentType)
			return c.rejectResponse(end)
		}
	} else if !end {
		return "headers within a response"
	}
	if end {
		c.takeStatus(f)
	}
	return ""
}

// rejectResponse handles a response that is not gRPC. The stream must be aborted unless it has
// ended.
func (c *clientCall) rejectResponse(end bool) string {
	if end {
		return ""
	}
	return c.partial.Text
}

func (c *clientCall) takeStatus(f *fields) {
	code, err := strconv.ParseUint(f.code, 10, 32)
	if err != nil {
		if c.partial.Code == codeOK {
			c.partial.Code, c.partial.Text = codeUnknown, "the response has no status"
		}
		return
	}
	c.partial.Code, c.partial.Text = uint32(code), unescape(f.text)
	c.partial.Trailer = append([]Field(nil), f.binary...)
}

// codeFromHTTP returns the gRPC code for an HTTP status.
func codeFromHTTP(status string) uint32 {
	switch status {
	case "400":
		return codeInternalError
	case "401":
		return codeUnauthenticated
	case "403":
		return codePermissionDenied
	case "404":
		return codeUnimplemented
	case "429", "502", "503", "504":
		return codeUnavailable
	}
	return codeUnknown
}

// fail ends a call that could not be sent.
func (c *clientCall) fail(err error) {
	if !c.conn.removeStream(&c.stream) {
		return
	}
	c.in.abandon()
	c.retryable = c.id == 0
	c.response = Response{Code: codeUnavailable, Text: err.Error()}
	c.complete()
	c.conn.client.retire(c.conn)
	if !errors.Is(err, errGoneAway) {
		c.conn.nc.Close() // the reader shuts the connection down
	}
}

// cancel ends a call whose context has ended.
func (c *clientCall) cancel(ctx context.Context) {
	// RST_STREAM is queued before the caller continues, because it may close the connection
	if !c.conn.resetStream(&c.stream, codeCancel) {
		return
	}
	c.in.abandon()
	c.response = localResponse(ctx, ctx.Err())
	c.complete()
	c.conn.interruptReader()
	c.conn.out.flush()
	c.conn.closeWhenDone()
}

func (c *clientCall) checkSize(int) *callError { return nil }

func (c *clientCall) newBody(size int) Body { return c.request.NewBody(size) }

func (c *clientCall) abort(code uint32, text string, reset errCode) {
	c.response = Response{Code: code, Text: text, FromServer: true}
	if c.partial.Code != codeOK {
		c.response.Code, c.response.Text = c.partial.Code, c.partial.Text
	}
	// a write error also ends the reader
	_ = c.conn.out.queueControl(appendUint32Frame(nil, frameReset, c.id, uint32(reset)))
	c.complete()
}

// reset ends a call after RST_STREAM or the end of the connection.
func (c *clientCall) reset(code errCode, why error) {
	c.retryable = code == codeRefused
	switch {
	case why != nil:
		c.response = Response{Code: codeUnavailable, Text: why.Error()}
	case code == codeRefused:
		c.response = Response{Code: codeUnavailable, Text: "the server refused the call"}
	case code == codeCancel && !c.deadline.IsZero() && !time.Now().Before(c.deadline):
		// the deadline expired at the server first
		c.response = Response{Code: codeDeadlineExceeded, Text: context.DeadlineExceeded.Error()}
	case code == codeCancel:
		c.response = Response{Code: codeCancelled, Text: "the server cancelled the call"}
	case code == codeEnhanceYourCalm:
		c.response = Response{Code: codeResourceExhausted, Text: "the server is overloaded (ENHANCE_YOUR_CALM)"}
	default:
		c.response = Response{Code: codeInternalError, Text: fmt.Sprintf("Received RST_STREAM with error code %d", code)}
	}
	c.complete()
}

// decompress replaces a compressed message, which the client does not ask for.
func (c *clientCall) decompress() {
	chunks := c.response.Body.(*Chunks) //nolint:forcetypeassert // see inboundMessage.start
	err := fmt.Errorf("unknown encoding %q", c.encoding)
	var body Body
	switch {
	case chunks.refused:
		err = errMemory
	case isCompressed(c.encoding):
		body, err = decompress(c.encoding, chunks.Data(), maxMessage, c.request.NewBody)
	}
	if err != nil {
		c.response = Response{Code: codeInternalError, Text: "the response cannot be decompressed: " + err.Error(), FromServer: true}
		return
	}
	c.response.Body = body
}
