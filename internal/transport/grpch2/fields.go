package grpch2

import (
	"encoding/base64"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// maxBlock bounds the encoded size of a header block, in bytes. It exceeds the limit for the
// decoded list, which is announced to the peer, so that a compliant peer never reaches it.
const maxBlock = 4 * ownMaxHeaderList

// A Field is one entry of a call's metadata. The value is arbitrary bytes if the name ends in
// "-bin", otherwise text.
type Field struct{ Name, Value string }

const binarySuffix = "-bin"

// fields holds the headers or trailers of a message that this package interprets.
type fields struct {
	method, path, status  string // pseudo-headers
	contentType, encoding string
	timeout, userAgent    string
	code, text            string // grpc-status, grpc-message
	traced                TraceHeaders
	binary                []Field // all fields whose name ends in "-bin", decoded
	// of the list in bytes, counted as for SETTINGS_MAX_HEADER_LIST_SIZE
	size int

	pseudo        pseudo // pseudo-headers of the list
	regular       bool   // the list has fields other than pseudo-headers
	control       bool   // a value has control characters
	invalid       string // why the list is malformed; "" if nothing was found
	contentLength int64  // -1 if there is none
}

// fieldReader decodes header blocks. The blocks of a connection share HPACK's dynamic table, so
// every block must be decoded, in order.
type fieldReader struct {
	decoder *hpack.Decoder
	fields  fields
}

func newFieldReader() *fieldReader {
	r := &fieldReader{}
	r.decoder = hpack.NewDecoder(4096, r.add)
	r.decoder.SetMaxStringLength(ownMaxHeaderList)
	return r
}

// read decodes a block. The result is valid until the next call.
func (r *fieldReader) read(block []byte) (*fields, error) {
	r.fields = fields{binary: r.fields.binary[:0], contentLength: -1}
	_, err := r.decoder.Write(block)
	if err == nil {
		err = r.decoder.Close()
	}
	if err != nil {
		return nil, &connError{codeCompression, err.Error()}
	}
	return &r.fields, nil
}

func (r *fieldReader) add(f hpack.HeaderField) {
	s := &r.fields
	if s.size += int(f.Size()); s.size > ownMaxHeaderList {
		return
	}
	if f.Name != "" && f.Name[0] == ':' {
		s.addPseudo(&f)
	} else {
		s.regular = true
		s.addRegular(&f)
	}
}

// addRegular adds a field that is not a pseudo-header.
func (s *fields) addRegular(f *hpack.HeaderField) {
	if strings.HasSuffix(f.Name, binarySuffix) {
		s.binary = append(s.binary, Field{f.Name, decodeBinary(f.Value)})
		s.addOther(f)
		return
	}
	s.control = s.control || hasControl(f.Value)
	switch f.Name {
	case "content-type":
		s.contentType = f.Value
	case "grpc-encoding":
		s.encoding = f.Value
	case "user-agent":
		s.userAgent = f.Value
	case "grpc-timeout":
		s.timeout = f.Value
	case "grpc-status":
		s.code = f.Value
	case "grpc-message":
		s.text = f.Value
	case "traceparent":
		s.traced.Parent = f.Value
	case "tracestate":
		s.traced.State = f.Value
	default:
		s.addOther(f)
	}
}

// decodeBinary decodes the value of a binary field, with or without base64 padding. A value that is
// not base64 is returned unchanged, because some peers do not encode it.
func decodeBinary(v string) string {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v, "="))
	if err != nil {
		return v
	}
	return string(b)
}

// tooLarge reports whether the list exceeds the limit that was announced to the peer.
func (s *fields) tooLarge() bool { return s.size > ownMaxHeaderList }

// Indices into HPACK's static table.
const (
	staticAuthority   = 1
	staticMethodPOST  = 3
	staticPath        = 4
	staticSchemeHTTP  = 6
	staticSchemeHTTPS = 7
	staticStatus200   = 8
	staticContentType = 31
	staticUserAgent   = 58
)

func appendIndexed(b []byte, index byte) []byte { return append(b, 0x80|index) }

// appendNamed appends a header whose name has an index in the static table.
func appendNamed(b []byte, index uint64, value string) []byte {
	return appendString(appendInteger(b, 0, 4, index), value)
}

// appendField appends a header with a literal name, which must be in lower case. A binary value is
// encoded in base64.
func appendField(b []byte, name, value string) []byte {
	if strings.HasSuffix(name, binarySuffix) {
		value = base64.RawStdEncoding.EncodeToString([]byte(value))
	}
	return appendString(appendString(append(b, 0), name), value)
}

func appendString(b []byte, s string) []byte {
	return append(appendInteger(b, 0, 7, uint64(len(s))), s...)
}

// appendInteger appends an integer that starts in the low bits of a byte; see RFC 7541, section
// 5.1.
func appendInteger(b []byte, high byte, bits int, v uint64) []byte {
	limit := uint64(1)<<bits - 1
	if v < limit {
		return append(b, high|byte(v))
	}
	b = append(b, high|byte(limit))
	for v -= limit; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}
