package serving_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestDescription requests the description and its page.
func TestDescription(t *testing.T) {
	r := start(t, nil, 1)
	code, body := r.get("/openapi.json")
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || code != http.StatusOK {
		t.Fatalf("got %d, %v", code, err)
	}
	for _, path := range []string{"/v1/models/{model}:predict", "/v1/models/{model}/labels/{label}:classify", "/v2/models/{model}/versions/{version}/infer"} {
		if doc.Paths[path]["post"] == nil {
			t.Errorf("%s is not described", path)
		}
	}
	if code, body := r.get("/docs/"); code != http.StatusOK || !strings.Contains(body, "swagger-ui") {
		t.Errorf("got %d %s", code, body)
	}
	if code, _ := r.get("/docs/none"); code != http.StatusNotFound {
		t.Errorf("got %d", code)
	}
}
