package data

import (
	"time"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("LatencyStatsDataset", "Creates a dataset that records the time that each element of its input takes, in microseconds.",
		[]string{"tag: string"}, withSpec(), newStats(func(_ element, took time.Duration) float64 { return float64(took.Microseconds()) }))
	registerStage("BytesProducedStatsDataset", "Creates a dataset that records the size of each element of its input, in bytes.",
		[]string{"tag: string"}, withSpec(), newStats(func(e element, _ time.Duration) float64 { return float64(e.size()) }))
	registerStage("SetStatsAggregatorDataset", "Creates a dataset whose input records statistics in a resource.",
		[]string{"stats_aggregator: resource", "tag: string", "counter_prefix: string"}, withSpec(), newAggregated)
}

// stringHeader is the size of a string without its text in TensorFlow 1.15.
const stringHeader = 8

// size returns the number of bytes of the tensors.
func (e element) size() (bytes int64) {
	for i := range e {
		if e[i].DType() != tensor.String {
			bytes += e[i].ByteSize()
			continue
		}
		for _, s := range tensor.Values[string](&e[i]) {
			bytes += int64(len(s)) + stringHeader
		}
	}
	return bytes
}

// statsDataset records a value for each element.
type statsDataset struct {
	stage
	tag     string
	measure func(e element, took time.Duration) float64
}

func newStats(measure func(element, time.Duration) float64) stageMaker {
	return func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
		tag, err := scalar[string](n, ctx, "tag")
		return &statsDataset{s, tag, measure}, err
	}
}

func (d *statsDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &statsIterator{src, d}, err
}

type statsIterator struct {
	source
	d *statsDataset
}

func (it *statsIterator) next(r *run) (element, error) {
	if r.stats == nil {
		return it.input.next(r)
	}
	start := time.Now()
	e, err := it.input.next(r)
	if err == nil {
		r.stats.count(it.d.tag, it.d.measure(e, time.Since(start)))
	}
	return e, err
}

// aggregatedDataset contains the elements of its input, whose stages record statistics.
type aggregatedDataset struct {
	stage
	stats recorder
}

func newAggregated(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	to, err := resource.Find[*aggregator](ctx, 1)
	if err != nil {
		return nil, err
	}
	tag, err := scalar[string](n, ctx, "tag")
	if err != nil {
		return nil, err
	}
	if tag != "" {
		tag += statsDelimiter
	}
	_, err = scalar[string](n, ctx, "counter_prefix") // of counters for monitoring, which are none
	return &aggregatedDataset{s, recorder{to, tag}}, err
}

// recording returns the request with the recorder.
func (d *aggregatedDataset) recording(r *run) *run {
	with := *r
	with.stats = &d.stats
	return &with
}

func (d *aggregatedDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(d.recording(r))
	return &aggregatedIterator{src, d}, err
}

type aggregatedIterator struct {
	source
	d *aggregatedDataset
}

func (it *aggregatedIterator) next(r *run) (element, error) {
	return it.input.next(it.d.recording(r))
}
