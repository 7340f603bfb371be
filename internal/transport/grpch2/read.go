package grpch2

import (
	"encoding/binary"
	"errors"

	"github.com/weft-ml/weft/internal/sys/failpoint"
)

// readFrame reads one frame and handles it. The caller holds the read token.
func (c *conn) readFrame() error {
	if err := failpoint.Hit("grpch2/read"); err != nil {
		return err
	}
	c.in.r.inFrame = false
	if c.headersFrame.stream == 0 {
		c.in.r.making.end()
	} else {
		c.in.r.making.begin()
	}
	b, err := c.in.next(frameHeaderSize)
	if err != nil {
		return err
	}
	c.in.r.inFrame = true
	h := parseFrameHeader(b)
	c.in.r.making.data = h.kind == frameData
	switch {
	case h.length > ownMaxFrame:
		return sizeError("a frame exceeds SETTINGS_MAX_FRAME_SIZE")
	case !c.settingsRead && (h.kind != frameSettings || h.has(flagAck)):
		return protocolError("the first frame is not SETTINGS")
	case c.headersFrame.stream != 0 && (h.kind != frameContinuation || h.stream != c.headersFrame.stream):
		return protocolError("a frame interrupts a header block")
	case h.kind == frameData:
		return c.readData(h)
	case h.kind > frameContinuation: // a frame type of an extension
		return c.in.skip(h.length)
	case h.length > maxBlock:
		return &connError{codeEnhanceYourCalm, "a frame without data is too large"}
	}
	payload, err := c.in.next(h.length)
	if err != nil {
		return err
	}
	if h.kind == frameHeaders || h.kind == frameContinuation {
		return c.readHeaders(h, payload)
	}
	return c.readControl(h, payload)
}

// readControl handles a frame without data and headers.
func (c *conn) readControl(h frameHeader, payload []byte) error {
	onStream := h.kind == framePriority || h.kind == frameReset
	if h.kind != frameWindowUpdate && onStream != (h.stream != 0) {
		return protocolError("a frame is on the wrong stream")
	}
	if want := fixedSize[h.kind]; want != 0 && len(payload) != want {
		return sizeError("a frame has the wrong size")
	}
	switch h.kind {
	case frameReset:
		return c.readReset(h.stream, errCode(binary.BigEndian.Uint32(payload)))
	case frameSettings:
		return c.readSettings(h, payload)
	case framePing:
		if h.has(flagAck) {
			c.role.pingAcked(binary.BigEndian.Uint64(payload))
			return nil
		}
		c.role.pingRead()
		return c.out.queueControl(appendFrame(nil, framePing, flagAck, 0, payload))
	case frameWindowUpdate:
		return c.readWindowUpdate(h.stream, int64(binary.BigEndian.Uint32(payload)&maxWindow))
	case frameGoAway:
		if len(payload) < 8 {
			return sizeError("a frame has the wrong size")
		}
		c.role.goAwayRead(binary.BigEndian.Uint32(payload)&maxStreamID, errCode(binary.BigEndian.Uint32(payload[4:])), string(payload[8:]))
	case framePushPromise:
		return protocolError("PUSH_PROMISE although push is disabled")
	case framePriority: // otherwise ignored
		if binary.BigEndian.Uint32(payload)&maxStreamID == h.stream {
			return protocolError("a stream depends on itself")
		}
	case frameData, frameHeaders, frameContinuation: // read elsewhere
	}
	return nil
}

// fixedSize maps frame types to the size of their payload, in bytes, if it is fixed.
var fixedSize = map[frameType]int{framePriority: 5, frameReset: 4, framePing: 8, frameWindowUpdate: 4}

func (c *conn) readReset(id uint32, code errCode) error {
	s := c.findStream(id)
	if s == nil {
		if !c.role.wasOpened(id) && !c.role.resetsIdle() {
			return protocolError("RST_STREAM on a stream that was never opened")
		}
	} else if c.removeStream(s) {
		s.in.abandon()
		s.owner.reset(code, nil)
	}
	c.role.resetRead(id)
	if code != codeNone {
		c.role.peerReset(id)
	}
	return nil
}

func (c *conn) readSettings(h frameHeader, payload []byte) error {
	c.settingsRead = true
	if h.has(flagAck) {
		if len(payload) > 0 {
			return sizeError("an acknowledgement of SETTINGS has a payload")
		}
		return nil
	}
	if err := c.applySettings(payload); err != nil {
		return err
	}
	return c.out.queueControl(appendFrame(nil, frameSettings, flagAck, 0, nil))
}

// applySettings applies the settings of the peer. A change of the initial window also applies to
// open streams.
func (c *conn) applySettings(payload []byte) error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	before := c.out.peer.window
	if err := c.out.peer.update(payload); err != nil {
		return err
	}
	added := c.out.peer.window - before
	for _, s := range c.streams {
		if s.flow.window += added; s.flow.window > maxWindow {
			return &connError{codeFlowControl, "a window is too large"}
		}
	}
	c.out.changed.Broadcast()
	return nil
}

