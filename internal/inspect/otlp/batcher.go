package otlp

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
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

// A batcher gathers encoded spans for an exporter. It wakes its goroutine once for a full batch: a
// goroutine that wakes for each span takes a processor from those that poll for messages.
type batcher struct {
	exporter *Exporter
	limits   batchLimits
	of       *resource.Resource
	full     chan struct{}   // has an entry when a batch is full
	stop     chan struct{}   // closed by shutdown
	stopped  chan struct{}   // closed at the end of run
	ctx      context.Context //nolint:containedctx // of the exporter's calls
	cancel   context.CancelFunc
	once     sync.Once

	reported time.Time // when a full queue was last reported; of run

	mu      sync.Mutex
	batches []*batch // that wait, the oldest first; guarded by mu
	waiting int      // spans in batches; guarded by mu
	lost    int      // since a full queue was last reported; guarded by mu
}

// batch is spans that are sent together. They have one scope.
type batch struct {
	scope *scope
	count int
	spans []byte // see appendSpan
}

// estimatedSpan is the usual size of an encoded span in bytes.
const estimatedSpan = 320

// newBatcher returns a batcher for the spans of a process, whose goroutine shutdown ends.
func newBatcher(e *Exporter, l batchLimits, of *resource.Resource) *batcher {
	b := &batcher{
		exporter: e, limits: l, of: of, full: make(chan struct{}, 1),
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	go b.run()
	return b
}

// add adds a span that has ended, and whose lock is held. It never blocks.
func (b *batcher) add(s *span, end time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting >= b.limits.queue {
		b.lost++
		return
	}
	to := b.openLocked(&s.tracer.scope)
	to.spans = appendSpan(to.spans, s, end)
	to.count++
	b.waiting++
	if to.count == b.limits.batch {
		select {
		case b.full <- struct{}{}:
		default:
		}
	}
}

// openLocked returns the batch for the next span of a scope.
func (b *batcher) openLocked(of *scope) *batch {
	if n := len(b.batches); n > 0 {
		if last := b.batches[n-1]; last.scope == of && last.count < b.limits.batch {
			return last
		}
	}
	next := &batch{scope: of, spans: make([]byte, 0, min(b.limits.batch, sdktrace.DefaultMaxExportBatchSize)*estimatedSpan)}
	b.batches = append(b.batches, next)
	return next
}

// run sends batches until shutdown, and then the spans that are left.
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
		b.reportLost()
		next := b.take(n)
		if next == nil {
			return
		}
		ctx, cancel := context.WithTimeout(b.ctx, b.limits.timeout)
		request := appendRequest(make([]byte, 0, len(next.spans)+requestHead), b.of, next.scope, next.spans)
		b.exporter.Export(ctx, request, next.count)
		cancel()
	}
}

// requestHead is the usual size of the rest of a request in bytes.
const requestHead = 2048

// reportLost logs how many spans were lost because the queue was full, once a minute.
func (b *batcher) reportLost() {
	if time.Since(b.reported) < overflowPause {
		return
	}
	b.mu.Lock()
	lost := b.lost
	b.lost = 0
	b.mu.Unlock()
	if lost == 0 {
		return
	}
	b.exporter.config.Log.Warn("spans are lost: they end faster than the collector takes them", "lost", lost,
		"url", b.exporter.config.URL, "queue", b.limits.queue, "set_by", envQueue)
	b.reported = time.Now()
}

// take returns the next batch, nil if fewer than n spans wait.
func (b *batcher) take(n int) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting < n {
		return nil
	}
	next := b.batches[0]
	b.batches = slices.Delete(b.batches, 0, 1)
	b.waiting -= next.count
	return next
}

// shutdown sends all spans that wait, until ctx ends, and ends the batcher. Spans that end later
// are lost.
func (b *batcher) shutdown(ctx context.Context) {
	b.once.Do(func() { close(b.stop) })
	select {
	case <-b.stopped:
	case <-ctx.Done():
		b.cancel()
		<-b.stopped
	}
	b.cancel()
	b.exporter.client.CloseIdleConnections()
}
