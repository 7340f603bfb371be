// Package tracing makes spans for OpenTelemetry of the calls, steps and functions of a task, so
// that they appear in the trace of the program that caused them.
//
// A span is made of each call that is served and made, of each step at its master, and of each
// function of a TensorFlow 2 client. Callers and tasks pass the name of their span on with W3C
// Trace Context (https://www.w3.org/TR/trace-context/), in the metadata of a call. Attributes have
// the names of OpenTelemetry's semantic conventions.
//
// A call without a caller's span begins a trace of its own if a client makes it for its own work.
// Calls with which tasks and monitoring keep a cluster alive do not: they would be most of all
// traces.
package tracing

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/weft-ml/weft/internal/sys/buildinfo"
	"github.com/weft-ml/weft/internal/sys/observe"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

// Attributes that OpenTelemetry's conventions have no name for.
const (
	keySession  = attribute.Key("weft.session")
	keyStep     = attribute.Key("weft.step.id")
	keyTasks    = attribute.Key("weft.step.tasks")
	keyFunction = attribute.Key("weft.function")
	keyPeer     = attribute.Key("weft.peer")
)

// Tracer makes spans. It implements [grpch2.CallTracer] and [observe.Tracer].
type Tracer struct {
	tracer      trace.Tracer
	propagator  propagation.TraceContext
	parentBased bool // see [ParentBased]
	calls       callOptions
}

var (
	_ grpch2.CallTracer = (*Tracer)(nil)
	_ observe.Tracer    = (*Tracer)(nil)
)

// ParentBased is what a provider may implement whose sampler follows the parent: no span is sampled
// below one that is not. Then a trace that is not sampled costs little: only its first span is
// made, and the calls below it say that it is not sampled.
type ParentBased interface{ ParentBased() bool }

// New returns a tracer whose spans a provider takes.
func New(p trace.TracerProvider) *Tracer {
	follows, ok := p.(ParentBased)
	return &Tracer{
		tracer: p.Tracer("github.com/weft-ml/weft", trace.WithInstrumentationVersion(buildinfo.Read().Version),
			trace.WithSchemaURL(semconv.SchemaURL)),
		parentBased: ok && follows.ParentBased(),
	}
}

// start begins a span in a context that is not unsampled. It is nil if the span and those below it
// are not sampled: the context is unsampled then.
func (t *Tracer) start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	within, span := t.tracer.Start(ctx, name, options...)
	if !t.parentBased || span.IsRecording() {
		return within, span
	}
	u := new(unsampled)
	t.propagator.Inject(within, (*headers)(u))
	return context.WithValue(ctx, unsampledKey{}, u), nil
}

// StepBegan implements [observe.Tracer].
func (t *Tracer) StepBegan(ctx context.Context, session string, tasks int) (context.Context, func(int64, error)) {
	if unsampledIn(ctx) != nil {
		return ctx, func(int64, error) {}
	}
	ctx, span := t.start(ctx, "step", trace.WithAttributes(keySession.String(session), keyTasks.Int(tasks)))
	return ctx, func(id int64, err error) {
		if span != nil {
			span.SetAttributes(keyStep.Int64(id))
			finish(span, err)
		}
	}
}

// FunctionBegan implements [observe.Tracer].
func (t *Tracer) FunctionBegan(ctx context.Context, name string) (context.Context, func(error)) {
	if unsampledIn(ctx) != nil {
		return ctx, func(error) {}
	}
	ctx, span := t.start(ctx, "function", trace.WithAttributes(keyFunction.String(cut(name))))
	return ctx, func(err error) {
		if span != nil {
			finish(span, err)
		}
	}
}

// maxText bounds the texts of a span that clients choose, in bytes. Thousands of spans may wait for
// their collector.
const maxText = 4 << 10

// cut returns the start of a text.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// finish ends a span with the outcome of its work.
func finish(span trace.Span, err error) {
	if err != nil {
		span.SetAttributes(semconv.ErrorTypeKey.String(status.CodeOf(err).String()))
		span.SetStatus(codes.Error, cut(err.Error()))
	}
	span.End()
}

// Served implements [grpch2.CallTracer].
func (t *Tracer) Served(
	ctx context.Context, method, peer string, from grpch2.TraceHeaders,
) (context.Context, func(uint32, string)) {
	if from.Parent != "" {
		if t.parentBased && saysUnsampled(from.Parent) {
			return context.WithValue(ctx, unsampledKey{}, (*unsampled)(&from)), nil
		}
		ctx = t.propagator.Extract(ctx, (*headers)(&from))
	}
	if !trace.SpanContextFromContext(ctx).IsValid() && !beginsTrace(method) {
		return ctx, nil
	}
	ctx, span := t.start(ctx, method[1:], t.calls.get(callKey{trace.SpanKindServer, method, peer})...)
	if span == nil {
		return ctx, nil
	}
	return ctx, func(code uint32, text string) { finishCall(span, code, text, faultOfServer(status.Code(code))) }
}

// Called implements [grpch2.CallTracer].
func (t *Tracer) Called(ctx context.Context, method, peer string) (to grpch2.TraceHeaders, end func(uint32, string)) {
	if u := unsampledIn(ctx); u != nil {
		if beginsTrace(method) {
			to = grpch2.TraceHeaders(*u) // without them it would
		}
		return to, nil
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return to, nil
	}
	ctx, span := t.start(ctx, method[1:], t.calls.get(callKey{trace.SpanKindClient, method, peer})...)
	if span == nil {
		return to, nil
	}
	t.propagator.Inject(ctx, (*headers)(&to))
	return to, func(code uint32, text string) { finishCall(span, code, text, code != 0) }
}

// answeredOK are the attributes of a call that succeeded.
var answeredOK = []attribute.KeyValue{semconv.RPCResponseStatusCode(status.OK.String())}

// finishCall ends the span of a call.
func finishCall(span trace.Span, code uint32, text string, failed bool) {
	if status.Code(code) == status.OK {
		span.SetAttributes(answeredOK...)
		span.End()
		return
	}
	name := status.Code(code).String()
	span.SetAttributes(semconv.RPCResponseStatusCode(name))
	if failed {
		span.SetAttributes(semconv.ErrorTypeKey.String(name))
		span.SetStatus(codes.Error, cut(text))
	}
	span.End()
}

// faultOfServer reports whether a code is an error of the server, by OpenTelemetry's conventions
// for gRPC. Other codes are errors of the caller alone.
func faultOfServer(c status.Code) bool {
	switch c {
	case status.Unknown, status.DeadlineExceeded, status.Unimplemented, status.Internal, status.Unavailable, status.DataLoss:
		return true
	default:
		return false
	}
}

// quiet are the methods of clients and tasks that begin no trace. A StreamingEnqueue lasts as long
// as its client: the functions that it calls begin traces.
var quiet = []string{"/tensorflow.eager.EagerService/KeepAlive", "/tensorflow.eager.EagerService/StreamingEnqueue"}

// beginsTrace reports whether a served call without a caller's span begins a trace: a client made
// it, or a master that passes no spans on.
func beginsTrace(method string) bool {
	switch {
	case strings.HasPrefix(method, "/tensorflow.WorkerService/"):
		return strings.HasSuffix(method, "/RunGraph")
	case strings.HasPrefix(method, "/grpc."), strings.HasPrefix(method, "/weft."):
		return false
	}
	return !slices.Contains(quiet, method)
}
