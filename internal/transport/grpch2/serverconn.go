package grpch2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
)

const (
	// greetingTime is how long a client may take for its first bytes.
	greetingTime = 20 * time.Second
	// turnaround is the least time in which a client can take a response and send the next request.
	// What comes sooner had been waiting.
	turnaround = 20 * time.Microsecond
)

// How long a call may take that is served in the turn to read.
const (
	// ofMany is for calls while others wait: about as long as waking a goroutine for each.
	ofMany = 100 * time.Microsecond
	// ofSome is for all others: less than anybody minds who asks next.
	ofSome = time.Millisecond
)

// serverConn is a connection of a server.
type serverConn struct {
	conn
	server *Server

	serving  atomic.Int32 // calls that have not been answered
	answered atomic.Int64 // when the last one was, since epoch
	crowded  habit        // calls come while others are served
	more     bool         // what has been read has another request in it; of who has the turn
	paces    []pace       // by method
	served   *pace        // of the call that is served in the turn; of who has it
	undos    []undo       // guarded by out.mu; of the calls that were answered last
	draining atomic.Bool  // set when no stream is accepted any more
}

func newServerConn(s *Server, nc net.Conn) *serverConn {
	c := &serverConn{server: s, paces: make([]pace, len(s.methods))}
	c.init(nc, c)
	c.turn.start(c.takeOver)
	return c
}

// takeOver reads in place of who has been away for too long, serving a call or writing.
func (c *serverConn) takeOver() {
	if c.served != nil {
		c.served.ban.lost()
		c.served = nil
	}
	c.readAll()
}

// pace is how long calls take.
type pace struct {
	beyondMany, beyondSome habit
	ban                    ban
}

func (p *pace) note(took time.Duration) {
	p.beyondMany.note(took > ofMany)
	p.beyondSome.note(took > ofSome)
}

// run greets the client and reads what it sends.
func (c *serverConn) run() {
	if err := c.greet(); err != nil {
		c.end(err)
		return
	}
	c.readAll()
}

func (c *serverConn) greet() error {
	if err := c.nc.SetReadDeadline(time.Now().Add(greetingTime)); err != nil {
		return err
	}
	b, err := c.in.take(len(preface))
	if err != nil {
		return err
	}
	if string(b) != preface {
		return errors.New("http2: a client speaks another protocol")
	}
	if err := c.out.control(appendOwnSettings(nil, true)); err != nil {
		return err
	}
	c.out.drain()
	return c.nc.SetReadDeadline(time.Time{})
}

func (c *serverConn) ended(error) {
	c.turn.stop()
	c.server.remove(c)
}

func (c *serverConn) mayBeOver(id uint32) bool { return id%2 == 1 && id <= c.last }

func (c *serverConn) wentAway(uint32, errCode, string) {}

// headersRead begins a call.
func (c *serverConn) headersRead(id uint32, s *stream, f *fields, end bool) error {
	switch {
	case id%2 == 0:
		return protocolError("a client's stream has an even number")
	case s != nil && !end:
		return c.breakStream(s, codeProtocol, "headers within a call")
	case s != nil: // trailers of a request, which say nothing
		return c.messageRead(s)
	case id <= c.last: // it has been answered already
		return nil
	}
	c.last = id
	if c.draining.Load() {
		return nil // the client knows that it is not answered
	}
	if c.full() {
		return c.out.control(appendUint32Frame(nil, frameReset, id, uint32(codeRefused)))
	}
	call := &Call{conn: c, encoding: f.encoding}
	call.id, call.owner = id, call
	if status, outcome := call.check(f); status != "" || outcome.Code != codeOK {
		return c.refuse(id, status, outcome, end, codeNone)
	}
	if err := call.begin(f.timeout); err != nil {
		return c.refuse(id, "", failure(codeInternalError, err.Error()), end, codeNone)
	}
	c.out.mu.Lock()
	c.open(&call.stream)
	c.out.mu.Unlock()
	if end {
		return c.messageRead(&call.stream)
	}
	return nil
}

