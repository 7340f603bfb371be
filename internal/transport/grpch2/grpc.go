package grpch2

import (
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	contentType  = "application/grpc"
	prefixSize   = 5          // of a message, in bytes: a flag and the length
	maxMessage   = 1<<31 - 64 // bytes; a message and its frames fit a window of 2 GiB
	compressFlag = 1
)

// UserAgent is the value of the header user-agent in the calls of this package's clients.
const UserAgent = "weft"

// notGRPC is the body of the answer to a request that is not gRPC.
const notGRPC = "This server speaks gRPC: it answers POST requests with the content-type application/grpc.\n"

// gRPC status codes that this package generates.
const (
	codeOK                = 0
	codeCancelled         = 1
	codeUnknown           = 2
	codeDeadlineExceeded  = 4
	codePermissionDenied  = 7
	codeResourceExhausted = 8
	codeUnimplemented     = 12
	codeInternalError     = 13
	codeUnavailable       = 14
	codeUnauthenticated   = 16
)

// timeoutUnits maps the unit of a grpc-timeout to its duration.
var timeoutUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// parseTimeout parses a grpc-timeout: at most eight digits and a unit.
func parseTimeout(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	unit, ok := timeoutUnits[s[len(s)-1]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if !ok || err != nil {
		return 0, false
	}
	return time.Duration(min(n, math.MaxInt64/uint64(unit))) * unit, true
}

// formatTimeout formats d as a grpc-timeout, rounded up, in the finest unit for which eight digits
// suffice.
func formatTimeout(d time.Duration) string {
	const digits = 1e8
	d = max(d, 0)
	for _, unit := range "numSMH" {
		u := timeoutUnits[byte(unit)]
		n := int64(d / u)
		if d%u > 0 {
			n++
		}
		if n < digits {
			return strconv.FormatInt(n, 10) + string(unit)
		}
	}
	return "99999999H" // unreachable: the maximum Duration is about 2.6 million hours
}

const hexDigits = "0123456789ABCDEF"

// escape percent-encodes a text for grpc-message: all bytes except printable ASCII, and percent
// signs.
func escape(s string) string {
	plain := func(c byte) bool { return c >= ' ' && c <= '~' && c != '%' }
	i := 0
	for i < len(s) && plain(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	b := make([]byte, i, len(s)+32)
	copy(b, s)
	for ; i < len(s); i++ {
		if c := s[i]; plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(b)
}

// unescape reverses escape. Invalid escapes are kept.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(v))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// prefixed returns a message with the prefix that gRPC requires.
func prefixed(flag byte, data [][]byte) [][]byte {
	n := size(data)
	out := make([][]byte, 1, 1+len(data))
	out[0] = []byte{flag, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return append(out, data...)
}

// An Outcome is the response to a call: a message or an error.
type Outcome struct {
	Data    [][]byte // the message, in pieces; ignored if Code is not 0
	Code    uint32   // gRPC status code; 0 for success
	Text    string   // grpc-message
	Trailer []Field  // additional trailers
}

// failure returns the outcome of a failed call.
func failure(code uint32, text string) Outcome { return Outcome{Code: code, Text: text} }

// appendTrailer appends the header block that ends a response; see Caller.RawMessages for raw.
func (o *Outcome) appendTrailer(b []byte, raw bool) []byte {
	b = appendField(b, "grpc-status", strconv.FormatUint(uint64(o.Code), 10))
	if o.Text != "" {
		text := o.Text
		if !raw {
			text = escape(text)
		}
		b = appendField(b, "grpc-message", text)
	}
	for _, f := range o.Trailer {
		b = appendField(b, f.Name, f.Value)
	}
	return b
}
