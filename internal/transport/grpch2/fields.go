package grpch2

import (
	"encoding/base64"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// maxBlock bounds a block of headers as it comes, compressed. A peer knows the limit of the list
// that is in it.
const maxBlock = 4 * ownMaxHeaderList

// A Field is metadata of a call. The value of one whose name ends in "-bin" is any bytes, otherwise
// text.
type Field struct{ Name, Value string }

const binarySuffix = "-bin"

// fields are the headers or trailers of a message, as far as they mean something here.
type fields struct {
	method, path, status  string // pseudo-headers
	contentType, encoding string
	timeout               string
	code, text            string  // grpc-status, grpc-message
	binary                []Field // all of them, with their values decoded
	size                  int     // as SETTINGS_MAX_HEADER_LIST_SIZE counts
}

// fieldReader reads blocks of headers. Blocks of one connection depend on those before them, so all
// must be read.
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

// read returns what is in a block. It is valid until the next call.
func (r *fieldReader) read(block []byte) (*fields, error) {
	r.fields = fields{binary: r.fields.binary[:0]}
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
	switch f.Name {
	case ":method":
		s.method = f.Value
	case ":path":
		s.path = f.Value
	case ":status":
		s.status = f.Value
	case "content-type":
		s.contentType = f.Value
	case "grpc-encoding":
		s.encoding = f.Value
	case "grpc-timeout":
		s.timeout = f.Value
	case "grpc-status":
		s.code = f.Value
	case "grpc-message":
		s.text = f.Value
	default:
		if strings.HasSuffix(f.Name, binarySuffix) {
			s.binary = append(s.binary, Field{f.Name, decodeBinary(f.Value)})
		}
	}
}

// decodeBinary decodes a value that may be padded, or no base64 at all between peers of which one
// is careless.
func decodeBinary(v string) string {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v, "="))
	if err != nil {
		return v
	}
	return string(b)
}

// tooLarge reports whether the list was beyond the limit that we set for it.
func (s *fields) tooLarge() bool { return s.size > ownMaxHeaderList }

// Indices of HPACK's static table.
const (
	staticAuthority   = 1
	staticMethodPOST  = 3
	staticPath        = 4
	staticSchemeHTTP  = 6
	staticSchemeHTTPS = 7
	staticStatus200   = 8
	staticContentType = 31
)

func appendIndexed(b []byte, index byte) []byte { return append(b, 0x80|index) }

// appendNamed appends a header whose name is in the static table.
func appendNamed(b []byte, index uint64, value string) []byte {
	return appendString(appendInteger(b, 0, 4, index), value)
}

// appendField appends any other header; the name must be in lower case.
func appendField(b []byte, name, value string) []byte {
	if strings.HasSuffix(name, binarySuffix) {
		value = base64.RawStdEncoding.EncodeToString([]byte(value))
	}
	return appendString(appendString(append(b, 0), name), value)
}

func appendString(b []byte, s string) []byte {
	return append(appendInteger(b, 0, 7, uint64(len(s))), s...)
}

// appendInteger appends a number that begins in the low bits of a byte; see RFC 7541, section 5.1.
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
