package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// collector is an OpenTelemetry collector.
type collector struct {
	t *testing.T
	*httptest.Server

	mu       sync.Mutex
	answers  []func(http.ResponseWriter) // of the next requests; 200 after them; guarded by mu
	requests []*http.Request             // guarded by mu
	batches  []*tracepb.TracesData       // taken; guarded by mu
}

func newCollector(t *testing.T, answers ...func(http.ResponseWriter)) *collector {
	c := &collector{t: t, answers: answers}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Error(err)
	}
	if len(c.answers) > 0 {
		answer := c.answers[0]
		c.answers = c.answers[1:]
		answer(w)
		return
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(z)
		}
		if err != nil {
			c.t.Error(err)
		}
	}
	batch := &tracepb.TracesData{} // has the fields of ExportTraceServiceRequest
	if err := proto.Unmarshal(body, batch); err != nil {
		c.t.Error(err)
	}
	c.batches = append(c.batches, batch)
}

func noEnvironment(string) string { return "" }

func status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(code) }
}

// send makes two spans and exports them.
func (c *collector) send(config Config) *Exporter {
	c.t.Helper()
	config.URL = c.URL + tracesPath
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	e := New(config)
	of := resource.NewWithAttributes("https://example.org/schema", attribute.String("service.name", "weft"))
	p := &Provider{sampler: sdktrace.AlwaysSample(), batcher: newBatcher(e, batchLimitsFrom(noEnvironment, config.Log), of)}
	tracer := p.Tracer("scope", trace.WithInstrumentationVersion("v1"))
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		c.t.Fatal(err)
	}
	remote := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 15: 2}, SpanID: trace.SpanID{3, 7: 4}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true,
	})
	ctx, outer := tracer.Start(trace.ContextWithSpanContext(c.t.Context(), remote), "outer", trace.WithSpanKind(trace.SpanKindServer),
		trace.WithTimestamp(time.Unix(1700000000, 5)), trace.WithAttributes(
			attribute.String("s", ""), attribute.Int64("i", -7), attribute.Bool("b", true), attribute.Float64("f", 0.5),
			attribute.StringSlice("ss", []string{"x", ""}), attribute.Int64Slice("is", []int64{1, -2}),
			attribute.BoolSlice("bs", []bool{false, true}), attribute.Float64Slice("fs", []float64{0, 2})))
	_, inner := tracer.Start(ctx, "inner")
	inner.SetStatus(codes.Error, "it failed")
	inner.End()
	outer.SetStatus(codes.Ok, "")
	outer.End(trace.WithTimestamp(time.Unix(1700000001, 6)))
	p.Close()
	return e
}

// TestEncoding reads what an exporter sends with the types of OpenTelemetry.
func TestEncoding(t *testing.T) {
	for _, zip := range []bool{false, true} {
		c := newCollector(t)
		c.send(Config{Gzip: zip, Headers: map[string]string{"x-key": "secret"}})
		if len(c.batches) != 1 || len(c.requests) != 1 {
			t.Fatalf("%d batches", len(c.batches))
		}
		r := c.requests[0]
		if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("X-Key") != "secret" {
			t.Errorf("got a request for %s with %v", r.URL.Path, r.Header)
		}
		res := c.batches[0].ResourceSpans[0]
		scope := res.ScopeSpans[0]
		if res.SchemaUrl != "https://example.org/schema" || res.Resource.Attributes[0].Key != "service.name" ||
			scope.Scope.Name != "scope" || scope.Scope.Version != "v1" || len(scope.Spans) != 2 {
			t.Fatalf("got %v", res)
		}
		inner, outer := scope.Spans[0], scope.Spans[1]
		if !bytes.Equal(inner.ParentSpanId, outer.SpanId) || !bytes.Equal(inner.TraceId, outer.TraceId) ||
			!bytes.Equal(outer.ParentSpanId, []byte{3, 0, 0, 0, 0, 0, 0, 4}) || outer.TraceState != "vendor=1" {
			t.Errorf("got the spans %v and %v", outer, inner)
		}
		if outer.Name != "outer" || outer.Kind != tracepb.Span_SPAN_KIND_SERVER || inner.Kind != tracepb.Span_SPAN_KIND_INTERNAL ||
			outer.StartTimeUnixNano != 1700000000000000005 || outer.EndTimeUnixNano != 1700000001000000006 ||
			outer.Flags != 0x301 || inner.Flags != 0x101 {
			t.Errorf("got the spans %v and %v", outer, inner)
		}
		if outer.Status.GetCode() != tracepb.Status_STATUS_CODE_OK || inner.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR ||
			inner.Status.GetMessage() != "it failed" {
			t.Errorf("got the states %v and %v", outer.Status, inner.Status)
		}
		checkAttributes(t, outer.Attributes)
	}
}

