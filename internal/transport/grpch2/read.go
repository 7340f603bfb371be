package grpch2

import (
	"encoding/binary"
	"errors"
)

// readFrame reads one frame and does what it says.
func (c *conn) readFrame() error {
	c.in.r.within = false
	b, err := c.in.take(frameHeaderSize)
	if err != nil {
		return err
	}
	c.in.r.within = true
	h := parseFrameHeader(b)
	switch {
	case h.length > ownMaxFrame:
		return sizeError("a frame is larger than it may be")
	case !c.greeted && (h.kind != frameSettings || h.has(flagAck)):
		return protocolError("the first frame is not SETTINGS")
	case c.opening.stream != 0 && (h.kind != frameContinuation || h.stream != c.opening.stream):
		return protocolError("headers are interrupted by another frame")
	case h.kind == frameData:
		return c.readData(h)
	case h.kind > frameContinuation: // of an extension
		return c.in.skip(h.length)
	case h.length > maxBlock:
		return &connError{codeEnhanceYourCalm, "a frame is larger than anybody needs"}
	}
	payload, err := c.in.take(h.length)
	if err != nil {
		return err
	}
	if h.kind == frameHeaders || h.kind == frameContinuation {
		return c.readHeaders(h, payload)
	}
	return c.readControl(h, payload)
}

// readControl does what a frame without data or headers says.
func (c *conn) readControl(h frameHeader, payload []byte) error {
	onStream := h.kind == framePriority || h.kind == frameReset
	if h.kind != frameWindowUpdate && onStream != (h.stream != 0) {
		return protocolError("a frame is not on the stream it belongs on")
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
			c.side.ponged()
			return nil
		}
		return c.out.control(appendFrame(nil, framePing, flagAck, 0, payload))
	case frameWindowUpdate:
		return c.readWindowUpdate(h.stream, int64(binary.BigEndian.Uint32(payload)&maxWindow))
	case frameGoAway:
		if len(payload) < 8 {
			return sizeError("a frame has the wrong size")
		}
		c.side.wentAway(binary.BigEndian.Uint32(payload)&maxStreamID, errCode(binary.BigEndian.Uint32(payload[4:])), string(payload[8:]))
	case framePushPromise:
		return protocolError("nobody wants to be pushed anything")
	case framePriority, frameData, frameHeaders, frameContinuation:
		// the first says nothing, the others are read elsewhere
	}
	return nil
}

// fixedSize are the sizes of payloads that have only one.
var fixedSize = map[frameType]int{framePriority: 5, frameReset: 4, framePing: 8, frameWindowUpdate: 4}

func (c *conn) readReset(id uint32, code errCode) error {
	s := c.find(id)
	if s == nil {
		if !c.side.mayBeOver(id) {
			return protocolError("RST_STREAM on a stream that was never opened")
		}
	} else if c.forget(s) {
		s.in.abandon()
		s.owner.reset(code, nil)
	}
	if code != codeNone {
		c.side.givenUp(id)
	}
	return nil
}

func (c *conn) readSettings(h frameHeader, payload []byte) error {
	c.greeted = true
	if h.has(flagAck) {
		if len(payload) > 0 {
			return sizeError("an acknowledgement of settings has some")
		}
		return nil
	}
	if err := c.applySettings(payload); err != nil {
		return err
	}
	return c.out.control(appendFrame(nil, frameSettings, flagAck, 0, nil))
}

// applySettings takes the peer's settings over; its window is also that of streams that are open.
func (c *conn) applySettings(payload []byte) error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	before := c.out.peer.window
	if err := c.out.peer.update(payload); err != nil {
		return err
	}
	wider := c.out.peer.window - before
	for _, s := range c.streams {
		if s.flow.window += wider; s.flow.window > maxWindow {
			return &connError{codeFlowControl, "a window is too large"}
		}
	}
	c.out.changed.Broadcast()
	return nil
}

