package server

import (
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
)

func TestStartCluster(t *testing.T) {
	c, err := StartCluster(map[string]int{"ps": 1, "worker": 2}, 2)
	if err != nil {
		t.Fatal(err)
	}
	root := op.NewScope()
	sum := op.Add(root.WithDevice("/job:worker/task:1"), op.Const(root.WithDevice("/job:ps/task:0/cpu:1"), 1.0), op.Const(root, 2.0))
	sess, err := weft.NewSession(c.Target("worker", 0), root.Graph())
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	out, err := sess.Run(t.Context(), nil, []op.Output{sum}, nil)
	if err != nil || out[0].Go() != 3.0 {
		t.Errorf("got %v, %v", out, err)
	}
	if n := len(c.Server("worker", 1).Devices()); n != 2 {
		t.Errorf("a task has %d devices", n)
	}
	if c.Server("worker", 2) != nil || c.Server("chief", 0) != nil {
		t.Error("there are servers of tasks that are not")
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := StartCluster(map[string]int{"a b": 1}, 1); err == nil {
		t.Error("a cluster with a bad job name started")
	}
}
