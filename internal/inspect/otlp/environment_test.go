package otlp

import (
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestFromEnvironment(t *testing.T) {
	type env map[string]string
	for _, test := range []struct {
		name string
		env  env
		url  string // "" for none
		err  string
	}{
		{"nothing", env{}, "", ""},
		{"endpoint", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "http://c:4318/v1/traces", ""},
		{"endpoint with a folder", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c/otlp/"}, "https://c/otlp/v1/traces", ""},
		{"endpoint of traces", env{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d:4318/in",
		}, "http://d:4318/in", ""},
		{"endpoint of traces without a path", env{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d:4318"}, "http://d:4318/", ""},
		{"default endpoint", env{"OTEL_TRACES_EXPORTER": "otlp"}, "http://localhost:4318/v1/traces", ""},
		{"no exporter", env{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "", ""},
		{"disabled", env{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "", ""},
		{"unknown exporter", env{"OTEL_TRACES_EXPORTER": "zipkin"}, "", "OTEL_TRACES_EXPORTER=zipkin: Weft has the exporters otlp and none"},
		{"protocol", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "http://c:4318/v1/traces", ""},
		{"other protocol", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "",
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc: Weft sends"},
		{"no URL", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4318"}, "", "OTEL_EXPORTER_OTLP_ENDPOINT=c:4318: it is a URL"},
		{"time", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_TIMEOUT": "1s"}, "", "OTEL_EXPORTER_OTLP_TIMEOUT=1s: it is a positive"},
		{"compression", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "", "it is gzip or none"},
		{"header", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "secret"}, "", "a header has no name"},
		{"value of a header", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "k=%zz"}, "", "header k is not percent-encoded"},
		{"certificate", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, "", "OTEL_EXPORTER_OTLP_CERTIFICATE: open /nowhere"},
	} {
		c, err := FromEnvironment(func(name string) string { return test.env[name] }, slog.New(slog.DiscardHandler))
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got the error %v, want %q", test.name, err, test.err)
			}
		case err != nil:
			t.Errorf("%s: %v", test.name, err)
		case (c == nil) != (test.url == ""):
			t.Errorf("%s: got %v", test.name, c)
		case c != nil && c.URL != test.url:
			t.Errorf("%s: got %s, want %s", test.name, c.URL, test.url)
		}
	}
}

func TestSettings(t *testing.T) {
	env := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":       "https://c",
		"OTEL_EXPORTER_OTLP_HEADERS":        "a=1",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "authorization=Bearer%20x, k = v ,",
		"OTEL_EXPORTER_OTLP_TIMEOUT":        "2500",
		"OTEL_EXPORTER_OTLP_COMPRESSION":    "gzip",
	}
	c, err := FromEnvironment(func(name string) string { return env[name] }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"authorization": "Bearer x", "k": "v"}; !maps.Equal(c.Headers, want) {
		t.Errorf("got the headers %q", c.Headers)
	}
	if !c.Gzip || c.Timeout != 2500*time.Millisecond || c.TLS == nil || c.Port() != 443 {
		t.Errorf("got %+v, port %d", c, c.Port())
	}
}
