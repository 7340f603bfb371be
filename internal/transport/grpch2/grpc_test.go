package grpch2

import (
	"math"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"
)

func TestTimeouts(t *testing.T) {
	for _, d := range []time.Duration{-1, 0, 1, 99, time.Microsecond, time.Second, time.Minute + 1, 48 * time.Hour, 1e6 * time.Hour, math.MaxInt64} {
		text := formatTimeout(d)
		got, ok := parseTimeout(text)
		if !ok || got < min(d, math.MaxInt64-time.Hour) || got > max(d, 0)+max(d, 0)/100+1 && d < math.MaxInt64/2 {
			t.Errorf("%v is formatted as %s and parsed as %v, %v", d, text, got, ok)
		}
	}
	for _, text := range []string{"", "1", "S", "-1S", "1.5S", "123456789S", "1s", " 1S"} {
		if got, ok := parseTimeout(text); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, s := range []string{"", "plain", "100%", "ümlaut\n\x00", "%zz%4", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := escape(s)
		for _, c := range []byte(text) {
			if c < ' ' || c > '~' {
				t.Fatalf("%q is escaped as %q", s, text)
			}
		}
		if got := unescape(text); got != s {
			t.Errorf("%q is escaped as %q and unescaped as %q", s, text, got)
		}
		unescape(s)
	})
}

// Header blocks are readable by another implementation.
func TestHeaderBlocks(t *testing.T) {
	long := make([]byte, 3*minFrame)
	for i := range long {
		long[i] = 'a' + byte(i%26)
	}
	o := Outcome{Code: 13, Text: "ü", Trailer: []Field{{"x-bin", "\x00\x01"}, {"long", string(long)}}}
	var got []hpack.HeaderField
	d := hpack.NewDecoder(4096, func(f hpack.HeaderField) { got = append(got, f) })
	if _, err := d.Write(o.appendTrailer(appendResponse(nil), false)); err != nil || d.Close() != nil {
		t.Fatal(err)
	}
	want := []hpack.HeaderField{
		{Name: ":status", Value: "200"}, {Name: "content-type", Value: contentType}, {Name: "grpc-status", Value: "13"},
		{Name: "grpc-message", Value: "%C3%BC"}, {Name: "x-bin", Value: "AAE"}, {Name: "long", Value: string(long)},
	}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
}
