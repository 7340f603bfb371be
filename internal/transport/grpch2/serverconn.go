package grpch2

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/mono"
)

const (
	// handshakeTimeout is the default of Limits.Handshake.
	handshakeTimeout = 20 * time.Second
	// minTurnaround is the shortest time in which a client can read a response and send the next
	// request. A request that arrives sooner was sent concurrently.
	minTurnaround = 20 * time.Microsecond
)

// Limits on the duration of calls that the reader serves itself; see canServeInline.
const (
	// inlineLimitBusy applies while other calls wait. It is about the time to wake a goroutine for
	// each of them.
	inlineLimitBusy = 100 * time.Microsecond
	// inlineLimit applies otherwise. A request queued behind such a call rarely waits longer.
	inlineLimit = time.Millisecond
)

// serverConn is a connection of a server.
type serverConn struct {
	conn
	server *Server

	calls           callCounters
	activeCalls     atomic.Int32   // calls that have not been answered
	lastReply       atomic.Int64   // time of the last reply, by mono.Nanos
	concurrentCalls frequencyGauge // a request arrives while another is served
	// the input buffer has another request; guarded by the read token
	moreBuffered bool
	stats        []methodStats // by method.index
	caller       *Caller       // of the last call; guarded by the read token
	userAgent    string        // that caller was made for; guarded by the read token
	rollbacks    []rollback    // of the calls answered last; guarded by out.mu
	history      streamHistory // guarded by the read token
	draining     atomic.Bool   // new streams are ignored
	retiring     atomic.Bool   // GOAWAY was sent because the connection is idle
	task         atomic.Bool   // the client has called a method for tasks
	ip           netip.Addr    // of the client
	watch        watch
	number       uint64      // of the connection, in the order of admission
	name         string      // of the client, counted in server.byName; guarded by server.mu
	used         atomic.Bool // the client has made a call
	evicted      bool        // guarded by server.mu
	announced    bool        // announceWeft was called; guarded by the read token
	weft         atomic.Bool // the client is Weft
	pinged       atomic.Bool // the client has sent a PING
}

func newServerConn(s *Server, nc net.Conn) *serverConn {
	c := &serverConn{server: s, ip: remoteIP(nc), stats: make([]methodStats, len(s.methods))}
	c.init(nc, c)
	c.token.init(c.readAll)
	return c
}

// methodStats describes the recent calls of one method on one connection.
type methodStats struct {
	overBusyLimit frequencyGauge // calls take longer than inlineLimitBusy
	overLimit     frequencyGauge // calls take longer than inlineLimit
}

// record adds the duration of a call.
func (m *methodStats) record(took time.Duration) {
	m.overBusyLimit.record(took > inlineLimitBusy)
	m.overLimit.record(took > inlineLimit)
}

// run performs the handshake and reads the connection.
func (c *serverConn) run() {
	if err := c.handshake(); err != nil {
		c.shutdown(c.handshakeError(err))
		return
	}
	if c.releaseDuring(c.out.flush) == nil { // acknowledges the settings of the client
		c.readAll()
	}
}

// handshake reads the connection preface and the first SETTINGS, and sends the settings.
func (c *serverConn) handshake() error {
	if err := failpoint.Hit("grpch2/server-handshake"); err != nil {
		return err
	}
	limit := cmp.Or(c.server.Limits.Handshake, handshakeTimeout)
	deadline := time.Now().Add(limit)
	if err := c.secureHandshake(deadline); err != nil {
		return err
	}
	if err := c.server.admitName(c); err != nil {
		return err
	}
	if err := c.nc.SetReadDeadline(deadline); err != nil {
		return err
	}
	c.in.r.strict = true
	defer func() { c.in.r.strict = false }()
	b, err := c.in.next(len(preface))
	if err != nil {
		return err
	}
	if string(b) != preface {
		return errors.New("http2: the connection preface is missing")
	}
	if err := c.out.queueControl(appendOwnSettings(nil, true, c.streamLimit())); err != nil {
		return err
	}
	c.out.flush()
	for !c.settingsRead {
		if err := c.readFrame(); err != nil {
			return err
		}
	}
	return c.nc.SetReadDeadline(time.Time{})
}

