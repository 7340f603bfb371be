package data

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestCSVRecords(t *testing.T) {
	const text = "h\na,\"b\nc\"\r\n\"d\"\"\ne\"\nlast"
	for _, c := range []struct {
		header, quoted bool
		want           []string
	}{
		{true, true, []string{"a,\"b\nc\"", "\"d\"\"\ne\"", "last"}},
		{false, true, []string{"h", "a,\"b\nc\"", "\"d\"\"\ne\"", "last"}},
		{true, false, []string{"a,\"b", "c\"", "\"d\"\"", "e\"", "last"}},
	} {
		r, err := csvOpener(c.header, c.quoted)(strings.NewReader(text), "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			record, err := r.record()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, record)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("header %v, quotes %v: %q, want %q", c.header, c.quoted, got, c.want)
		}
	}
	if _, err := csvOpener(true, true)(strings.NewReader(""), ""); err == nil {
		t.Error("a file without a header")
	}
}
