package grpch2

import (
	"strconv"

	"golang.org/x/net/http2/hpack"
)

// pseudo is a set of pseudo-headers.
type pseudo uint8

const (
	pseudoMethod pseudo = 1 << iota
	pseudoScheme
	pseudoPath
	pseudoAuthority
	pseudoStatus
)

// requiredPseudo are the pseudo-headers that every request has.
const requiredPseudo = pseudoMethod | pseudoScheme | pseudoPath

// reject records the first reason for which a list of fields is invalid.
func (s *fields) reject(why string) {
	if s.invalid == "" {
		s.invalid = why
	}
}

// addPseudo adds a pseudo-header. They precede all other fields, and none is repeated.
func (s *fields) addPseudo(f *hpack.HeaderField) {
	var which pseudo
	switch f.Name {
	case ":method":
		which, s.method = pseudoMethod, f.Value
	case ":scheme":
		which = pseudoScheme
	case ":path":
		which, s.path = pseudoPath, f.Value
	case ":authority":
		which = pseudoAuthority
	case ":status":
		which, s.status = pseudoStatus, f.Value
	default:
		s.reject("an unknown pseudo-header")
	}
	s.control = s.control || hasControl(f.Value)
	if s.pseudo&which != 0 {
		s.reject("a pseudo-header is repeated")
	}
	if s.regular {
		s.reject("a pseudo-header follows another field")
	}
	s.pseudo |= which
}

// addOther checks a field that this package does not interpret.
func (s *fields) addOther(f *hpack.HeaderField) {
	switch f.Name {
	case "te":
		if f.Value != "trailers" {
			s.reject("te is not trailers")
		}
	case "content-length":
		n, err := strconv.ParseUint(f.Value, 10, 63)
		if err != nil || s.contentLength >= 0 && s.contentLength != int64(n) {
			s.reject("content-length is invalid")
			return
		}
		s.contentLength = int64(n)
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		s.reject("a field that is specific to a connection")
	default:
		if !isFieldName(f.Name) {
			s.reject("the name of a field has invalid characters")
		}
	}
}

// isFieldName reports whether a name is a token of HTTP without upper-case letters.
func isFieldName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || !nameBytes[c] {
			return false
		}
	}
	return name != ""
}

// nameBytes marks the bytes that the name of a field may have.
var nameBytes = func() (is [0x80]bool) {
	for _, c := range "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz" {
		is[c] = true
	}
	return is
}()

// hasControl reports whether a value has a byte with which an intermediary could be made to see
// another field.
func hasControl(value string) bool {
	for i := range len(value) {
		if c := value[i]; c <= '\r' && (c == 0 || c == '\n' || c == '\r') {
			return true
		}
	}
	return false
}

// checkRequest returns the reason for which the header block of a request is malformed, or "".
func (s *fields) checkRequest() string {
	switch {
	case s.invalid != "":
		return s.invalid
	case s.control:
		return "a value has control characters"
	case s.pseudo&requiredPseudo != requiredPseudo:
		return "a request without :method, :scheme or :path"
	case s.pseudo&pseudoStatus != 0:
		return "a request with :status"
	case s.path == "":
		return "a request with an empty :path"
	}
	return ""
}

// checkResponse returns the reason for which the header block of a response is malformed, or "".
// Control characters are allowed: tasks up to TensorFlow 0.12 send grpc-message without escapes.
func (s *fields) checkResponse() string {
	if s.invalid == "" && s.pseudo != pseudoStatus {
		return "a response whose only pseudo-header is not :status"
	}
	return s.invalid
}

// checkTrailers returns the reason for which the header block of trailers is malformed, or "".
func (s *fields) checkTrailers() string {
	if s.invalid == "" && s.pseudo != 0 {
		return "trailers with a pseudo-header"
	}
	return s.invalid
}
