package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
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
	Port        uint16 // of the collector
	parentBased bool
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
	b := newBatcher(New(*config), batchLimitsFrom(os.Getenv, log))
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b), sdktrace.WithResource(of))
	return &Provider{p, config.Port(), parentBased(os.Getenv)}, nil
}

// ParentBased reports whether no span is sampled below one that is not. Such spans need not be made.
func (p *Provider) ParentBased() bool { return p.parentBased }

// parentBased reports whether the sampler that OpenTelemetry's variable names follows the parent.
// It is parentbased_always_on without one, and for a name that OpenTelemetry does not know.
func parentBased(get func(string) string) bool {
	switch strings.ToLower(strings.TrimSpace(get("OTEL_TRACES_SAMPLER"))) {
	case "always_on", "always_off", "traceidratio":
		return false
	}
	return true
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
