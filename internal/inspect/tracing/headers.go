package tracing

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/weft-ml/weft/internal/transport/grpch2"
)

// headers carries W3C Trace Context for calls. It implements [propagation.TextMapCarrier].
type headers grpch2.TraceHeaders

func (h *headers) field(key string) *string {
	switch key {
	case "traceparent":
		return &h.Parent
	case "tracestate":
		return &h.State
	}
	return new(string)
}

func (h *headers) Get(key string) string { return *h.field(key) }

func (h *headers) Set(key, value string) { *h.field(key) = value }

func (h *headers) Keys() []string { return []string{"traceparent", "tracestate"} }

// unsampled are the headers for calls within a trace that is not sampled. A context has them in
// place of a span.
type unsampled grpch2.TraceHeaders

// unsampledKey is the key of an *unsampled in a context.
type unsampledKey struct{}

// unsampledIn returns what a context has in place of a span; nil if it is not unsampled.
func unsampledIn(ctx context.Context) *unsampled {
	u, _ := ctx.Value(unsampledKey{}).(*unsampled)
	return u
}

// saysUnsampled reports whether a traceparent is well formed, of version 0, and not sampled:
// "00-", 32 digits, "-", 16 digits, "-", flags. It is false for others, which OpenTelemetry reads.
func saysUnsampled(parent string) bool {
	const length, idEnd, flags = 55, 35, 53
	if len(parent) != length || parent[:3] != "00-" || parent[idEnd] != '-' || parent[flags-1] != '-' || parent[flags] != '0' ||
		parent[flags+1] != '0' && parent[flags+1] != '2' {
		return false
	}
	id, err := trace.TraceIDFromHex(parent[3:idEnd])
	if err != nil || !id.IsValid() {
		return false
	}
	span, err := trace.SpanIDFromHex(parent[idEnd+1 : flags-1])
	return err == nil && span.IsValid()
}
