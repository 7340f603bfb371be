package main

import (
	"encoding/json"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestReset removes a variable.
func TestReset(t *testing.T) {
	c, err := server.StartCluster(map[string]int{"worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root := op.NewScope()
	v := op.VariableV2(root, tensor.MakePartial(), tensor.Float32)
	assign := op.Assign(root, v, op.Const(root, float32(7)))
	g, err := root.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	target := c.Target("worker", 0)
	before, err := weft.NewSession(target, g)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if _, err := before.Run(t.Context(), nil, nil, []*graph.Node{assign.Node}); err != nil {
		t.Fatal(err)
	}
	var done resetDone
	if err := json.Unmarshal([]byte(execute(t, []string{"reset", target, "-o", "json"})), &done); err != nil {
		t.Fatal(err)
	}
	if done.Target != target || done.Containers == nil || done.DeviceFilters == nil {
		t.Errorf("got %+v", done)
	}
	after, err := weft.NewSession(target, g)
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if _, err := after.Run(t.Context(), nil, []op.Output{v}, nil); status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("got %v, want a variable without a value", err)
	}
	if got, want := execute(t, []string{"reset", target}), "reset "+target+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
