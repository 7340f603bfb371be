package data

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

// recorded runs a dataset to its end and returns the statistics: "tag count sum min max" for
// histograms, "tag value" for scalars.
func recorded(b *bench, d tensor.Tensor, tag string) string {
	b.Helper()
	handle, err := b.run("stats", "StatsAggregatorHandle", opdef.Attrs{"shared_name": "stats"})
	if err == nil {
		d = b.make("SetStatsAggregatorDataset", d, handle[0], tensor.Scalar(tag), tensor.Scalar("counters"))
		b.take(b.iterator("it", d), -1)
	}
	return b.statistics(handle, err)
}

func (b *bench) statistics(handle []tensor.Tensor, err error) string {
	b.Helper()
	var out []tensor.Tensor
	if err == nil {
		out, err = b.run("summary", "StatsAggregatorSummary", nil, handle[0])
	}
	if err != nil {
		b.Fatal(err)
	}
	values, err := summary.Unmarshal([]byte(tensor.Value[string](&out[0])))
	if err != nil {
		b.Fatal(err)
	}
	var text []string
	for _, v := range values {
		if h, ok := v.Data.(summary.Histogram); ok {
			text = append(text, fmt.Sprintf("%s %v %v %v %v", v.Tag, h.Count, h.Sum, h.Min, h.Max))
		} else {
			text = append(text, fmt.Sprintf("%s %v", v.Tag, v.Data))
		}
	}
	return strings.Join(text, ", ")
}

// TestStatistics has the values of TensorFlow 1.15.
func TestStatistics(t *testing.T) {
	bytes := func(b *bench, d tensor.Tensor) tensor.Tensor {
		return b.make("BytesProducedStatsDataset", d, tensor.Scalar("b"))
	}
	for _, c := range []struct {
		name, tag string
		make      func(b *bench) tensor.Tensor
		want      string
	}{
		{"nothing", "", func(b *bench) tensor.Tensor { return b.count(0, 3) }, ""},
		{"bytes", "", func(b *bench) tensor.Tensor { return bytes(b, b.count(0, 3)) }, "b 3 24 8 8"},
		{"two stages with one tag", "", func(b *bench) tensor.Tensor { return bytes(b, bytes(b, b.count(0, 3))) }, "b 6 48 8 8"},
		{"prefix", "train", func(b *bench) tensor.Tensor { return bytes(b, b.count(0, 3)) }, "train::b 3 24 8 8"},
		{"prefetch", "", func(b *bench) tensor.Tensor { return b.make("PrefetchDataset", b.count(0, 6), num(1)) },
			"d::buffer_utilization 6 6 1 1, d::buffer_capacity 1, d::buffer_size 1"},
		{"filter", "", func(b *bench) tensor.Tensor {
			b.env.Functions = &arithmetic{}
			attrs := b.attrs()
			attrs["predicate"], attrs["Targuments"] = opdef.Func{Name: "third"}, []tensor.DType{}
			out, err := b.run("f", "FilterDataset", attrs, b.count(0, 7))
			if err != nil {
				b.Fatal(err)
			}
			return out[0]
		}, "f::dropped_elements 4, f::filtered_elements 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			if got := recorded(b, c.make(b), c.tag); got != c.want {
				t.Errorf("statistics are %q, want %q", got, c.want)
			}
		})
	}
}

func TestBytesOfStrings(t *testing.T) { // as in TensorFlow 1.15
	e := element{tensor.Vector("", "abc", strings.Repeat("x", 40)), tensor.Vector[float32](1, 2, 3), tensor.Scalar(true)}
	if got := e.size(); got != 67+12+1 {
		t.Errorf("size is %d", got)
	}
}

func TestLatencyOfElements(t *testing.T) {
	b := newBench(t)
	got := recorded(b, b.make("ExperimentalLatencyStatsDataset", b.count(0, 5), tensor.Scalar("took")), "")
	if !strings.HasPrefix(got, "took 5 ") {
		t.Errorf("statistics are %q", got)
	}
}

// TestStatisticsOfAnIterator uses the operation of TensorFlow 1.8.
func TestStatisticsOfAnIterator(t *testing.T) {
	b := newBench(t)
	handle, err := b.run("stats", "ExperimentalStatsAggregatorHandle", nil)
	if err != nil {
		t.Fatal(err)
	}
	it := b.iterator("it", b.make("BytesProducedStatsDataset", b.count(0, 5), tensor.Scalar("b")))
	b.take(it, 1)
	if _, err := b.run("set", "IteratorSetStatsAggregator", nil, it, handle[0]); err != nil {
		t.Fatal(err)
	}
	b.take(it, -1)
	if got := b.statistics(handle, nil); got != "b 4 32 8 8" {
		t.Errorf("statistics are %q", got)
	}
	if _, err := b.run("set", "IteratorSetStatsAggregator", nil, it, it); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("an iterator as aggregator: %v", err)
	}
}
