package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"

	"github.com/weft-ml/weft/internal/sys/buildinfo"
)

// closeTimeout bounds the time in which the last spans are sent.
const closeTimeout = 2 * time.Second

// A Provider makes spans and sends them to a collector. It implements [trace.TracerProvider].
//
// OpenTelemetry's own provider keeps each span, with its attributes, until it is sent, and wakes a
// goroutine for it. Each span added 10 µs to a step of 50 µs. Here a span is encoded when it ends.
// Samplers, the variables of the environment and the attributes of the process are OpenTelemetry's.
type Provider struct {
	embedded.TracerProvider
	Port        uint16 // of the collector
	sampler     sdktrace.Sampler
	parentBased bool
	batcher     *batcher
}

var _ trace.TracerProvider = (*Provider)(nil)

// Start returns a provider as OpenTelemetry's variables describe it, nil if they ask for
// no traces. The instance tells the processes of a service apart. The caller calls Close. It sets
// the handler for errors of OpenTelemetry, which the process has once.
func Start(instance string, log *slog.Logger) (*Provider, error) {
	config, err := FromEnvironment(os.Getenv, log)
	if config == nil || err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("OpenTelemetry", "error", err) }))
	of, err := resource.New(context.Background(),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(semconv.ServiceName("weft"), semconv.ServiceVersion(buildinfo.Read().Version), semconv.ServiceInstanceID(instance)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	sampler, parentBased, err := samplerFrom(os.Getenv)
	if err != nil {
		return nil, err
	}
	b := newBatcher(New(*config), batchLimitsFrom(os.Getenv, log), of)
	return &Provider{Port: config.Port(), sampler: sampler, parentBased: parentBased, batcher: b}, nil
}

// Tracer implements [trace.TracerProvider].
func (p *Provider) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	c := trace.NewTracerConfig(options...)
	return &tracer{provider: p, scope: scope{name, c.InstrumentationVersion(), c.SchemaURL()}}
}

// ParentBased reports whether no span is sampled below one that is not. Such spans need not be
// made.
func (p *Provider) ParentBased() bool { return p.parentBased }

// Close sends the spans that are left, for at most two seconds. A nil provider has none.
func (p *Provider) Close() {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	p.batcher.shutdown(ctx)
}
