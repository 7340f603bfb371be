package otlp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// transport is a collector without a network.
type transport struct {
	t     *testing.T
	stuck atomic.Bool // requests wait until they are cancelled

	mu      sync.Mutex
	batches []int // guarded by mu
}

func (c *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.stuck.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	batch := &tracepb.TracesData{}
	if err := proto.Unmarshal(body, batch); err != nil {
		c.t.Error(err)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches = append(c.batches, len(batch.ResourceSpans[0].ScopeSpans[0].Spans))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// batched runs f with a batcher of the default limits, and returns the log.
func batched(t *testing.T, c *transport, f func(b *batcher, span *span)) string {
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{URL: "http://collector" + tracesPath, Log: slog.New(slog.NewTextHandler(&log, nil))})
		e.client = &http.Client{Transport: c}
		b := newBatcher(e, batchLimitsFrom(noEnvironment, e.config.Log), resource.Empty())
		f(b, &span{tracer: &tracer{}, name: "span"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		b.shutdown(ctx)
		if err := ctx.Err(); err != nil {
			t.Error(err)
		}
	})
	return log.String()
}

func (c *transport) expect(batches ...int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.batches, batches) {
		c.t.Errorf("got the batches %v, want %v", c.batches, batches)
	}
}

// Spans are sent when a batch is full, when the time has passed and at the end.
func TestBatches(t *testing.T) {
	c := &transport{t: t}
	batched(t, c, func(b *batcher, span *span) {
		for range 600 {
			b.add(span, time.Now())
		}
		synctest.Wait()
		c.expect(512)
		<-time.After(4 * time.Second)
		synctest.Wait()
		c.expect(512)
		<-time.After(time.Second)
		synctest.Wait()
		c.expect(512, 88)
		b.add(span, time.Now())
		b.add(span, time.Now())
	})
	c.expect(512, 88, 2)
}

// A collector that does not answer costs spans, and no more memory than the queue.
func TestQueueIsFull(t *testing.T) {
	c := &transport{t: t}
	c.stuck.Store(true)
	log := batched(t, c, func(b *batcher, span *span) {
		fill := func(lost int) {
			for range 512 {
				b.add(span, time.Now())
			}
			synctest.Wait() // they are being sent
			for range 2048 + lost {
				b.add(span, time.Now())
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.waiting != 2048 || b.lost != lost {
				t.Errorf("%d spans wait, %d are lost", b.waiting, b.lost)
			}
		}
		fill(100)
		c.stuck.Store(false)
		<-time.After(time.Minute)
		synctest.Wait()
		c.stuck.Store(true)
		fill(10)
		c.stuck.Store(false)
	})
	c.expect(512, 512, 512, 512, 512, 512, 512, 512)
	if strings.Count(log, "they end faster") != 2 || !strings.Contains(log, "lost=100") || !strings.Contains(log, "queue=2048") {
		t.Errorf("got the log %s", log)
	}
}

// Shutdown ends in its time if the collector does not answer.
func TestShutdownOfStuckCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{URL: "http://collector" + tracesPath, Log: slog.New(slog.DiscardHandler)})
		c := &transport{t: t}
		c.stuck.Store(true)
		e.client = &http.Client{Transport: c}
		b := newBatcher(e, batchLimitsFrom(noEnvironment, e.config.Log), resource.Empty())
		b.add(&span{tracer: &tracer{}}, time.Now())
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		b.shutdown(ctx)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}

func TestBatchLimits(t *testing.T) {
	var log bytes.Buffer
	variables := map[string]string{envDelay: "100", envExportTimeout: "-1", envQueue: "300", envBatch: "many"}
	got := batchLimitsFrom(func(name string) string { return variables[name] }, slog.New(slog.NewTextHandler(&log, nil)))
	if want := (batchLimits{100 * time.Millisecond, 30 * time.Second, 300, 300}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if s := log.String(); strings.Count(s, "\n") != 2 || !strings.Contains(s, envExportTimeout) || !strings.Contains(s, envBatch) {
		t.Errorf("got the log %s", s)
	}
}
