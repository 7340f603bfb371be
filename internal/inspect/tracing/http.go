package tracing

import (
	"net/http"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// HTTP returns h with a span for each request. The name of the span has no part of the path that
// the client selects, so that names stay few: it is the method and what route returns for the
// request. A request has no span if route returns "".
func (t *Tracer) HTTP(h http.Handler, route func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := route(r)
		if name == "" {
			h.ServeHTTP(w, r)
			return
		}
		ctx := t.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, r.Method+" "+name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			semconv.HTTPRequestMethodKey.String(r.Method), semconv.HTTPRoute(name), semconv.URLPath(cut(r.URL.Path))))
		defer span.End()
		seen := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(seen, r.WithContext(ctx))
		span.SetAttributes(semconv.HTTPResponseStatusCode(seen.code))
		if seen.code >= http.StatusInternalServerError {
			span.SetAttributes(semconv.ErrorTypeKey.Int(seen.code))
			span.SetStatus(codes.Error, http.StatusText(seen.code))
		}
	})
}

// statusWriter remembers the status of a response.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap returns the writer for [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
