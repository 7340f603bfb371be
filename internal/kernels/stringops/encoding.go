package stringops

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/weft-ml/weft/status"
)

// nextChar decodes the first character of a non-empty string. For an invalid sequence it returns
// malformed and the size of the sequence.
type nextChar func(s string) (r rune, size int)

const malformed rune = -1

// charset returns a decoder, which may depend on the start of the first string, and the length of
// the byte order mark there.
type charset func(s string) (next nextChar, mark int)

func fixed(next nextChar) charset { return func(string) (nextChar, int) { return next, 0 } }

// charsets holds the encodings that package encoding lacks, by their names in lower case without
// punctuation.
var charsets = map[string]charset{
	"utf8": fixed(nextUTF8), "usascii": fixed(nextASCII), "ascii": fixed(nextASCII), "iso88591": fixed(nextLatin1), "latin1": fixed(nextLatin1),
	"utf16be": fixed(nextUTF16(binary.BigEndian)), "utf16le": fixed(nextUTF16(binary.LittleEndian)),
	"utf32be": fixed(nextUTF32(binary.BigEndian)), "utf32le": fixed(nextUTF32(binary.LittleEndian)),
	"utf16": marked("\xfe\xff", "\xff\xfe", nextUTF16), "utf32": marked("\x00\x00\xfe\xff", "\xff\xfe\x00\x00", nextUTF32),
}

// marked returns a charset that reads a byte order mark and defaults to big-endian.
func marked(big, little string, next func(binary.ByteOrder) nextChar) charset {
	return func(s string) (nextChar, int) {
		switch {
		case strings.HasPrefix(s, little):
			return next(binary.LittleEndian), len(little)
		case strings.HasPrefix(s, big):
			return next(binary.BigEndian), len(big)
		default:
			return next(binary.BigEndian), 0
		}
	}
}

// findCharset returns the charset with the given name. Case and punctuation are ignored.
func findCharset(name string) (charset, error) {
	plain := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	if c, ok := charsets[plain]; ok {
		return c, nil
	}
	for _, try := range []string{name, strings.NewReplacer("_", "-", " ", "-").Replace(name), strings.NewReplacer("-", "_", " ", "_").Replace(name)} {
		e, err := ianaindex.IANA.Encoding(try)
		if err != nil || e == nil || e == japanese.ISO2022JP || e == simplifiedchinese.HZGB2312 {
			continue // unknown, or not decodable character by character
		}
		if table, ok := e.(*charmap.Charmap); ok {
			return fixed(nextByte(table)), nil
		}
		return fixed(nextOf(e)), nil
	}
	return nil, status.InvalidArgumentf("Could not create converter for input encoding: %s", name)
}

func nextASCII(s string) (rune, int) {
	if s[0] >= utf8.RuneSelf {
		return malformed, 1
	}
	return rune(s[0]), 1
}

// nextByte decodes single bytes. Bytes missing in the table become the control characters of
// Latin-1, if the bytes are in that range, as in ICU.
func nextByte(table *charmap.Charmap) nextChar {
	return func(s string) (rune, int) {
		r := table.DecodeByte(s[0])
		switch {
		case r != utf8.RuneError:
			return r, 1
		case s[0] >= 0x80 && s[0] < 0xa0:
			return rune(s[0]), 1
		}
		return malformed, 1
	}
}

func nextLatin1(s string) (rune, int) { return rune(s[0]), 1 }

// nextUTF8 decodes UTF-8. A malformed sequence is the longest prefix of a valid character.
func nextUTF8(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r != utf8.RuneError || size > 1 {
		return r, size
	}
	length, lo, hi := 0, byte(0x80), byte(0xbf)
	switch c := s[0]; {
	case c >= 0xc2 && c <= 0xdf:
		length = 2
	case c >= 0xe0 && c <= 0xef:
		length = 3
		if c == 0xe0 {
			lo = 0xa0
		} else if c == 0xed {
			hi = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		length = 4
		if c == 0xf0 {
			lo = 0x90
		} else if c == 0xf4 {
			hi = 0x8f
		}
	}
	for size = 1; size < min(length, len(s)) && s[size] >= lo && s[size] <= hi; size++ {
		lo, hi = 0x80, 0xbf
	}
	return malformed, size
}

func nextUTF16(order binary.ByteOrder) nextChar {
	return func(s string) (rune, int) {
		if len(s) < 2 {
			return malformed, len(s)
		}
		r := rune(order.Uint16([]byte(s[:2])))
		if !utf16.IsSurrogate(r) {
			return r, 2
		}
		if len(s) == 3 && r < 0xdc00 { // one surrogate and part of the other
			return malformed, 3
		}
		if len(s) >= 4 {
			if r = utf16.DecodeRune(r, rune(order.Uint16([]byte(s[2:4])))); r != utf8.RuneError {
				return r, 4
			}
		}
		return malformed, 2
	}
}

func nextUTF32(order binary.ByteOrder) nextChar {
	return func(s string) (rune, int) {
		if len(s) < 4 {
			return malformed, len(s)
		}
		v := order.Uint32([]byte(s[:4]))
		if v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
			return malformed, 4
		}
		return rune(v), 4
	}
}

// nextOf decodes a stateless encoding.
func nextOf(e encoding.Encoding) nextChar {
	return func(s string) (rune, int) {
		decoder := e.NewDecoder()
		var dst [2 * utf8.UTFMax]byte
		for n := 1; n <= len(s); n++ {
			// an error means that more bytes follow
			written, read, _ := decoder.Transform(dst[:], []byte(s[:n]), n == len(s))
			if written == 0 {
				continue
			}
			r, _ := utf8.DecodeRune(dst[:written])
			if r == utf8.RuneError {
				r = malformed
			}
			return r, read
		}
		return malformed, len(s)
	}
}

// appendChar holds functions that encode a character, by encoding name.
var appendChar = map[string]func(b []byte, r rune) []byte{
	"UTF-8": utf8.AppendRune,
	"UTF-16-BE": func(b []byte, r rune) []byte {
		for _, unit := range utf16.AppendRune(nil, r) {
			b = binary.BigEndian.AppendUint16(b, unit)
		}
		return b
	},
	"UTF-32-BE": func(b []byte, r rune) []byte { return binary.BigEndian.AppendUint32(b, uint32(r)) },
}
