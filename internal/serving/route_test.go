package serving

import (
	"net/http/httptest"
	"testing"
)

func TestRoute(t *testing.T) {
	for _, test := range []struct{ method, path, want string }{
		{"POST", "/v1/models/m:predict", "/v1/models/{model}:predict"},
		{"POST", "/V1/models/m/versions/3:Classify", "/v1/models/{model}:classify"},
		{"POST", "/v2/models/m/versions/3/infer", "/v2/models/{model}/infer"},
		{"POST", "/v1/models/m:other", ""},
		{"POST", "/v1/models", ""},
		{"POST", "/", ""},
		{"GET", "/v1/models/m", ""},
		{"GET", "/v2/health/ready", ""},
	} {
		if got := route(httptest.NewRequest(test.method, test.path, nil)); got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.method, test.path, got, test.want)
		}
	}
}
