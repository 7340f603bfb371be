package otlp

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
)

// scope is the library that makes spans.
type scope struct{ name, version, schema string }

// tracer makes the spans of a scope. It implements [trace.Tracer].
type tracer struct {
	embedded.Tracer
	provider *Provider
	scope    scope
}

// Start implements [trace.Tracer]. Links have no effect.
func (t *tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	c := trace.NewSpanStartConfig(options...)
	if c.NewRoot() {
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	parent := trace.SpanContextFromContext(ctx)
	of := trace.SpanContextConfig{TraceID: parent.TraceID()}
	if !of.TraceID.IsValid() {
		of.TraceID, parent = newTraceID(), trace.SpanContext{}
	}
	decision := t.provider.sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: ctx, TraceID: of.TraceID, Name: name, Kind: c.SpanKind(), Attributes: c.Attributes(),
	})
	of.SpanID, of.TraceState = newSpanID(), decision.Tracestate
	sampled := decision.Decision == sdktrace.RecordAndSample
	of.TraceFlags = parent.TraceFlags().WithSampled(sampled)
	if !sampled {
		ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(of))
		return ctx, trace.SpanFromContext(ctx)
	}
	s := &span{
		tracer: t, self: trace.NewSpanContext(of), parent: parent.SpanID(), remote: parent.IsRemote(), kind: trace.ValidateSpanKind(c.SpanKind()),
		began: c.Timestamp(), name: name,
	}
	s.attributes = appendAttributes(s.memory[:0], c.Attributes())
	if s.began.IsZero() {
		s.began = time.Now()
	}
	return trace.ContextWithSpan(ctx, s), s
}

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
		binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.LittleEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// span is a sampled span. It implements [trace.Span]. What is not sent has no effect: events and
// links.
type span struct {
	embedded.Span
	tracer *tracer
	self   trace.SpanContext
	parent trace.SpanID // zero for none
	remote bool         // the parent is of another process
	kind   trace.SpanKind
	began  time.Time

	mu          sync.Mutex
	ended       bool       // guarded by mu
	name        string     // guarded by mu
	attributes  []byte     // encoded; guarded by mu
	code        codes.Code // guarded by mu
	description string     // guarded by mu
	memory      [208]byte  // first memory of attributes: enough for a call
}

// End implements [trace.Span].
func (s *span) End(options ...trace.SpanEndOption) {
	end := time.Now()
	if len(options) > 0 {
		c := trace.NewSpanEndConfig(options...)
		if at := c.Timestamp(); !at.IsZero() {
			end = at
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		s.tracer.provider.batcher.add(s, end)
	}
}

// AddEvent implements [trace.Span].
func (*span) AddEvent(string, ...trace.EventOption) {}

// AddLink implements [trace.Span].
func (*span) AddLink(trace.Link) {}

// RecordError implements [trace.Span].
func (*span) RecordError(error, ...trace.EventOption) {}

// IsRecording implements [trace.Span].
func (s *span) IsRecording() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended
}

// SpanContext implements [trace.Span].
func (s *span) SpanContext() trace.SpanContext { return s.self }

// SetStatus implements [trace.Span]. A later status takes effect if its code is not lower, as
// OpenTelemetry has it.
func (s *span) SetStatus(code codes.Code, description string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.code > code {
		return
	}
	if code != codes.Error {
		description = ""
	}
	s.code, s.description = code, description
}

// SetName implements [trace.Span].
func (s *span) SetName(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name = name
}

// SetAttributes implements [trace.Span]. The caller sets each key once.
func (s *span) SetAttributes(attributes ...attribute.KeyValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attributes = appendAttributes(s.attributes, attributes)
}

// TracerProvider implements [trace.Span].
func (s *span) TracerProvider() trace.TracerProvider { return s.tracer.provider }
