package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
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
		{"fetches", "/v1/sessions/s/run", `{"fetches": [` + strings.Repeat(`"",`, many) + `""]}`},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, test.path, strings.NewReader(test.body)))
		if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "--memory-limit") {
			t.Errorf("%s: got %d %s", test.name, w.Code, w.Body)
		}
	}
}