func (c *conn) readWindowUpdate(id uint32, n int64) error {
	if id == 0 {
		if n == 0 {
			return protocolError("a window is widened by nothing")
		}
		return c.out.grant(nil, n)
	}
	s := c.find(id)
	if s == nil {
		if !c.side.mayBeOver(id) {
			return protocolError("WINDOW_UPDATE on a stream that was never opened")
		}
		return nil
	}
	if n == 0 || c.out.grant(&s.flow, n) != nil {
		return c.breakStream(s, codeFlowControl, "the window of a call was widened wrongly")
	}
	return nil
}

// readHeaders collects a block of headers.
func (c *conn) readHeaders(h frameHeader, payload []byte) error {
	if h.kind == frameHeaders {
		var err error
		if payload, err = unpad(&h, payload); err != nil {
			return err
		}
		if h.has(flagPriority) {
			if len(payload) < 5 {
				return sizeError("HEADERS without the priority that it should have")
			}
			payload = payload[5:]
		}
		if h.stream == 0 {
			return protocolError("HEADERS on the connection")
		}
		c.opening = h
	} else if c.opening.stream == 0 {
		return protocolError("CONTINUATION of nothing")
	}
	if len(c.block) == 0 && h.has(flagEndHeaders) {
		return c.dispatch(payload)
	}
	if len(c.block)+len(payload) > maxBlock || len(payload) == 0 && h.kind == frameContinuation {
		return &connError{codeEnhanceYourCalm, "headers that do not end"}
	}
	c.block = append(c.block, payload...)
	if !h.has(flagEndHeaders) {
		return nil
	}
	err := c.dispatch(c.block)
	c.block = nil
	return err
}

// dispatch hands over a whole block of headers.
func (c *conn) dispatch(block []byte) error {
	h := c.opening
	c.opening = frameHeader{}
	f, err := c.headers.read(block)
	if err != nil {
		return err
	}
	return c.side.headersRead(h.stream, c.find(h.stream), f, h.has(flagEndStream))
}

// breakStream ends a stream whose peer did something wrong in it.
func (c *conn) breakStream(s *stream, code errCode, why string) error {
	if c.forget(s) {
		s.in.abandon()
		s.owner.broken(codeInternalError, why, code)
	}
	return nil
}

// readData reads a frame of data into the memory of its message.
func (c *conn) readData(h frameHeader) error {
	if h.stream == 0 {
		return protocolError("DATA on the connection")
	}
	if err := c.widen(h.length); err != nil {
		return err
	}
	left, padding := h.length, 0
	if h.has(flagPadded) {
		b, err := c.in.take(min(1, left))
		if err != nil {
			return err
		}
		if len(b) == 0 || int(b[0]) >= left {
			return protocolError("more padding than payload")
		}
		padding = int(b[0])
		left -= 1 + padding
	}
	s := c.find(h.stream)
	if s == nil {
		if !c.side.mayBeOver(h.stream) {
			return protocolError("DATA on a stream that was never opened")
		}
		return c.in.skip(left + padding)
	}
	err := s.in.read(&c.in, left, s.owner.room)
	if bad, ok := errors.AsType[*callError](err); ok {
		return c.breakCall(s, bad, bad.unread+padding)
	}
	if err != nil {
		return err
	}
	if err := c.in.skip(padding); err != nil {
		return err
	}
	if h.has(flagEndStream) {
		return c.side.messageRead(s)
	}
	return nil
}

// breakCall ends a call whose message is wrong, of which some bytes are still to be read.
func (c *conn) breakCall(s *stream, bad *callError, unread int) error {
	if err := c.in.skip(unread); err != nil {
		return err
	}
	if c.forget(s) {
		s.in.abandon()
		s.owner.broken(bad.code, bad.text, codeNone)
	}
	return nil
}

// widen lets the peer send more, now and then. Streams have all the window that a message needs.
func (c *conn) widen(n int) error {
	const enough = ownWindow / 2
	if c.received += int64(n); c.received < enough {
		return nil
	}
	more := uint32(c.received)
	c.received = 0
	return c.out.control(appendUint32Frame(nil, frameWindowUpdate, 0, more))
}