// full reports whether the client has as many calls under way as it may.
func (c *serverConn) full() bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return len(c.streams) >= ownMaxStreams || c.serving.Load() >= ownMaxStreams
}

// check looks at the headers of a call. It returns the HTTP status with which to refuse what is no
// call of gRPC's.
func (c *Call) check(f *fields) (status string, _ Outcome) {
	c.method = c.conn.server.methods[f.path]
	switch {
	case f.tooLarge():
		return "", failure(codeResourceExhausted, fmt.Sprintf("metadata is larger than %d bytes", ownMaxHeaderList))
	case f.method != "POST":
		return "405", Outcome{}
	case !strings.HasPrefix(f.contentType, contentType):
		return "415", Outcome{}
	case c.method == nil:
		return "", failure(codeUnimplemented, "unknown method "+f.path)
	case !known(f.encoding):
		return "", failure(codeUnimplemented, fmt.Sprintf("Compression algorithm '%s' is not supported.", f.encoding))
	}
	return "", Outcome{}
}

// begin starts the life of a call.
func (c *Call) begin(timeout string) error {
	if timeout == "" {
		c.ctx, c.cancel = context.WithCancel(context.Background())
		return nil
	}
	d, ok := parseTimeout(timeout)
	if !ok {
		return fmt.Errorf("malformed grpc-timeout %q", timeout)
	}
	c.ctx, c.cancel = context.WithTimeout(context.Background(), d)
	return nil
}

// refuse answers a call that is not served.
func (c *serverConn) refuse(id uint32, status string, o Outcome, end bool, reset errCode) error {
	var block []byte
	if status != "" {
		block = appendNamed(nil, staticStatus200, status)
	} else {
		block = o.appendTrailer(appendResponse(nil))
		if o.Code == codeUnimplemented {
			block = appendField(block, "grpc-accept-encoding", acceptedEncodings)
		}
	}
	frames := appendHeaders(nil, id, block, true)
	if !end {
		frames = appendUint32Frame(frames, frameReset, id, uint32(reset))
	}
	return c.out.control(frames)
}

// appendResponse appends the headers that every response starts with.
func appendResponse(b []byte) []byte {
	return appendNamed(appendIndexed(b, staticStatus200), staticContentType, contentType)
}

// messageRead serves a call.
func (c *serverConn) messageRead(s *stream) error {
	call := s.owner.(*Call) //nolint:forcetypeassert // nothing else opens streams here
	if !s.in.complete() {
		if c.forget(s) {
			s.in.abandon()
			call.broken(codeInternalError, "a request without a whole message", codeNone)
		}
		return nil
	}
	compressed := s.in.compressed
	var ok bool
	if call.body, ok = s.in.take(); !ok {
		return nil
	}
	here := c.mayServe(call.method) && !compressed
	c.server.running.Add(1)
	c.serving.Add(1)
	if here {
		call.canWait = c.more
		p := &c.paces[call.method.index]
		c.served = p
		if err := c.during(func() { c.serve(call, compressed) }); err != nil {
			return err
		}
		c.served = nil
		p.ban.keep()
		return nil
	}
	c.server.serve(work{call, compressed})
	return nil
}

// mayServe reports whether to serve a call in the turn to read: if such calls are short enough for
// what else there is to do. Calls that came in one piece are no crowd. Most likely they are of one
// step, which asks a task to run its part and then for what that makes, so that nothing is lost by
// serving them one after the other.
func (c *serverConn) mayServe(m *method) bool {
	together, meanwhile := c.more, c.serving.Load() > 0
	c.more = c.in.hasRequest()
	if !together {
		c.crowded.note(meanwhile || mono.Nanos()-c.answered.Load() < int64(turnaround))
	}
	switch p := &c.paces[m.index]; {
	case !m.Short || !p.ban.over():
		return false
	case meanwhile || c.crowded.is():
		return !p.beyondMany.is()
	default:
		return !p.beyondSome.is()
	}
}

