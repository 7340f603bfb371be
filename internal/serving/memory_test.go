package serving_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// repeated is a body of a head, many copies of a part, and a tail.
func repeated(head, part string, copies int, tail string) io.Reader {
	parts := []io.Reader{strings.NewReader(head)}
	block := strings.Repeat(part, 1<<16)
	for range copies >> 16 {
		parts = append(parts, strings.NewReader(block))
	}
	return io.MultiReader(append(parts, strings.NewReader(tail))...)
}

// TestMemoryOfRequests sends requests that would take more memory than there is: they fail, and the
// next one succeeds.
func TestMemoryOfRequests(t *testing.T) {
	r := start(t, nil, 1)
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(96 << 20)
	zip := func(in io.Reader) io.Reader {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := io.Copy(z, in); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	const many = 8 << 20
	for _, test := range []struct {
		name, path, encoding string
		body                 io.Reader
	}{
		{"numbers", "/v1/models/m:predict", "", repeated(`{"instances": [`, "0,", many, "0]}")},
		{"lists", "/v1/models/m:predict", "", repeated(`{"instances": `, "[", many, "")},
		{"compressed", "/v1/models/m:predict", "gzip", zip(repeated(`{"instances": [`, "0,", many, "0]}"))},
		{"numbers of version 2", "/v2/models/m/infer", "", repeated(
			`{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [`, "0,", many, "0]}]}")},
		{"compressed of version 2", "/v2/models/m/infer", "gzip", zip(repeated(`{"inputs": [`, "0,", many, "0]}"))},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+test.path, test.body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Encoding", test.encoding)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(text), "--memory-limit") {
			t.Errorf("%s: got %d %s, %v", test.name, resp.StatusCode, text, err)
		}
	}
	if code, text := r.post("/v1/models/m:predict", `{"instances": [[1, 1]]}`); code != http.StatusOK {
		t.Errorf("a small request: got %d %s", code, text)
	}
}
