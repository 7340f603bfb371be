package stringops

import (
	"encoding/base64"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "EncodeBase64", Doc: "Encodes strings in web-safe Base64.",
		In:    []string{"input: string"},
		Out:   []string{"output: string"},
		Attrs: []string{"pad: bool = false"},
		Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		encoding := base64.RawURLEncoding
		if c.Attrs.Bool("pad") {
			encoding = base64.URLEncoding
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			return eachString(ctx, func(s string) (string, error) { return encodeBase64(encoding, s), nil })
		}), nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "DecodeBase64", Doc: "Decodes strings in web-safe Base64, with or without padding.",
		In:    []string{"input: string"},
		Out:   []string{"output: string"},
		Shape: opdef.SameShape,
	}, func(ctx *kernel.Context) error { return eachString(ctx, decodeBase64) })
}

func decodeBase64(s string) (string, error) {
	digits := s
	switch len(s) % 4 {
	case 0:
		var padded bool
		if digits, padded = strings.CutSuffix(s, "="); padded {
			digits = strings.TrimSuffix(digits, "=")
		}
	case 1:
		if _, err := base64.RawURLEncoding.DecodeString(s[:len(s)-1]); err != nil {
			return "", status.InvalidArgumentf("Invalid character found in base64.")
		}
		return "", status.InvalidArgumentf("Base64 string length cannot be 1 modulo 4.")
	}
	if strings.ContainsAny(s, "\r\n") {
		return "", status.InvalidArgumentf("Invalid character found in base64.")
	}
	text := grown(base64.RawURLEncoding.DecodedLen(len(digits)))
	var from, to [pieceSize]byte
	for len(digits) > 0 {
		n := copy(from[:], digits)
		decoded, err := base64.RawURLEncoding.Decode(to[:], from[:n])
		if err != nil {
			return "", status.InvalidArgumentf("Invalid character found in base64.")
		}
		text.Write(to[:decoded])
		digits = digits[n:]
	}
	return text.String(), nil
}

// pieceSize is the number of bytes that are converted at a time, a multiple of 3 and 4. The
// functions of the library for whole strings need three times the memory of the result.
const pieceSize = 3 << 10

// encodeBase64 encodes a string.
func encodeBase64(encoding *base64.Encoding, s string) string {
	text := grown(encoding.EncodedLen(len(s)))
	var from [pieceSize]byte
	var to [pieceSize / 3 * 4]byte
	for len(s) > 0 {
		n := copy(from[:], s)
		encoding.Encode(to[:], from[:n])
		text.Write(to[:encoding.EncodedLen(n)])
		s = s[n:]
	}
	return text.String()
}

// grown returns a builder with room for size bytes. It panics as [membudget.Make] does.
func grown(size int) *strings.Builder {
	text := &strings.Builder{}
	if !membudget.Reserve(int64(size), func() { text.Grow(size) }) {
		panic(&membudget.Exceeded{Bytes: int64(size)})
	}
	return text
}
