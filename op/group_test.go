package op_test

import (
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
)

// TestGroup groups nodes of one device and of two devices, and nil nodes.
func TestGroup(t *testing.T) {
	s := op.NewScope()
	a, b := op.NoOp(s.WithDevice("/job:ps/task:0")), op.NoOp(s.WithDevice("/job:ps/task:1"))
	one := op.Group(s.Named("one"), a, nil, a)
	if one.Name != "one" || one.Device != a.Device || len(one.ControlInputs()) != 1 {
		t.Errorf("group on one device: %s on %q after %v", one.Name, one.Device, one.ControlInputs())
	}
	two := op.Group(s.WithDevice("/job:worker").Named("two"), a, b)
	if two.Name != "two" || len(two.ControlInputs()) != 2 {
		t.Fatalf("group on two devices: %s after %v", two.Name, two.ControlInputs())
	}
	for i, want := range []*graph.Node{a, b} {
		gather := two.ControlInputs()[i]
		if gather.Device != want.Device || len(gather.ControlInputs()) != 1 || gather.ControlInputs()[0] != want {
			t.Errorf("intermediate node on %q after %v", gather.Device, gather.ControlInputs())
		}
	}
	if none := op.Group(s); none == nil || len(none.ControlInputs()) != 0 {
		t.Errorf("group of no nodes: %v", none)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}