func checkAttributes(t *testing.T, got []*commonpb.KeyValue) {
	t.Helper()
	text := func(s string) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
	}
	number := func(i int64) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: i}}
	}
	truth := func(b bool) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: b}}
	}
	float := func(f float64) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: f}}
	}
	list := func(v ...*commonpb.AnyValue) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: v}}}
	}
	want := []*commonpb.KeyValue{
		{Key: "s", Value: text("")}, {Key: "i", Value: number(-7)}, {Key: "b", Value: truth(true)}, {Key: "f", Value: float(0.5)},
		{Key: "ss", Value: list(text("x"), text(""))}, {Key: "is", Value: list(number(1), number(-2))},
		{Key: "bs", Value: list(truth(false), truth(true))}, {Key: "fs", Value: list(float(0), float(2))},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d attributes", len(got))
	}
	for i := range want {
		if !proto.Equal(got[i], want[i]) {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
}

// TestAgain has a collector that takes a batch at the second attempt.
func TestAgain(t *testing.T) {
	var log bytes.Buffer
	c := newCollector(t, status(http.StatusServiceUnavailable))
	c.send(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if len(c.batches) != 1 || len(c.requests) != 2 || log.Len() > 0 {
		t.Errorf("%d batches in %d requests, log %q", len(c.batches), len(c.requests), log.String())
	}
}

// TestRefused has a collector that refuses batches, and takes a later one.
func TestRefused(t *testing.T) {
	var log bytes.Buffer
	c := newCollector(t, status(http.StatusUnauthorized), status(http.StatusForbidden))
	config := Config{Log: slog.New(slog.NewTextHandler(&log, nil)), URL: c.URL + tracesPath}
	e := New(config)
	for range 3 {
		e.Export(t.Context(), nil, 1)
	}
	got := log.String()
	if strings.Count(got, "spans are lost") != 1 || !strings.Contains(got, "401 Unauthorized") || !strings.Contains(got, "lost=2") {
		t.Errorf("got the log %q", got)
	}
}

// TestUnreachable has no collector: a batch is given up when its time is over, not later.
func TestUnreachable(t *testing.T) {
	e := New(Config{URL: "http://127.0.0.1:1" + tracesPath, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	e.Export(ctx, nil, 1)
	if e.lost != 1 {
		t.Errorf("%d spans are lost", e.lost)
	}
}

// TestPartialSuccess has a collector that takes a part of a batch.
func TestPartialSuccess(t *testing.T) {
	partial := appendText(appendInteger(nil, 1, 1), 2, "too old")
	var log bytes.Buffer
	c := newCollector(t, func(w http.ResponseWriter) {
		if _, err := w.Write(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)); err != nil {
			t.Error(err)
		}
	})
	c.send(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if got := log.String(); !strings.Contains(got, "rejected=1") || !strings.Contains(got, "too old") {
		t.Errorf("got the log %q", got)
	}
}

func FuzzRejected(f *testing.F) {
	f.Add([]byte{10, 4, 8, 1, 18, 0})
	f.Add([]byte{0xff})
	f.Fuzz(func(_ *testing.T, b []byte) { rejected(b) })
}
