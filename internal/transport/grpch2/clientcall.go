package grpch2

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// clientCall is one call on its way.
type clientCall struct {
	stream
	conn     *clientConn
	request  *Request
	deadline time.Time // zero if there is none

	// Of who reads, until done.
	begun    bool // headers have come
	encoding string
	arriving Response

	// Of who ended the stream, until done.
	response Response
	unseen   bool // the server has not looked at the call, which may be made again

	done chan struct{} // gets a value when response is there

	// Of a call that nobody waits for.
	then    func(Response)
	ctx     context.Context
	unwatch func() bool // stops watching ctx; nil if that never ends
}

func newClientCall(c *clientConn, r *Request) *clientCall {
	call := &clientCall{conn: c, request: r, done: make(chan struct{}, 1)}
	call.owner = call
	return call
}

// run makes the call and returns its response.
func (c *clientCall) run(ctx context.Context) Response {
	c.deadline, _ = ctx.Deadline()
	if err := ctx.Err(); err != nil {
		return unanswered(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { c.giveUp(ctx) })
	defer stop()
	if err := c.send(); err != nil {
		c.fail(err)
	}
	callers.Add(1)
	c.wait()
	callers.Add(-1)
	if c.response.Code == codeOK && c.in.compressed {
		c.decompress()
	}
	return c.response
}

func (c *clientCall) send() error {
	return c.conn.out.send(&c.stream, c, prefixed(0, c.request.Data), c.request.MayDelay && c.then != nil)
}

// appendHead opens the stream.
func (c *clientCall) appendHead(b []byte) []byte {
	c.id = c.conn.next
	c.conn.next += 2
	c.conn.open(&c.stream)
	var block [256]byte
	fields := appendIndexed(appendIndexed(block[:0], staticMethodPOST), staticSchemeHTTP)
	fields = appendNamed(fields, staticPath, c.request.Path)
	fields = appendNamed(fields, staticAuthority, c.conn.client.authority)
	fields = appendNamed(fields, staticContentType, contentType)
	fields = appendField(fields, "te", "trailers")
	if !c.deadline.IsZero() {
		fields = appendField(fields, "grpc-timeout", formatTimeout(time.Until(c.deadline)))
	}
	return appendHeaders(b, c.id, fields, false)
}

func (c *clientCall) appendTail(b []byte) []byte { return b }

func (c *clientCall) mayStart() (bool, error) {
	switch {
	case c.conn.away || c.conn.next > maxStreamID:
		return false, errGoneAway
	case len(c.conn.streams) >= int(min(c.conn.out.peer.streams, maxStreamID)):
		return false, nil
	}
	return true, nil
}

var errGoneAway = errors.New("the connection takes no more calls")

// wait returns when the call is over. If nobody reads the connection, it does.
func (c *clientCall) wait() {
	if c.conn.turn.back() {
		c.read()
	} else {
		<-c.done
	}
}

// read reads the connection until the call is over.
func (c *clientCall) read() {
	c.conn.in.r.lookout.polite = false
	for {
		select {
		case <-c.done:
			c.conn.yield()
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
	if !c.conn.forget(&c.stream) {
		return
	}
	c.response = c.arriving
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
	if c.then != nil {
		c.conclude()
		return
	}
	c.signal()
}

func (c *clientCall) takeBody() (Body, bool) {
	if !c.in.complete() {
		return nil, false
	}
	return c.in.take()
}

// signal says that the response is there.
func (c *clientCall) signal() {
	if c.then != nil {
		go c.conclude()
		return
	}
	c.done <- struct{}{}
}

// take looks at headers, and returns what is wrong with them.
func (c *clientCall) take(f *fields, end bool) string {
	if !c.begun {
		c.begun = true
		c.encoding = f.encoding
		switch {
		case f.status != "200":
			c.arriving.Code, c.arriving.Text = codeOfHTTP(f.status), "unexpected HTTP status code received from server: "+f.status
			return c.endBadly(end)
		case !strings.HasPrefix(f.contentType, contentType):
			c.arriving.Code, c.arriving.Text = codeUnknown, fmt.Sprintf("unexpected content-type %q", f.contentType)
			return c.endBadly(end)
		}
	} else if !end {
		return "headers within a response"
	}
	if end {
		c.takeStatus(f)
	}
	return ""
}

// endBadly ends a call that something answered that does not speak gRPC.
func (c *clientCall) endBadly(end bool) string {
	if end {
		return ""
	}
	return c.arriving.Text
}

func (c *clientCall) takeStatus(f *fields) {
	code, err := strconv.ParseUint(f.code, 10, 32)
	if err != nil {
		if c.arriving.Code == codeOK {
			c.arriving.Code, c.arriving.Text = codeUnknown, "the response has no status"
		}
		return
	}
	c.arriving.Code, c.arriving.Text = uint32(code), unescape(f.text)
	c.arriving.Trailer = append([]Field(nil), f.binary...)
}

// codeOfHTTP returns the code that gRPC gives to a status of HTTP.
func codeOfHTTP(status string) uint32 {
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
	if !c.conn.forget(&c.stream) {
		return
	}
	c.in.abandon()
	c.unseen = c.id == 0
	c.response = Response{Code: codeUnavailable, Text: err.Error()}
	c.signal()
	c.conn.client.retire(c.conn)
	if !errors.Is(err, errGoneAway) {
		c.conn.nc.Close() // whoever reads ends the rest
	}
}

// giveUp ends a call whose caller no longer wants it.
func (c *clientCall) giveUp(ctx context.Context) {
	if !c.conn.forget(&c.stream) {
		return
	}
	c.in.abandon()
	c.response = unanswered(ctx, ctx.Err())
	if c.id != 0 { // before the caller goes on, who may close the connection
		// an error shows when the connection is read
		_ = c.conn.out.control(appendUint32Frame(nil, frameReset, c.id, uint32(codeCancel)))
	}
	c.signal()
	c.conn.interrupt()
	c.conn.out.drain()
	c.conn.closeWhenDone()
}

func (c *clientCall) room(size int) Body { return c.request.NewBody(size) }

func (c *clientCall) broken(code uint32, text string, reset errCode) {
	c.response = Response{Code: code, Text: text, FromServer: true}
	if c.arriving.Code != codeOK {
		c.response.Code, c.response.Text = c.arriving.Code, c.arriving.Text
	}
	// an error shows when the connection is read
	_ = c.conn.out.control(appendUint32Frame(nil, frameReset, c.id, uint32(reset)))
	c.signal()
}

// reset ends a call that the server, or the end of the connection, ended.
func (c *clientCall) reset(code errCode, why error) {
	c.unseen = code == codeRefused
	switch {
	case why != nil:
		c.response = Response{Code: codeUnavailable, Text: why.Error()}
	case code == codeRefused:
		c.response = Response{Code: codeUnavailable, Text: "the server refused the call"}
	case code == codeCancel && !c.deadline.IsZero() && !time.Now().Before(c.deadline):
		// the server saw it first
		c.response = Response{Code: codeDeadlineExceeded, Text: context.DeadlineExceeded.Error()}
	case code == codeCancel:
		c.response = Response{Code: codeCancelled, Text: "the server cancelled the call"}
	case code == codeEnhanceYourCalm:
		c.response = Response{Code: codeResourceExhausted, Text: "the server has too much to do"}
	default:
		c.response = Response{Code: codeInternalError, Text: fmt.Sprintf("Received RST_STREAM with error code %d", code)}
	}
	c.signal()
}

// decompress replaces a message that came compressed, though nobody asked for that.
func (c *clientCall) decompress() {
	chunks := c.response.Body.(*Chunks) //nolint:forcetypeassert // see incoming.begin
	err := fmt.Errorf("the encoding %q is unknown", c.encoding)
	var body Body
	if compressed(c.encoding) {
		body, err = decompress(c.encoding, chunks.Data(), c.request.NewBody)
	}
	if err != nil {
		c.response = Response{Code: codeInternalError, Text: "the response cannot be decompressed: " + err.Error(), FromServer: true}
		return
	}
	c.response.Body = body
}
