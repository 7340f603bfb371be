// Package otlp sends spans to an OpenTelemetry collector: OTLP/HTTP with binary protobuf
// (https://opentelemetry.io/docs/specs/otlp/, version 1.11).
//
// OpenTelemetry's own exporter would add 6.3 MB to the program, and 3.3 MB to the memory of an idle
// task: it links a gRPC library and the descriptors of all signals. Only what the spans of Weft
// have is encoded here: no events and no links.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Config says where spans go.
type Config struct {
	URL     string            // of the traces: "http://localhost:4318/v1/traces"
	Headers map[string]string // of each request
	Gzip    bool
	Timeout time.Duration // of one request
	TLS     *tls.Config   // nil for the default
	Log     *slog.Logger
}

// An Exporter sends spans. Its caller makes one call at a time.
type Exporter struct {
	config Config
	client *http.Client

	mu      sync.Mutex
	failing bool  // the last batch was lost; guarded by mu
	lost    int64 // spans since the collector took one; guarded by mu
}

// Backoff between attempts to send a batch.
const (
	firstBackoff = time.Second
	maxBackoff   = 10 * time.Second
)

// maxResponse bounds the answer of a collector, in bytes.
const maxResponse = 64 << 10

// New returns an exporter.
func New(c Config) *Exporter {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.TLSClientConfig = c.TLS
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Exporter{config: c, client: &http.Client{Transport: transport, Timeout: c.Timeout, CheckRedirect: refuse}}
}

// Export sends a request with some spans, again while the collector cannot be reached or has no
// room, until ctx ends. One that the collector does not take is lost: the error is logged once,
// until the collector takes a request.
func (e *Exporter) Export(ctx context.Context, request []byte, spans int) {
	body, err := e.body(request)
	if err != nil {
		e.dropped(spans, err)
		return
	}
	for pause := firstBackoff; ; pause = min(2*pause, maxBackoff) {
		after, err := e.send(ctx, body)
		if err == nil {
			e.taken()
			return
		}
		var temporary *temporaryError
		if !errors.As(err, &temporary) || !sleep(ctx, max(after, jitter(pause))) {
			e.dropped(spans, err)
			return
		}
	}
}

// body returns the body of an HTTP request.
func (e *Exporter) body(request []byte) ([]byte, error) {
	if !e.config.Gzip {
		return request, nil
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(request); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// temporaryError is an error after which a batch may be sent again.
type temporaryError struct{ error }

// send makes one request. after is the time that the collector asks to wait.
func (e *Exporter) send(ctx context.Context, body []byte) (after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.config.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for name, value := range e.config.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "weft")
	if e.config.Gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := e.client.Do(r)
	if err != nil {
		return 0, &temporaryError{err}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return 0, &temporaryError{err}
	}
	switch code := resp.StatusCode; code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 if it is a date, or absent
		return time.Duration(max(0, seconds)) * time.Second, &temporaryError{fmt.Errorf("HTTP status %s", resp.Status)}
	default:
		if code/100 != 2 {
			return 0, fmt.Errorf("HTTP status %s", resp.Status)
		}
	}
	if spans, why := rejected(answer); spans > 0 || why != "" {
		e.config.Log.Warn("the collector has not taken all spans", "url", e.config.URL, "rejected", spans, "reason", why)
	}
	return 0, nil
}

// taken is called when the collector has taken a batch.
func (e *Exporter) taken() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failing {
		e.config.Log.Info("the collector takes spans again", "url", e.config.URL, "lost", e.lost)
	}
	e.failing, e.lost = false, 0
}

// dropped is called when a batch is lost.
func (e *Exporter) dropped(spans int, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.failing {
		e.config.Log.Warn("spans are lost: the collector does not take them", "url", e.config.URL, "error", why)
	}
	e.failing, e.lost = true, e.lost+int64(spans)
}

// jitter returns a time between half of d and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// sleep waits for d. It returns false, at once, if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
