package grpch2

import (
	"encoding/binary"
	"fmt"
)

// frameType is the type of a frame; see RFC 9113, section 6.
type frameType byte

const (
	frameData frameType = iota
	frameHeaders
	framePriority
	frameReset
	frameSettings
	framePushPromise
	framePing
	frameGoAway
	frameWindowUpdate
	frameContinuation
)

// Flags of frames. The meaning of a bit depends on the frame type.
const (
	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

// Sizes defined by RFC 9113.
const (
	preface         = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHeaderSize = 9
	flagsAt         = 4         // offset of the flags in a frame header
	minFrame        = 16384     // largest payload that every peer accepts
	maxFrame        = 1<<24 - 1 // largest value of SETTINGS_MAX_FRAME_SIZE
	firstWindow     = 65535     // initial window of a connection, and of a stream before SETTINGS
	maxWindow       = 1<<31 - 1
	maxStreamID     = 1<<31 - 1
)

// errCode is the reason for the end of a stream or connection; see RFC 9113, section 7.
type errCode uint32

const (
	codeNone errCode = iota
	codeProtocol
	codeInternal
	codeFlowControl
	codeSettingsTimeout
	codeStreamClosed
	codeFrameSize
	codeRefused
	codeCancel
	codeCompression
	codeConnect
	codeEnhanceYourCalm
	codeInadequateSecurity
	codeHTTP11
)

// connError is a breach of the protocol, which ends the connection.
type connError struct {
	code errCode
	why  string
}

func (e *connError) Error() string { return fmt.Sprintf("http2: %s (code %d)", e.why, e.code) }

func protocolError(why string) error { return &connError{codeProtocol, why} }

func sizeError(why string) error { return &connError{codeFrameSize, why} }

// frameHeader is the decoded header of a frame.
type frameHeader struct {
	length int
	kind   frameType
	flags  byte
	stream uint32
}

func (h *frameHeader) has(flag byte) bool { return h.flags&flag != 0 }

func parseFrameHeader(b []byte) frameHeader {
	return frameHeader{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]),
		kind:   frameType(b[3]),
		flags:  b[4],
		stream: binary.BigEndian.Uint32(b[5:]) & maxStreamID,
	}
}

func appendFrameHeader(b []byte, length int, kind frameType, flags byte, stream uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), flags)
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendFrame(b []byte, kind frameType, flags byte, stream uint32, payload []byte) []byte {
	return append(appendFrameHeader(b, len(payload), kind, flags, stream), payload...)
}

// appendUint32Frame appends a frame whose payload is one 32-bit number.
func appendUint32Frame(b []byte, kind frameType, stream, payload uint32) []byte {
	return binary.BigEndian.AppendUint32(appendFrameHeader(b, 4, kind, 0, stream), payload)
}

// appendHeaders appends a header block as one HEADERS frame and as many CONTINUATION frames as it
// needs. No frame exceeds minFrame, which every peer accepts.
func appendHeaders(b []byte, stream uint32, block []byte, endStream bool) []byte {
	kind, flags := frameHeaders, byte(0)
	if endStream {
		flags = flagEndStream
	}
	for len(block) > minFrame {
		b = appendFrame(b, kind, flags, stream, block[:minFrame])
		block, kind, flags = block[minFrame:], frameContinuation, 0
	}
	return appendFrame(b, kind, flags|flagEndHeaders, stream, block)
}

func goAway(last uint32, code errCode, why string) []byte {
	b := appendFrameHeader(nil, 8+len(why), frameGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(b, last)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	return append(b, why...)
}

// unpad returns the payload of a frame without padding.
func unpad(h *frameHeader, payload []byte) ([]byte, error) {
	if !h.has(flagPadded) {
		return payload, nil
	}
	if len(payload) == 0 || int(payload[0]) >= len(payload) {
		return nil, protocolError("more padding than payload")
	}
	return payload[1 : len(payload)-int(payload[0])], nil
}