// serve lets the method answer.
func (c *serverConn) serve(call *Call, compressed bool) {
	defer c.server.running.Done()
	if compressed && !call.decompress() {
		return
	}
	if call.ctx.Err() != nil { // what the caller asks for next may undo what this would do
		call.body.Discard()
		late := unanswered(call.ctx, nil)
		_ = call.Reply(failure(late.Code, late.Text))
		return
	}
	start := mono.Nanos()
	call.method.Serve(call)
	c.paces[call.method.index].note(time.Duration(mono.Nanos() - start))
}

func (c *Call) decompress() bool {
	chunks := c.body.(*Chunks) //nolint:forcetypeassert // see incoming.begin
	if !compressed(c.encoding) {
		_ = c.Reply(failure(codeInternalError, "a message is compressed, and its headers do not say how"))
		return false
	}
	body, err := decompress(c.encoding, chunks.Data(), c.method.NewBody)
	if err != nil {
		_ = c.Reply(failure(codeInternalError, "a message cannot be decompressed: "+err.Error()))
		return false
	}
	c.body = body
	return true
}

// Reply answers the call, which ends with that. The memory of the data is free again when it
// returns. An error says that the caller is gone and will not see the answer.
func (c *Call) Reply(o Outcome) error {
	c.outcome = o
	var data [][]byte
	if o.Code == codeOK {
		data = c.message(o.Data)
	}
	if !c.streaming {
		c.conn.serving.Add(-1) // from now on, the client may have its answer and call again
	}
	c.conn.answered.Store(mono.Nanos())
	err := c.conn.out.send(&c.stream, c, data, c.canWait)
	c.conn.forget(&c.stream)
	c.cancel()
	c.conn.closeWhenDrained()
	return err
}

// message returns a message with its prefix, compressed if the request was.
func (c *Call) message(data [][]byte) [][]byte {
	if compressed(c.encoding) {
		if small, err := compress(c.encoding, data); err == nil {
			return prefixed(compressFlag, small)
		}
		c.encoding = ""
	}
	return prefixed(0, data)
}

func (c *Call) mayStart() (bool, error) { return true, nil }

// appendHead appends the headers of a response that has data.
func (c *Call) appendHead(b []byte) []byte {
	if c.outcome.Code != codeOK || c.streaming {
		return b
	}
	var block [64]byte
	fields := appendResponse(block[:0])
	if compressed(c.encoding) {
		fields = appendField(fields, "grpc-encoding", c.encoding)
	}
	return appendHeaders(b, c.id, fields, false)
}

// appendTail appends the trailers of a response, which are its headers, too, if it has no data.
func (c *Call) appendTail(b []byte) []byte {
	var block [128]byte
	fields := block[:0]
	if c.outcome.Code != codeOK && !c.streaming {
		fields = appendResponse(fields)
	}
	return appendHeaders(b, c.id, c.outcome.appendTrailer(fields), true)
}

func (c *Call) room(size int) Body { return c.method.NewBody(size) }

// broken answers a call whose request was wrong.
func (c *Call) broken(code uint32, text string, reset errCode) {
	c.cancel()
	// an error shows when the connection is read
	_ = c.conn.refuse(c.id, "", failure(code, text), false, reset)
}

func (c *Call) reset(errCode, error) { c.cancel() }

// drain ends the connection when its calls have been answered. The client learns first that it
// should go elsewhere, and when it has had the time to, which calls came too late.
func (c *serverConn) drain() {
	frames := goAway(maxStreamID, codeNone, "the server is shutting down")
	frames = appendFrame(frames, framePing, 0, 0, make([]byte, 8))
	_ = c.out.control(frames) // an error shows when the connection is read
	c.out.drain()
}

// ponged ends the time in which calls still come.
func (c *serverConn) ponged() {
	if !c.server.isStopping() || c.draining.Swap(true) {
		return
	}
	_ = c.out.control(goAway(c.last, codeNone, "the server is shutting down"))
	c.closeWhenDrained()
}

// closeWhenDrained closes the connection after its last call.
func (c *serverConn) closeWhenDrained() {
	if !c.draining.Load() {
		return
	}
	if !c.busy() {
		c.out.complete()
		c.nc.Close()
	}
}
