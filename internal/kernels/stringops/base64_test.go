package stringops

import (
	"encoding/base64"
	"math/rand/v2"
	"testing"
)

// Long strings are converted in pieces.
func TestBase64InPieces(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, n := range []int{0, 1, 2, 3, pieceSize - 1, pieceSize, pieceSize + 1, 3*pieceSize + 2} {
		b := make([]byte, n)
		_, _ = random.Read(b) // it never fails
		for _, encoding := range []*base64.Encoding{base64.RawURLEncoding, base64.URLEncoding} {
			text := encodeBase64(encoding, string(b))
			if text != encoding.EncodeToString(b) {
				t.Errorf("%d bytes are encoded as %.100q", n, text)
			}
			if back, err := decodeBase64(text); err != nil || back != string(b) {
				t.Errorf("%d bytes are decoded with %v as %.100q", n, err, back)
			}
		}
		long := base64.RawURLEncoding.EncodeToString(make([]byte, 3*pieceSize))
		if _, err := decodeBase64(long + "!" + long[1:]); err == nil {
			t.Error("an invalid character in the second piece is no error")
		}
	}
}
