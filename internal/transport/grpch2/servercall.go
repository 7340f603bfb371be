package grpch2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weft-ml/weft/internal/sys/mono"
)

// validate checks the headers of a call. It returns an outcome for an invalid call, and sets
// httpStatus for a request that is not gRPC.
func (c *Call) validate(f *fields) Outcome {
	c.method = c.conn.server.methods[f.path]
	switch {
	case f.tooLarge():
		return failure(codeResourceExhausted, fmt.Sprintf("metadata is larger than %d bytes", ownMaxHeaderList))
	case f.method != "POST":
		c.httpStatus = "405"
	case !strings.HasPrefix(f.contentType, contentType):
		c.httpStatus = "415"
	case c.method == nil:
		return failure(codeUnimplemented, "unknown method "+f.path)
	case !supportedEncoding(f.encoding):
		return failure(codeUnimplemented, fmt.Sprintf("Compression algorithm '%s' is not supported.", f.encoding))
	case c.conn.server.Authorize != nil:
		if code, text := c.conn.server.Authorize(c.caller, f.path); code != codeOK {
			return failure(code, text)
		}
	}
	return Outcome{}
}

// start creates the context of the call from its grpc-timeout.
func (c *Call) start(timeout string) error {
	if timeout == "" {
		c.ctx, c.cancel = context.WithCancel(c.caller.Context)
		return nil
	}
	d, ok := parseTimeout(timeout)
	if !ok {
		return fmt.Errorf("malformed grpc-timeout %q", timeout)
	}
	c.ctx, c.cancel = context.WithTimeout(c.caller.Context, d)
	return nil
}

// knownPath returns the path of a call, or "unknown" if no method has it.
func (c *Call) knownPath() string {
	if c.method == nil {
		return "unknown"
	}
	return c.path
}

func (c *Call) decompress() bool {
	body, err := c.decompressed(c.body)
	if bad, ok := errors.AsType[*callError](err); ok {
		_ = c.Reply(failure(bad.code, bad.text))
		return false
	}
	c.body = body
	return true
}

// decompressed returns the message that a compressed one contains. The error is a *callError.
func (c *Call) decompressed(compressed Body) (Body, error) {
	chunks := compressed.(*Chunks) //nolint:forcetypeassert // see inboundMessage.start
	if !isCompressed(c.encoding) {
		return nil, &callError{code: codeInternalError, text: "a compressed message has no grpc-encoding"}
	}
	if chunks.refused {
		return nil, &callError{code: codeResourceExhausted, text: errMemory.Error()}
	}
	most, limit := c.decompressedBounds(size(chunks.Data()))
	body, err := decompress(c.encoding, chunks.Data(), most, c.method.NewBody)
	switch {
	case errors.Is(err, errDecompressed):
		c.conn.server.hit(limit)
		return nil, &callError{code: codeResourceExhausted, text: limit.text("the decompressed message is too large", most)}
	case errors.Is(err, errMemory):
		return nil, &callError{code: codeResourceExhausted, text: err.Error()}
	case err != nil:
		return nil, &callError{code: codeInternalError, text: "a message cannot be decompressed: " + err.Error()}
	}
	return body, nil
}

// Reply sends the response and ends the call. It may block while the peer does not read. The memory
// of the data is not used after it returns. An error reports that the client will not receive the
// response: it has cancelled the call or the connection has ended.
func (c *Call) Reply(o Outcome) error {
	c.outcome = o
	var data [][]byte
	switch {
	case c.httpStatus != "":
		data = [][]byte{[]byte(notGRPC)}
	case o.Code == codeOK && c.requests == nil:
		data = c.message(o.Data)
	}
	if c.requests != nil {
		c.requests.close()
	} else if !c.streaming {
		// before the write, after which the client may send its next call
		c.conn.activeCalls.Add(-1)
	}
	c.conn.lastReply.Store(mono.Nanos())
	c.conn.calls.end(o.Code)
	c.observeEnd(&o)
	err := c.conn.out.send(&c.stream, c, data, c.mayDelay)
	c.conn.removeStream(&c.stream)
	c.cancel()
	c.conn.closeWhenDrained()
	return err
}

// message returns the prefixed message, compressed like the request.
func (c *Call) message(data [][]byte) [][]byte {
	if isCompressed(c.encoding) {
		if small, err := compress(c.encoding, data); err == nil {
			return prefixed(compressFlag, small)
		}
		c.encoding = ""
	}
	return prefixed(0, data)
}

func (c *Call) canStart() (bool, error) { return true, nil }

// appendHeaderFrames appends the headers of a response that has data.
func (c *Call) appendHeaderFrames(b []byte) []byte {
	c.responded = true
	if c.outcome.Code != codeOK || c.streaming {
		return b
	}
	var block [64]byte
	if c.httpStatus != "" {
		return appendHeaders(b, c.id, appendNamed(block[:0], staticStatus200, c.httpStatus), false)
	}
	fields := appendResponse(block[:0])
	if isCompressed(c.encoding) {
		fields = appendField(fields, "grpc-encoding", c.encoding)
	}
	return appendHeaders(b, c.id, fields, false)
}

// appendTrailerFrames appends the trailers. A response without data has its headers in the same
// frame.
func (c *Call) appendTrailerFrames(b []byte) []byte {
	if c.httpStatus != "" {
		return b // the last frame of data ends the stream
	}
	var block [128]byte
	fields := block[:0]
	if c.outcome.Code != codeOK && !c.streaming {
		fields = appendResponse(fields)
	}
	b = appendHeaders(b, c.id, c.outcome.appendTrailer(fields, c.caller.RawMessages), true)
	if !c.requestEnded {
		b = appendUint32Frame(b, frameReset, c.id, uint32(codeNone))
	}
	return b
}

func (c *Call) newBody(size int) Body { return c.method.NewBody(size) }

// abort answers a call whose request was invalid. The reader, which has removed the stream, is the
// only caller.
func (c *Call) abort(code uint32, text string, reset errCode) {
	c.cancel()
	o := &c.conn.out
	o.mu.Lock()
	responded, ended := c.responded, c.requestEnded
	o.mu.Unlock()
	// a write error also ends the reader
	if responded || c.httpStatus != "" {
		_ = o.queueControl(appendUint32Frame(nil, frameReset, c.id, uint32(cmp.Or(reset, codeProtocol))))
		return
	}
	_ = c.conn.refuse(c, failure(code, text), ended && reset == codeNone, reset)
}

func (c *Call) reset(errCode, error) { c.cancel() }
