package rawstrings

import (
	"slices"
	"strings"
	"testing"
)

func TestStrings(t *testing.T) {
	vals := []string{"a", "", "\x00b"}
	b := Append([]byte{7}, vals)[1:]
	if got, err := Decode(b, 3, "word"); err != nil || !slices.Equal(got, vals) {
		t.Errorf("got %q, %v", got, err)
	}
	for want, in := range map[string][]byte{
		"11 bytes are too few for 3 words":   b[:11],
		"word 2 is incomplete":               b[:14],
		"1 bytes are left after the last wo": append(slices.Clone(b), 0),
	} {
		if _, err := Decode(in, 3, "word"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: got %v, want %s", len(in), err, want)
		}
	}
}
