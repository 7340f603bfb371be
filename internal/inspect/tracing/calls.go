package tracing

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// callKey is what the spans of calls differ in at their beginning.
type callKey struct {
	kind         trace.SpanKind
	method, peer string
}

// options returns the options of the span of a call.
func (k callKey) options() []trace.SpanStartOption {
	attributes := []attribute.KeyValue{semconv.RPCSystemNameGRPC, semconv.RPCMethod(k.method[1:])}
	if k.peer != "" {
		attributes = append(attributes, keyPeer.String(k.peer))
	}
	return []trace.SpanStartOption{trace.WithSpanKind(k.kind), trace.WithAttributes(attributes...)}
}

// maxCallOptions bounds what callOptions keeps: clients choose the names of methods.
const maxCallOptions = 1024

// callOptions keeps the options of the spans of calls, which are made again and again.
type callOptions struct {
	kept sync.Map // from callKey to []trace.SpanStartOption
	size atomic.Int32
}

func (c *callOptions) get(k callKey) []trace.SpanStartOption {
	if kept, ok := c.kept.Load(k); ok {
		return kept.([]trace.SpanStartOption) //nolint:forcetypeassert // see above
	}
	o := k.options()
	if c.size.Load() < maxCallOptions {
		if _, loaded := c.kept.LoadOrStore(k, o); !loaded {
			c.size.Add(1)
		}
	}
	return o
}
