package data

import (
	"context"
	"testing"
	"time"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// TestOptionsOfLargeGraphs merges the options of a long chain, and of stages that have an input
// twice.
func TestOptionsOfLargeGraphs(t *testing.T) {
	with := func(d dataset, options string) dataset {
		return &optionsDataset{passDataset{stage{&spec{}, d}}, options}
	}
	var chain dataset = &zipDataset{}
	for range 100_000 {
		chain = with(chain, "ab")
	}
	start := time.Now()
	if got := options(chain); len(got) != 200_000 {
		t.Errorf("got %d bytes", len(got))
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("a chain took %v", took)
	}
	first := with(&zipDataset{}, "a")
	d := &zipDataset{inputs: []dataset{first, with(first, "b")}}
	for range 60 {
		d = &zipDataset{inputs: []dataset{d, d}}
	}
	if got := options(with(d, "c")); got != "abc" {
		t.Errorf("got %q", got)
	}
	if n := d.cardinality(); n != infinite {
		t.Errorf("got %d elements", n)
	}
	for range 60 {
		d = &zipDataset{inputs: []dataset{&concatenateDataset{parts: [2]dataset{d, d}}}}
	}
	if n := d.cardinality(); n != infinite {
		t.Errorf("got %d elements", n)
	}
	if err := checkRandomAccess(d, map[dataset]bool{}); err != nil {
		t.Error(err)
	}
	countAll(nil, d)
}

// The iterators of stages that have an input twice are exponentially many. Making them ends with
// the step, or when there is no memory.
func TestManyIterators(t *testing.T) {
	d := &zipDataset{}
	for range 60 {
		d = &zipDataset{inputs: []dataset{d, d}}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	step := &kernel.Step{Context: ctx}
	if _, err := open(&run{ctx: &kernel.Context{Step: step}}, d); status.CodeOf(err) != status.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}
