package jsondoc_test

import (
	"math"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/serving/jsondoc"
	"github.com/weft-ml/weft/status"
)

func parse(t *testing.T, text string) jsondoc.Value {
	t.Helper()
	v, err := jsondoc.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestValues(t *testing.T) {
	v := parse(t, ` {"a": [1, -2.5, 1e3, NaN, -Infinity, true, null], "b": {"c": "x\n\u00e9\ud83d\ude00"}, "a": 7} trailing`)
	a, ok := v.Member("a")
	if !ok || a.Kind() != jsondoc.Array || a.Len() != 7 || v.Len() != 3 {
		t.Fatalf("got %v", v)
	}
	var floats []float64
	var kinds []string
	for e := range a.Elements() {
		kinds = append(kinds, e.Kind().String())
		if e.Kind() == jsondoc.Number {
			floats = append(floats, e.Float64())
		}
	}
	if got := strings.Join(kinds, " "); got != "Number Number Number Number Number True Null" {
		t.Errorf("got kinds %s", got)
	}
	if floats[0] != 1 || floats[1] != -2.5 || floats[2] != 1000 || !math.IsNaN(floats[3]) || !math.IsInf(floats[4], -1) {
		t.Errorf("got %v", floats)
	}
	b, _ := v.Member("b")
	c, ok := b.Member("c")
	if !ok || c.Text() != "x\né😀" {
		t.Errorf("got %q", c.Text())
	}
	if got := b.String(); got != `{"c":"x\n\u00e9\ud83d\ude00"}` {
		t.Errorf("got %s", got)
	}
}

func TestIntegers(t *testing.T) {
	for _, tt := range []struct {
		text             string
		signed, unsigned bool
	}{
		{"1", true, true}, {"-1", true, false}, {"1.0", false, false}, {"1e2", false, false},
		{"9223372036854775808", false, true}, {"18446744073709551616", false, false}, {"NaN", false, false},
	} {
		v := parse(t, tt.text)
		_, signed := v.Int64()
		_, unsigned := v.Uint64()
		if signed != tt.signed || unsigned != tt.unsigned {
			t.Errorf("%s: signed %v, unsigned %v", tt.text, signed, unsigned)
		}
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":            "The document is empty",
		" \n":         "The document is empty",
		"{":           "Missing a name for object member. at offset: 1",
		`{"a" 1}`:     "Missing a colon after a name of object member. at offset: 5",
		`{"a": 1 "b"`: "Missing a comma or } after an object member. at offset: 8",
		"[1 2]":       "Missing a comma or ] after an array element. at offset: 3",
		"[1,":         "Invalid value. at offset: 3",
		"[1,]":        "Invalid value. at offset: 3",
		`"a`:          "Missing a closing quotation mark in string. at offset: 0",
		`"\q"`:        "Invalid escape character in string. at offset: 1",
		`"\u00g0"`:    "Incorrect hex digit after \\u escape in string. at offset: 1",
		`"\ud800"`:    "The surrogate pair in string is invalid. at offset: 1",
		"\"\xff\"":    "Invalid encoding in string. at offset: 1",
		"1.":          "Miss fraction part in number. at offset: 2",
		"1e":          "Miss exponent in number. at offset: 2",
		"1e999":       "Number too big to be stored in double. at offset: 0",
		"tru":         "Invalid value. at offset: 3",
	} {
		_, err := jsondoc.Parse([]byte(text))
		if status.CodeOf(err) != status.InvalidArgument || err.Error() != "JSON Parse error: "+want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// A parser that recurses would end the process.
func TestDeepDocuments(t *testing.T) {
	const depth = 1 << 20
	if _, err := jsondoc.Parse([]byte(strings.Repeat("[", depth))); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("got %v", err)
	}
	v := parse(t, strings.Repeat("[", depth)+strings.Repeat("]", depth))
	if len(v.String()) != 256 {
		t.Errorf("the text has %d bytes", len(v.String()))
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "{}", `{"a": [1, "x\u00e9", {"b": null}]}`, "[-1.5e3, NaN]", "[[[", `"\ud83d\ude00"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := jsondoc.Parse(text)
		if err != nil {
			return
		}
		walk(v)
		if again, err := jsondoc.Parse([]byte(v.String())); err == nil && len(v.String()) < 200 && again.Kind() != v.Kind() {
			t.Errorf("%q is a %s, its text %q a %s", text, v.Kind(), v, again.Kind())
		}
	})
}

func walk(v jsondoc.Value) {
	switch v.Kind() {
	case jsondoc.Array:
		for e := range v.Elements() {
			walk(e)
		}
	case jsondoc.Object:
		for _, m := range v.Members() {
			walk(m)
		}
	case jsondoc.String:
		_ = v.Text()
	case jsondoc.Number:
		_ = v.Float64()
	}
}

// Members are found by names with escapes, and long names are not copied.
func TestMember(t *testing.T) {
	doc, err := jsondoc.Parse([]byte(`{"` + strings.Repeat("x", 1<<20) + `": 0, "\u0061\n": 1, "b": 2, "": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a\n": "1", "b": "2", "": "3"} {
		if m, ok := doc.Member(name); !ok || m.String() != want {
			t.Errorf("%q: got %v, %t", name, m, ok)
		}
	}
	if _, ok := doc.Member("c"); ok {
		t.Error("there is a member c")
	}
	if n := testing.AllocsPerRun(10, func() { doc.Member("b") }); n > 0 {
		t.Errorf("a search allocates %v times", n)
	}
}
