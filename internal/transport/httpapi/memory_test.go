package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestMemoryOfRequests sends requests that take more memory than there is once they are decoded.
func TestMemoryOfRequests(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(96 << 20)
	h := &Handler{
		Authorize: func(r *http.Request, _ string) (context.Context, error) { return r.Context(), nil },
		Log:       slog.New(slog.DiscardHandler),
	}
	const many = 4 << 20
	for _, test := range []struct{ name, path, body string }{
		{"nodes", "/v1/sessions", `{"graph_def": {"node": [` + strings.Repeat("{},", many) + `{}]}}`},
		{"shapes", "/v1/sessions", `{"graph_def": {"node": [{"attr": {"a": {"shape": {"dim": [` + strings.Repeat("{},", many) + `{}]}}}}]}}`},
		{"tensors", "/v1/sessions/s/callables/1/run", `{"feeds": [` + strings.Repeat("{},", many/8) + `{}]}`},
		{"fetches", "/v1/sessions/s/run", `{"fetches": [` + strings.Repeat(`"",`, many) + `""]}`},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, test.path, strings.NewReader(test.body)))
		if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "--memory-limit") {
			t.Errorf("%s: got %d %s", test.name, w.Code, w.Body)
		}
	}
}

// TestMemoryOfAnswers writes a tensor whose strings share one text.
func TestMemoryOfAnswers(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(256 << 20)
	vals, text := make([]string, 1<<20), strings.Repeat("x", 500)
	for i := range vals {
		vals[i] = text
	}
	v := tensor.Vector(vals...)
	for _, form := range []string{formValues, formBase64, formBytes} {
		var tail []byte
		if _, err := encode(&v, form, &tail); status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("%s: got %v", form, err)
		}
	}
}

// TestMemoryOfFeeds reads many strings from the same bytes.
func TestMemoryOfFeeds(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(256 << 20)
	const n = 4 << 20
	feed := &Tensor{DType: "string", Shape: &[]int64{n}, Bytes: &Range{Size: 4 * n}}
	c := &call{tail: make([]byte, 4*n)}
	_, err := c.decodeAll(slices.Repeat([]*Tensor{feed}, 8), strconv.Itoa)
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

func TestTextSize(t *testing.T) {
	for _, s := range []string{
		"", "abc", "\"\\\b\f\n\r\t/", "\x00\x1f\x7f", "<a>&", "\u2028\u2029\u2030", "\u00fc\u20ac\U0001f600", "\xff", "\xe2", "a\xe2\x80",
	} {
		if got, want := textLen(s), len(appendText(nil, s)); got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}

// TestMemoryOfTexts reads a string from JSON. Several copies of it exist meanwhile.
func TestMemoryOfTexts(t *testing.T) {
	text := []byte(`["` + strings.Repeat("x", 16<<20) + `"]`)
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(72 << 20)
	if _, err := decodeValues(tensor.String, &[]int64{1}, text); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}
