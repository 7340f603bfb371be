package jsontensor

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/serving/jsondoc"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestStringSize(t *testing.T) {
	for _, s := range []string{"", "abc", "\"\\\n\r\t", "\x00\x1f\x7f", "\u00fc\u20ac\U0001f600", "\xff", "a\xe2\x80"} {
		if got, want := StringSize(s), len(AppendString(nil, s)); got != int64(want) {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}

// TestMemoryOfAnswers writes a tensor whose strings share one text of control characters, which
// take six bytes each, and rows with long names.
func TestMemoryOfAnswers(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(256 << 20)
	vals, text := make([]string, 1<<18), strings.Repeat("\x01", 100)
	for i := range vals {
		vals[i] = text
	}
	out := map[string]tensor.Tensor{"y": tensor.Vector(vals...)}
	if _, err := AppendOutputs(nil, out); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("strings: got %v", err)
	}
	empty, err := tensor.Zeros(tensor.Float32, tensor.Shape{1 << 20, 0})
	if err != nil {
		t.Fatal(err)
	}
	out = map[string]tensor.Tensor{strings.Repeat("y", 200): empty, strings.Repeat("z", 200): empty}
	if _, err := AppendPredictions(nil, out); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("names: got %v", err)
	}
}

// TestMemoryOfExamples reads examples whose messages are much larger than their text.
func TestMemoryOfExamples(t *testing.T) {
	const many = 1 << 19
	for name, text := range map[string]string{
		"examples": `{"examples": [` + strings.Repeat("{},", many) + `{}]}`,
		"values":   `{"examples": [{"a": [` + strings.Repeat(`"",`, 4*many) + `""]}]}`,
	} {
		doc, err := jsondoc.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		func() {
			old := membudget.Limit()
			defer membudget.SetLimit(old)
			membudget.SetLimit(64 << 20)
			defer func() {
				err, _ := recover().(error)
				if _, ok := errors.AsType[*membudget.Exceeded](err); !ok {
					t.Errorf("%s: got %v", name, err)
				}
			}()
			_, err = Examples(doc, "classify")
			t.Errorf("%s: there is memory, %v", name, err)
		}()
	}
}

// TestMemoryOfTexts reads strings, which are copies of the document.
func TestMemoryOfTexts(t *testing.T) {
	long := strings.Repeat("QUJD", 8<<20)
	for name, text := range map[string]string{"plain": `["` + long + `"]`, "escaped": `["\n` + long + `"]`, "base64": `[{"b64": "` + long + `"}]`} {
		doc, err := jsondoc.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		err = guard.Call(name, func() error {
			defer membudget.SetLimit(membudget.Limit())
			membudget.SetLimit(120 << 20) // two copies and what the test has
			_, err := Columns(doc, []serve.Argument{{Name: "x", DType: tensor.String}})
			return err
		})
		if status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