func (c *conn) readWindowUpdate(id uint32, n int64) error {
	if id == 0 {
		if n == 0 {
			return protocolError("WINDOW_UPDATE with an increment of 0")
		}
		return c.out.addWindow(nil, n)
	}
	s := c.findStream(id)
	if s == nil {
		if !c.role.wasOpened(id) {
			return protocolError("WINDOW_UPDATE on a stream that was never opened")
		}
		return nil
	}
	if n == 0 {
		return c.abortStream(s, codeProtocol, "WINDOW_UPDATE with an increment of 0")
	}
	if c.out.addWindow(&s.flow, n) != nil {
		return c.abortStream(s, codeFlowControl, "WINDOW_UPDATE beyond the largest window")
	}
	return nil
}

// readHeaders collects the fragments of a header block.
func (c *conn) readHeaders(h frameHeader, payload []byte) error {
	if h.kind == frameHeaders {
		var err error
		if payload, err = unpad(&h, payload); err != nil {
			return err
		}
		if h.has(flagPriority) {
			if len(payload) < 5 {
				return sizeError("HEADERS with the priority flag and no priority")
			}
			if binary.BigEndian.Uint32(payload)&maxStreamID == h.stream {
				return protocolError("a stream depends on itself")
			}
			payload = payload[5:]
		}
		if h.stream == 0 {
			return protocolError("HEADERS on stream 0")
		}
		c.headersFrame = h
	} else if c.headersFrame.stream == 0 {
		return protocolError("CONTINUATION without HEADERS")
	}
	if len(c.headerBlock) == 0 && h.has(flagEndHeaders) {
		return c.dispatch(payload)
	}
	if len(c.headerBlock)+len(payload) > maxBlock || len(payload) == 0 && h.kind == frameContinuation {
		return &connError{codeEnhanceYourCalm, "a header block is too long"}
	}
	c.headerBlock = append(c.headerBlock, payload...)
	if !h.has(flagEndHeaders) {
		return nil
	}
	err := c.dispatch(c.headerBlock)
	c.headerBlock = nil
	return err
}

// dispatch decodes a complete header block and passes it to the role.
func (c *conn) dispatch(block []byte) error {
	h := c.headersFrame
	c.headersFrame = frameHeader{}
	f, err := c.headers.read(block)
	if err != nil {
		return err
	}
	return c.role.headersRead(h.stream, c.findStream(h.stream), f, h.has(flagEndStream))
}

// abortStream ends a stream after a breach of the protocol that concerns only this stream.
func (c *conn) abortStream(s *stream, code errCode, why string) error {
	if c.removeStream(s) {
		s.in.abandon()
		s.owner.abort(codeInternalError, why, code)
	}
	return nil
}

// abortEnded ends a stream with data after its end, or with another amount than was announced.
func (c *conn) abortEnded(s *stream) error {
	if s.peerEnded {
		return c.abortStream(s, codeStreamClosed, "a frame after the end of a stream")
	}
	return c.abortStream(s, codeProtocol, "the data does not have the announced content-length")
}

// readData reads a DATA frame into the memory of its message.
func (c *conn) readData(h frameHeader) error {
	if err := failpoint.Hit("grpch2/read-data"); err != nil {
		return err
	}
	if h.stream == 0 {
		return protocolError("DATA on stream 0")
	}
	if err := c.replenishWindow(h.length); err != nil {
		return err
	}
	left, padding := h.length, 0
	if h.has(flagPadded) {
		b, err := c.in.next(min(1, left))
		if err != nil {
			return err
		}
		if len(b) == 0 || int(b[0]) >= left {
			return protocolError("more padding than payload")
		}
		padding = int(b[0])
		left -= 1 + padding
	}
	s := c.findStream(h.stream)
	if s == nil {
		if !c.role.wasOpened(h.stream) {
			return protocolError("DATA on a stream that was never opened")
		}
		if err := c.in.skip(left + padding); err != nil {
			return err
		}
		return c.role.lateData(h.stream)
	}
	if s.received += int64(left); s.peerEnded || !s.checkLength(h.has(flagEndStream)) {
		if err := c.in.skip(left + padding); err != nil {
			return err
		}
		return c.abortEnded(s)
	}
	if s.in.taken && left > 0 {
		return c.abortCall(s, &callError{codeInternalError, errSecondMessage, left}, left+padding)
	}
	err := s.in.read(c.in, left, s.owner)
	if bad, ok := errors.AsType[*callError](err); ok {
		return c.abortCall(s, bad, bad.unread+padding)
	}
	if err != nil {
		return err
	}
	if err := c.in.skip(padding); err != nil {
		return err
	}
	return c.role.dataRead(s, h.has(flagEndStream))
}

// abortCall ends a call whose message is invalid, and skips the unread rest of the frame.
func (c *conn) abortCall(s *stream, bad *callError, unread int) error {
	if err := c.in.skip(unread); err != nil {
		return err
	}
	if c.removeStream(s) {
		s.in.abandon()
		s.owner.abort(bad.code, bad.text, codeNone)
	}
	return nil
}

// replenishWindow counts n bytes of received data, and sends WINDOW_UPDATE for the connection when
// half of its window is used. Streams need none: their window covers a whole message.
func (c *conn) replenishWindow(n int) error {
	const threshold = ownWindow / 2
	if c.unackedData += int64(n); c.unackedData < threshold {
		return nil
	}
	increment := uint32(c.unackedData)
	c.unackedData = 0
	return c.out.queueControl(appendUint32Frame(nil, frameWindowUpdate, 0, increment))
}