func (c *serverConn) closed(error) {
	c.token.stop()
	c.rollBackUnconfirmed()
	c.server.removeConn(c)
}

func (c *serverConn) wasOpened(id uint32) bool { return id%2 == 1 && id <= c.lastStream }

// resetsIdle reports whether the client may reset streams that it has not opened.
//
// HTTP/2 makes such a frame an error of the connection, which ends all calls of the client. But
// gRPC's C core sends it, in all releases up to 1.66 at least: it numbers the stream of a call, and
// when the call is cancelled before its headers are written, it writes RST_STREAM alone. The
// masters of TensorFlow cancel calls so when a step has failed. The C core is known by a setting,
// and its first releases by the user-agent of a call.
func (c *serverConn) resetsIdle() bool {
	if c.caller != nil && c.caller.ResetsIdleStreams {
		return true
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.out.peer.coreGRPC
}

func (c *serverConn) goAwayRead(uint32, errCode, string) {}

// headersRead starts a call.
func (c *serverConn) headersRead(id uint32, s *stream, f *fields, end bool) error {
	if err := failpoint.Hit("grpch2/request-headers"); err != nil {
		return err
	}
	switch {
	case id%2 == 0:
		return protocolError("a client's stream has an even number")
	case s != nil:
		return c.trailersRead(s, f, end)
	case id <= c.lastStream:
		return c.lateHeaders(id)
	}
	if !c.used.Load() {
		c.used.Store(true)
	}
	c.history.open(id, c.lastStream)
	c.lastStream = id
	if end {
		c.history.end(id)
	}
	if c.draining.Load() {
		return nil // GOAWAY has told the client that it is not served
	}
	if c.atStreamLimit() {
		c.server.hit(LimitStreams)
		return c.out.queueControl(appendUint32Frame(nil, frameReset, id, uint32(codeRefused)))
	}
	if !f.tooLarge() && f.checkRequest() != "" {
		return c.out.queueControl(appendUint32Frame(nil, frameReset, id, uint32(codeProtocol)))
	}
	if err := c.announceWeft(f.userAgent); err != nil {
		return err
	}
	call := &Call{conn: c, encoding: f.encoding, caller: c.identify(f), path: f.path, traced: f.traced}
	c.calls.started.Add(1)
	call.id, call.owner, call.contentLength = id, call, f.contentLength
	if outcome := call.validate(f); outcome.Code != codeOK {
		c.calls.end(outcome.Code)
		if o := c.server.Observer; o != nil {
			o.CallRefused(call.knownPath(), call.caller.Name, outcome.Code)
		}
		return c.refuse(call, outcome, end, codeNone)
	}
	if call.httpStatus == "" && call.method.Audience == Tasks && !c.task.Load() {
		if err := c.calledAsTask(); err != nil {
			return err
		}
	}
	if err := call.start(f.timeout); err != nil {
		return c.refuse(call, failure(codeInternalError, err.Error()), end, codeNone)
	}
	if call.httpStatus != "" {
		call.in.abandon() // the data is skipped
	}
	c.out.mu.Lock()
	c.addStream(&call.stream)
	c.watch.last = id
	c.out.mu.Unlock()
	if call.httpStatus == "" && call.method.Streaming {
		c.startStream(call)
	}
	if end {
		return c.dataRead(&call.stream, true)
	}
	return nil
}

// errLateHeaders ends a connection whose client sends HEADERS on a stream that it has ended. It is
// the same before and after the last frame of the answer: a client could not tell which it will be.
var errLateHeaders = &connError{codeStreamClosed, "HEADERS after the end of a stream"}

// trailersRead handles the trailers of a request, which carry nothing.
func (c *serverConn) trailersRead(s *stream, f *fields, end bool) error {
	switch bad := f.checkTrailers(); {
	case s.peerEnded:
		return errLateHeaders
	case !end:
		return c.abortStream(s, codeProtocol, "headers within a call")
	case bad != "":
		return c.abortStream(s, codeProtocol, bad)
	case !s.checkLength(true):
		return c.abortEnded(s)
	}
	return c.dataRead(s, true)
}

// lateHeaders handles HEADERS on a stream that is not open any more. It ignores them if the server
// has reset the stream: they may have crossed RST_STREAM.
func (c *serverConn) lateHeaders(id uint32) error {
	switch c.history.state(id, c.lastStream) {
	case neverOpened:
		return protocolError("a stream has a lower number than an earlier one")
	case endedByClient:
		return errLateHeaders
	case endedHere:
	}
	return nil
}

// lateData is lateHeaders for DATA, which is an error of the stream only.
func (c *serverConn) lateData(id uint32) error {
	if c.history.state(id, c.lastStream) != endedByClient {
		return nil
	}
	return c.out.queueControl(appendUint32Frame(nil, frameReset, id, uint32(codeStreamClosed)))
}

func (c *serverConn) resetRead(id uint32) {
	if id <= c.lastStream {
		c.history.end(id)
	}
}

// atStreamLimit reports whether the client has as many calls in progress as the server allows.
func (c *serverConn) atStreamLimit() bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	limit := c.streamLimit()
	return len(c.streams) >= limit || int(c.activeCalls.Load()) >= limit
}

