package otlp

import (
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func parent(flags trace.TraceFlags) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags, Remote: true,
	})
}

// TestSpansAgree makes the same spans with OpenTelemetry's provider and compares what callers see.
func TestSpansAgree(t *testing.T) {
	for _, name := range []string{
		"", "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
	} {
		t.Setenv(envSampler, name)
		t.Setenv(envSamplerArg, "0")
		own, _ := testProvider(t)
		theirs := sdktrace.NewTracerProvider()
		for what, in := range map[string]trace.SpanContext{"none": {}, "sampled": parent(1), "not sampled": parent(0), "random": parent(3)} {
			for _, root := range []bool{false, true} {
				var spans [2]trace.Span
				for i, p := range []trace.TracerProvider{own, theirs} {
					ctx := trace.ContextWithSpanContext(t.Context(), in)
					options := []trace.SpanStartOption{trace.WithAttributes(attribute.Int("a", 1))}
					if root {
						options = append(options, trace.WithNewRoot())
					}
					ctx, spans[i] = p.Tracer("scope").Start(ctx, "name", options...)
					if got := trace.SpanFromContext(ctx).SpanContext(); !got.Equal(spans[i].SpanContext()) {
						t.Errorf("%s, %s: the context has %v", name, what, got)
					}
				}
				a, b := spans[0].SpanContext(), spans[1].SpanContext()
				if a.TraceFlags().IsSampled() != b.TraceFlags().IsSampled() || !a.IsValid() || a.IsRemote() != b.IsRemote() ||
					(a.TraceID() == in.TraceID()) != (b.TraceID() == in.TraceID()) || spans[0].IsRecording() != spans[1].IsRecording() {
					t.Errorf("%s, %s, root %v: got %v, want %v", name, what, root, a, b)
				}
				spans[0].End()
				if spans[0].IsRecording() {
					t.Error("a span records after its end")
				}
			}
		}
	}
}

// testProvider returns a provider as the environment has it, and its collector.
func testProvider(t *testing.T) (*Provider, *collector) {
	t.Helper()
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	p, err := Start("instance", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, c
}

// A span is sent once, with the last name and the highest status.
func TestSpanEndsOnce(t *testing.T) {
	p, c := testProvider(t)
	_, s := p.Tracer("scope").Start(t.Context(), "first")
	s.SetName("last")
	s.SetAttributes(attribute.String("k", "v"))
	s.SetStatus(codes.Error, "it failed")
	s.SetStatus(codes.Unset, "")
	s.End()
	s.End()
	_, other := p.Tracer("another scope").Start(t.Context(), "other")
	other.SetStatus(codes.Ok, "not kept")
	other.SetStatus(codes.Error, "too late")
	other.End()
	p.Close()
	if len(c.batches) != 2 {
		t.Fatalf("got %d batches", len(c.batches))
	}
	first, second := c.batches[0].ResourceSpans[0].ScopeSpans[0], c.batches[1].ResourceSpans[0].ScopeSpans[0]
	if got := first.Spans[0]; len(first.Spans) != 1 || got.Name != "last" || got.Status.Message != "it failed" || len(got.Attributes) != 1 {
		t.Errorf("got %v", first)
	}
	if got := second.Spans[0].Status; second.Scope.Name != "another scope" || got.Message != "" || got.Code != 1 {
		t.Errorf("got %v", second)
	}
}

func TestSamplers(t *testing.T) {
	for _, tt := range []struct {
		name, arg   string
		description string
		follows     bool
		err         string
	}{
		{description: "ParentBased{root:AlwaysOnSampler", follows: true},
		{name: " ParentBased_TraceIDRatio ", arg: "0.25", description: "ParentBased{root:TraceIDRatioBased{0.25}", follows: true},
		{name: "traceidratio", arg: "", description: "TraceIDRatioBased{1}"},
		{name: "always_off", description: "AlwaysOffSampler"},
		{name: "jaeger_remote", err: "OTEL_TRACES_SAMPLER=jaeger_remote: "},
		{name: "traceidratio", arg: "1.5", err: "OTEL_TRACES_SAMPLER_ARG=1.5: "},
		{name: "traceidratio", arg: "NaN", err: "OTEL_TRACES_SAMPLER_ARG=NaN: "},
	} {
		s, follows, err := samplerFrom(func(name string) string { return map[string]string{envSampler: tt.name, envSamplerArg: tt.arg}[name] })
		switch {
		case tt.err != "":
			if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
				t.Errorf("%s: got the error %v", tt.name, err)
			}
		case err != nil || !strings.HasPrefix(s.Description(), tt.description) || follows != tt.follows:
			t.Errorf("%s: got %v, %v, %v", tt.name, s, follows, err)
		}
	}
}

// BenchmarkSpan makes a span as a call has it. OpenTelemetry's provider is for comparison.
func BenchmarkSpan(b *testing.B) {
	e := New(Config{URL: "http://127.0.0.1:1" + tracesPath, Log: slog.New(slog.DiscardHandler)})
	own := &Provider{sampler: sdktrace.AlwaysSample(), batcher: newBatcher(e, batchLimits{1 << 40, 1 << 40, 1 << 30, 512}, resource.Empty())}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("rpc.system", "grpc"), attribute.String("rpc.method", "a/b"), attribute.String("weft.peer", "/job:ps/task:0"))}
	for name, p := range map[string]trace.TracerProvider{"own": own, "OpenTelemetry": sdktrace.NewTracerProvider()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			t := p.Tracer("scope")
			for b.Loop() {
				_, s := t.Start(b.Context(), "name", options...)
				s.SetAttributes(attribute.String("rpc.response.status_code", "OK"))
				s.End()
			}
		})
	}
}
