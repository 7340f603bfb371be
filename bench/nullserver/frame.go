package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"golang.org/x/net/http2/hpack"
)

// Frame types, flags and sizes of RFC 9113.
const (
	data         = 0x0
	headers      = 0x1
	settings     = 0x4
	windowUpdate = 0x8
	continuation = 0x9

	endStream  = 0x1
	endHeaders = 0x4
	padded     = 0x8
	priority   = 0x20

	headerSize    = 9
	settingWindow = 4
	settingSize   = 6
)

// frame is one HTTP/2 frame as received.
type frame struct {
	bytes  []byte
	kind   byte
	flags  byte
	stream uint32
}

var errUnexpected = errors.New("unsupported frame from a client")

// read reads the next frame and overwrites the last one.
func (f *frame) read(in *bufio.Reader) error {
	head, err := in.Peek(headerSize)
	if err != nil {
		return err
	}
	n := headerSize + int(head[0])<<16 + int(head[1])<<8 + int(head[2])
	if cap(f.bytes) < n {
		f.bytes = make([]byte, n)
	}
	f.bytes = f.bytes[:n]
	if _, err := io.ReadFull(in, f.bytes); err != nil {
		return err
	}
	f.kind, f.flags, f.stream = f.bytes[3], f.bytes[4], binary.BigEndian.Uint32(f.bytes[5:])
	if f.kind == continuation || f.kind <= headers && f.flags&padded != 0 || f.kind == headers && f.flags&(priority|endHeaders) != endHeaders {
		return errUnexpected
	}
	return nil
}

func (f *frame) payload() []byte { return f.bytes[headerSize:] }

// ends reports whether the frame ends its stream.
func (f *frame) ends() bool { return f.kind <= headers && f.flags&endStream != 0 }

// fields returns the header fields of a HEADERS frame.
func (f *frame) fields(blocks *hpack.Decoder) ([]hpack.HeaderField, error) {
	return blocks.DecodeFull(f.payload())
}

// initialWindow returns the initial window size in a SETTINGS frame, or before if it has none.
func (f *frame) initialWindow(before uint32) uint32 {
	for b := f.payload(); len(b) >= settingSize; b = b[settingSize:] {
		if binary.BigEndian.Uint16(b) == settingWindow {
			before = binary.BigEndian.Uint32(b[2:])
		}
	}
	return before
}

func putStream(frame []byte, id uint32) { binary.BigEndian.PutUint32(frame[5:], id) }

func appendHead(b []byte, length int, kind, flags byte, stream uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), kind, flags)
	return binary.BigEndian.AppendUint32(b, stream)
}

// appendHeaders appends a HEADERS frame with the stream and flags of f and the given fields. The
// fields are literals that do not depend on the state of the decoder.
func appendHeaders(b []byte, f *frame, fields []hpack.HeaderField) []byte {
	at := len(b)
	b = appendHead(b, 0, headers, f.flags, f.stream)
	for _, field := range fields {
		b = appendText(appendText(append(b, 0), field.Name), field.Value)
	}
	n := len(b) - at - headerSize
	b[at], b[at+1], b[at+2] = byte(n>>16), byte(n>>8), byte(n)
	return b
}

// appendText appends an HPACK string literal without Huffman coding; see RFC 7541, section 5.
func appendText(b []byte, s string) []byte {
	const limit = 127
	if n := len(s); n < limit {
		b = append(b, byte(n))
	} else {
		b = append(b, limit)
		for n -= limit; ; n >>= 7 {
			if n < 0x80 {
				b = append(b, byte(n))
				break
			}
			b = append(b, byte(n)|0x80)
		}
	}
	return append(b, s...)
}

func appendWindowUpdate(b []byte, stream, n uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHead(b, 4, windowUpdate, 0, stream), n)
}