// identify returns the caller of a call. Clients rarely share a connection, so the caller of the
// last call is kept.
func (c *serverConn) identify(f *fields) *Caller {
	if c.caller == nil || f.userAgent != c.userAgent {
		caller := c.server.Identify(c.nc, f.userAgent)
		c.caller, c.userAgent = &caller, f.userAgent
	}
	return c.caller
}

// refuse answers a call that is not served. If the client has not ended its stream, reset is the
// code of RST_STREAM.
func (c *serverConn) refuse(call *Call, o Outcome, end bool, reset errCode) error {
	block := o.appendTrailer(appendResponse(nil), call.caller.RawMessages)
	if o.Code == codeUnimplemented {
		block = appendField(block, "grpc-accept-encoding", acceptedEncodings)
	}
	frames := appendHeaders(nil, call.id, block, true)
	if !end {
		frames = appendUint32Frame(frames, frameReset, call.id, uint32(reset))
	}
	return c.out.queueControl(frames)
}

// appendResponse appends the header fields that start every response.
func appendResponse(b []byte) []byte {
	return appendNamed(appendIndexed(b, staticStatus200), staticContentType, contentType)
}

// dataRead serves a call when its message is complete.
//
// The simple design serves a call when the client ends its half of the stream. The masters of
// TensorFlow 1.4 never do: they send one message and wait for the response. So a call is served as
// soon as its message is complete. If the frame that ends the stream is in the input buffer, it is
// read first. Reply resets a stream whose client half is still open, so that both ends forget it.
func (c *serverConn) dataRead(s *stream, end bool) error {
	call := s.owner.(*Call) //nolint:forcetypeassert // nothing else opens streams here
	if end {
		s.peerEnded = true
		c.history.end(s.id)
		c.out.mu.Lock()
		call.requestEnded = true
		s.sweeps = 0
		c.out.mu.Unlock()
	}
	switch {
	case call.requests != nil:
		return c.streamRead(call, end)
	case call.httpStatus != "":
		if end {
			c.server.running.Add(1)
			c.activeCalls.Add(1)
			c.server.dispatch(job{call, false})
		}
		return nil
	case s.in.taken:
		return nil
	case s.in.complete():
		if !end && c.in.nextEnds(s.id) {
			return nil
		}
		return c.startCall(call)
	case end && c.removeStream(s):
		s.in.abandon()
		call.abort(codeInternalError, "a request without a whole message", codeNone)
	}
	return nil
}

