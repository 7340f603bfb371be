package data

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestCSVRecords(t *testing.T) {
	const text = "h\na,\"b\nc\"\r\n\"d\"\"\ne\"\nx\"\r\"\r\"\n\nlast"
	for _, c := range []struct {
		header, quoted bool
		want           []string
	}{
		{true, true, []string{"a,\"b\nc\"", "\"d\"\"\ne\"", "x\"", "\"\r\"", "", "last"}},
		{false, true, []string{"h", "a,\"b\nc\"", "\"d\"\"\ne\"", "x\"", "\"\r\"", "", "last"}},
		{true, false, []string{"a,\"b", "c\"", "\"d\"\"", "e\"", "x\"", "\"", "\"", "", "last"}},
	} {
		r, err := csvOpener(&csvFormat{quoted: c.quoted, delim: ','}, c.header)(testFile(t, text), "")
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
	if _, err := csvOpener(&csvFormat{}, true)(testFile(t, ""), ""); err == nil {
		t.Error("a file without a header")
	}
}

// testFile returns an open file with a text.
func testFile(t *testing.T, text string) *fileio.File {
	var files fileio.Files
	path := filepath.Join(t.TempDir(), "file")
	if err := files.Write(path, []byte(text)); err != nil {
		t.Fatal(err)
	}
	f, err := files.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestCSVFields(t *testing.T) {
	types := []tensor.DType{tensor.Int32, tensor.String}
	for _, c := range []struct {
		record             string
		selected, excluded []int64
		n                  int32
		text, err          string
	}{
		{record: "7,a", n: 7, text: "a"},
		{record: "NA,", n: 5, text: "none"},
		{record: `"8","a ""b"" ,c"`, n: 8, text: `a "b" ,c`},
		{record: "x,9,y,z", selected: []int64{1, 3}, n: 9, text: "z"},
		{record: "x,9,y,z", excluded: []int64{0, 2}, n: 9, text: "z"},
		{record: "", err: "Expect 2 fields but have 1 in record"},
		{record: "1,a,b", err: "Expect 2 fields but have more in record"},
		{record: "q,a", err: "Field 0 in record is not a valid int32: q"},
		{record: `1,a"b`, err: "Unquoted fields cannot have quotes inside"},
		{record: `1,"a"b"`, err: "Quote inside a string has to be escaped by another quote"},
		{record: `1,"a`, err: "Reached end of file without closing quoted field in record"},
	} {
		f := &csvFormat{
			quoted: true, delim: ',', na: "NA", selected: c.selected, excluded: c.excluded, types: types,
			defaults: element{tensor.Vector[int32](5), tensor.Scalar("none")},
		}
		e, err := f.parse(c.record)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%q: %v, want %s", c.record, err, c.err)
			}
			continue
		}
		if err != nil || tensor.Value[int32](&e[0]) != c.n || tensor.Value[string](&e[1]) != c.text {
			t.Errorf("%q: %v, %v", c.record, e, err)
		}
	}
	f := &csvFormat{delim: ',', types: types[:1], defaults: element{tensor.Vector[int32]()}}
	if _, err := f.parse(""); err == nil || err.Error() != "Field 0 is required but missing in record!" {
		t.Errorf("without a default: %v", err)
	}
}

// Quotes within a quoted field are removed in a copy.
func TestQuotedFields(t *testing.T) {
	f := &csvFormat{
		quoted: true, delim: ',', types: []tensor.DType{tensor.String, tensor.String}, defaults: element{tensor.Scalar(""), tensor.Scalar("")},
	}
	for record, want := range map[string][]string{
		`"a""b","c"`: {`a"b`, "c"}, `"","""`: nil, `x,""""`: {"x", `"`}, `"a"b,c"`: nil, `"a",`: {"a", ""}, `"a`: nil, `"a"","b`: nil,
	} {
		e, err := f.parse(record)
		if (err != nil) != (want == nil) {
			t.Errorf("%s: %v", record, err)
		}
		for i := range e {
			if got := tensor.Value[string](&e[i]); got != want[i] {
				t.Errorf("%s: field %d is %q", record, i, got)
			}
		}
	}
	long := `"""` + strings.Repeat("x", 32<<20) + `",`
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(60 << 20)
	err := guard.Call("parse", func() error { _, _, err := f.field(long, 0); return err })
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("a long field: %v", err)
	}
}
