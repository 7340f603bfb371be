package otlp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Names of the variables of batchLimits.
const (
	envDelay         = "OTEL_BSP_SCHEDULE_DELAY"
	envExportTimeout = "OTEL_BSP_EXPORT_TIMEOUT"
	envQueue         = "OTEL_BSP_MAX_QUEUE_SIZE"
	envBatch         = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
)

// batchLimits are the limits of a batcher.
type batchLimits struct {
	delay   time.Duration // longest time between two batches
	timeout time.Duration // of one batch
	queue   int           // most spans that wait
	batch   int           // most spans of one batch
}

// batchLimitsFrom returns the limits that OpenTelemetry's variables set. A value that is not a
// positive number has no effect and is logged. get is os.Getenv.
func batchLimitsFrom(get func(string) string, log *slog.Logger) batchLimits {
	number := func(name string, otherwise int) int {
		text := get(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			log.Warn("a variable is not a positive number", "name", name, "value", text, "used", otherwise)
			return otherwise
		}
		return n
	}
	l := batchLimits{
		delay:   time.Duration(number(envDelay, sdktrace.DefaultScheduleDelay)) * time.Millisecond,
		timeout: time.Duration(number(envExportTimeout, sdktrace.DefaultExportTimeout)) * time.Millisecond,
		queue:   number(envQueue, sdktrace.DefaultMaxQueueSize),
		batch:   number(envBatch, sdktrace.DefaultMaxExportBatchSize),
	}
	l.batch = min(l.batch, l.queue)
	return l
}

// overflowPause is the shortest time between two reports of a full queue.
const overflowPause = time.Minute

// A batcher gathers spans for an exporter. It implements [sdktrace.SpanProcessor].
//
// OpenTelemetry's batcher wakes a goroutine for each span. That doubled the time of a step of 50 µs:
// the goroutine takes a processor from those that poll for the step's messages. This one wakes it
// once for a full batch.
type batcher struct {
	exporter *Exporter
	limits   batchLimits
	full     chan struct{}      // has an entry when a batch is full
	flush    chan chan struct{} // of requests to send all spans; each is closed then
	stop     chan struct{}      // closed by Shutdown
	stopped  chan struct{}      // closed at the end of run
	ctx      context.Context    //nolint:containedctx // of the exporter's calls
	cancel   context.CancelFunc
	once     sync.Once

	// Of run:
	reported   time.Time // when a full queue was last reported
	unreported int       // spans that were lost since

	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan // that wait; guarded by mu
	lost  int                     // since the last batch; guarded by mu
}

var _ sdktrace.SpanProcessor = (*batcher)(nil)

// newBatcher returns a batcher, whose goroutine Shutdown ends.
func newBatcher(e *Exporter, l batchLimits) *batcher {
	b := &batcher{
		exporter: e, limits: l, full: make(chan struct{}, 1), flush: make(chan chan struct{}),
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	go b.run()
	return b
}

// OnStart does nothing.
func (b *batcher) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd adds a span that has ended. It never blocks.
func (b *batcher) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.spans) >= b.limits.queue {
		b.lost++
		return
	}
	b.spans = append(b.spans, s)
	if len(b.spans)%b.limits.batch == 0 {
		select {
		case b.full <- struct{}{}:
		default:
		}
	}
}

// run sends batches until Shutdown, and then the spans that are left.
func (b *batcher) run() {
	defer close(b.stopped)
	timer := time.NewTimer(b.limits.delay)
	defer timer.Stop()
	for {
		select {
		case <-b.full:
			b.send(b.limits.batch)
		case <-timer.C:
			b.send(1)
		case sent := <-b.flush:
			b.send(1)
			close(sent)
		case <-b.stop:
			b.reported = time.Time{} // the last report does not wait
			b.send(1)
			return
		}
		timer.Reset(b.limits.delay)
	}
}

// send sends batches until fewer than n spans wait.
func (b *batcher) send(n int) {
	for {
		spans, lost := b.take(n)
		b.report(lost)
		if len(spans) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(b.ctx, b.limits.timeout)
		err := b.exporter.ExportSpans(ctx, spans)
		cancel()
		if err != nil {
			b.exporter.dropped(len(spans), err)
		}
	}
}

// report logs spans that were lost because the queue was full, once a minute.
func (b *batcher) report(lost int) {
	b.unreported += lost
	if b.unreported == 0 || time.Since(b.reported) < overflowPause {
		return
	}
	b.exporter.config.Log.Warn("spans are lost: they end faster than the collector takes them", "lost", b.unreported,
		"url", b.exporter.config.URL, "queue", b.limits.queue, "set_by", envQueue)
	b.reported, b.unreported = time.Now(), 0
}

// take returns the next batch, which is empty if fewer than n spans wait, and how many spans were
// lost before.
func (b *batcher) take(n int) (spans []sdktrace.ReadOnlySpan, lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lost, b.lost = b.lost, 0
	if len(b.spans) < n {
		return nil, lost
	}
	taken := min(len(b.spans), b.limits.batch)
	spans = slices.Clone(b.spans[:taken])
	b.spans = slices.Delete(b.spans, 0, taken)
	return spans, lost
}

// ForceFlush sends all spans that wait, until ctx ends.
func (b *batcher) ForceFlush(ctx context.Context) error {
	sent := make(chan struct{})
	select {
	case b.flush <- sent:
	case <-b.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown sends all spans that wait, until ctx ends, and ends the batcher. Spans that end later are
// lost.
func (b *batcher) Shutdown(ctx context.Context) error {
	b.once.Do(func() { close(b.stop) })
	var err error
	select {
	case <-b.stopped:
	case <-ctx.Done():
		err = ctx.Err()
		b.cancel()
		<-b.stopped
	}
	b.cancel()
	return errors.Join(err, b.exporter.Shutdown(ctx))
}