// startCall serves a call: on this goroutine, or by the worker pool.
func (c *serverConn) startCall(call *Call) error {
	s := &call.stream
	compressed := s.in.compressed
	var ok bool
	if call.body, ok = s.in.take(); !ok {
		return nil
	}
	if !s.peerEnded {
		c.out.mu.Lock()
		call.started = true
		c.out.mu.Unlock()
	}
	call.observeStart()
	inline := c.canServeInline(call.method) && !compressed
	c.server.running.Add(1)
	c.activeCalls.Add(1)
	if inline {
		call.mayDelay = c.moreBuffered
		return c.releaseDuring(func() { c.serve(call, compressed) })
	}
	c.server.dispatch(job{call, compressed})
	return nil
}

// canServeInline decides whether the reader serves a call itself.
//
// The simple design hands each call to another goroutine. The handoff wakes a thread: a server that
// only echoes bytes takes 102 µs per call with it and 53 µs without. But while the reader serves a
// call, the requests behind it wait. The decision balances the two:
//
//   - Methods that are not Short are never inline.
//   - While other calls are in progress, or often are (concurrentCalls), only methods whose calls
//     rarely exceed 100 µs are inline. That is about the cost of waking a goroutine.
//   - Otherwise the limit is 1 ms.
//
// Requests that arrived in one read do not count as concurrent. They usually belong to one step,
// which asks a task to run its part and then for the tensors it produces, so serving them in order
// loses nothing.
func (c *serverConn) canServeInline(m *method) bool {
	sameRead, busy := c.moreBuffered, c.activeCalls.Load() > 0
	c.moreBuffered = c.in.hasCompleteMessage()
	if !sameRead {
		c.concurrentCalls.record(busy || mono.Nanos()-c.lastReply.Load() < int64(minTurnaround))
	}
	switch stats := &c.stats[m.index]; {
	case !m.Short:
		return false
	case busy || c.concurrentCalls.frequent():
		return !stats.overBusyLimit.frequent()
	default:
		return !stats.overLimit.frequent()
	}
}

// serve runs the handler of a call.
func (c *serverConn) serve(call *Call, compressed bool) {
	defer c.server.running.Done()
	if call.httpStatus != "" {
		_ = call.Reply(Outcome{})
		return
	}
	if compressed && !call.decompress() {
		return
	}
	// a cancelled call must not take effect after the caller's next request
	if call.ctx.Err() != nil {
		if call.body != nil {
			call.body.Discard()
		}
		late := localResponse(call.ctx, nil)
		_ = call.Reply(failure(late.Code, late.Text))
		return
	}
	start := mono.Nanos()
	call.method.Serve(call)
	c.stats[call.method.index].record(time.Duration(mono.Nanos() - start))
}

// shuttingDown is the reason of GOAWAY when a server stops.
const shuttingDown = "the server is shutting down"

// drain asks the client to open no further streams. The answer to the PING shows that the client
// has seen the GOAWAY; pingAcked then fixes the last stream that is served.
func (c *serverConn) drain(code errCode, why string) {
	frames := goAway(maxStreamID, code, why)
	frames = appendFrame(frames, framePing, 0, 0, make([]byte, 8))
	_ = c.out.queueControl(frames) // a write error also ends the reader
	c.out.flush()
}

func (c *serverConn) pingRead() { c.pinged.Store(true) }

// pingAcked handles the answer to a PING of confirmDelivery, or of drain. After the latter it
// refuses streams, and announces the last one that is served.
func (c *serverConn) pingAcked(payload uint64) {
	if payload != 0 {
		c.delivered(payload)
		return
	}
	why := shuttingDown
	if !c.server.isStopping() {
		if !c.retiring.Load() {
			return
		}
		why = "the connection is no longer used"
	}
	if c.draining.Swap(true) {
		return
	}
	_ = c.out.queueControl(goAway(c.lastStream, codeNone, why))
	c.closeWhenDrained()
}

// closeWhenDrained closes a draining connection after its last call.
func (c *serverConn) closeWhenDrained() {
	if !c.draining.Load() {
		return
	}
	if !c.hasStreams() {
		c.out.flushAndWait()
		c.nc.Close()
	}
}
