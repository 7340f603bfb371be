package executor_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/tensor"
)

type collected struct{ stats []*executor.NodeStats }

func (c *collected) Collect(s *executor.NodeStats) { c.stats = append(c.stats, s) }

func TestStatistics(t *testing.T) {
	b := newBuilder(t)
	_, live := b.sw(b.number(1), b.constant(tensor.Scalar(true)))
	b.ret(0, b.add("late", "AddLater", nil, b.add("sum", "Add2", nil, live, b.number(2)).Out(0), live).Out(0))
	dead, _ := b.sw(b.number(1), b.constant(tensor.Scalar(true)))
	b.add("dead", "Add2", nil, dead, dead)
	e := b.compile()
	if _, err := call(t, e, 1); err != nil {
		t.Fatal(err)
	}
	if e.Fuse(1, 64) == "" {
		t.Error("there are no regions, so the test does not show that their nodes have statistics")
	}
	var c collected
	opts := executor.RunOptions{Rets: make([]tensor.Tensor, 1), Stats: &c}
	if err := e.Run(newStep(t, nil), opts); err != nil {
		t.Fatal(err)
	}
	if want := b.NumNodes() - 1; len(c.stats) != want {
		t.Errorf("%d nodes have statistics, want %d", len(c.stats), want)
	}
	for _, s := range c.stats {
		if s.Start.Before(s.Scheduled) || s.End.Before(s.Start) {
			t.Errorf("%s: scheduled %v, started %v, ended %v", s.Node, s.Scheduled, s.Start, s.End)
		}
		if s.Node == "sum" || s.Node == "late" {
			if len(s.Outputs) != 1 || s.Outputs[0].DType != tensor.Int64 || s.Outputs[0].Bytes != 8 {
				t.Errorf("%s: outputs %+v", s.Node, s.Outputs)
			}
		}
		if s.Node == "dead" {
			t.Error("a dead node has statistics")
		}
	}
}
