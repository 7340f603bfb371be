package membudget

import (
	"strings"
	"testing"
)

// A text that grows byte by byte has all of them, and ends before it takes the limit.
func TestText(t *testing.T) {
	defer SetLimit(Limit())
	var text Text
	var want strings.Builder
	for i := range 100_000 {
		s := strings.Repeat(string(rune('a'+i%26)), i%3)
		text.WriteString(s)
		want.WriteString(s)
	}
	if text.String() != want.String() {
		t.Error("the text differs from that of strings.Builder")
	}
	SetLimit(256 << 20)
	piece := strings.Repeat("x", 1<<10)
	for text.TryWrite(piece) {
		if len(text.String()) > 256<<20 {
			t.Fatal("the text takes more than the limit")
		}
	}
	defer func() {
		if _, ok := recover().(*Exceeded); !ok {
			t.Error("WriteString does not panic without memory")
		}
	}()
	text.WriteString(strings.Repeat("x", 200<<20))
}
