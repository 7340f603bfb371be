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

	"github.com/weft-ml/weft/internal/sys/buildinfo"
)

// closeTimeout bounds the time in which the last spans are sent.
const closeTimeout = 2 * time.Second

// A Provider sends spans to a collector.
type Provider struct {
	*sdktrace.TracerProvider
	Port uint16 // of the collector
}

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
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(New(*config)), sdktrace.WithResource(of))
	return &Provider{p, config.Port()}, nil
}

// Close sends the spans that are left, for at most two seconds. A nil provider has none.
func (p *Provider) Close() {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = p.Shutdown(ctx) // the exporter has logged its errors
}
