package server

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestClusterStatus asks for the state of a cluster while a step waits for a queue, and after a
// task has died.
func TestClusterStatus(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 1})
	p := start(t, cluster.ServerDef{Cluster: spec, Job: "ps"}, WithListener(listeners[ps]))
	w := start(t, cluster.ServerDef{Cluster: spec, Job: "worker"}, WithListener(listeners[worker0]))
	root := op.NewScope()
	onPS := root.WithDevice("/job:ps/task:0")
	v := op.VarHandleOp(onPS, tensor.Float32, tensor.MakePartial(2, 3), op.VarHandleOpSharedName("weights"))
	assign := op.AssignVariableOp(onPS, v, op.Const(onPS, [][]float32{{1, 2, 3}, {4, 5, 6}}))
	queue := op.FIFOQueueV2(onPS, []tensor.DType{tensor.Float32}, op.FIFOQueueV2SharedName("samples"))
	next := op.QueueDequeueV2(onPS, queue, []tensor.DType{tensor.Float32})
	sum := op.Add(root.WithDevice("/job:worker/task:0"), next[0], op.Const(root, float32(1)))
	s := session(t, w, root)
	if err := s.Exec(t.Context(), nil, assign); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Fetch(ctx, nil, sum)
		waiting <- err
	}()
	tasks := statusWithStep(t, w.Target())
	if len(tasks) != 2 || !tasks[0].Weft || tasks[0].Name != "/job:ps/replica:0/task:0" || tasks[0].WorkerSessions != 1 {
		t.Fatalf("the tasks are %+v", tasks)
	}
	about := map[string]weft.ResourceStatus{}
	for _, r := range tasks[0].Resources {
		about[r.Kind] = r
	}
	if r := about["variable"]; r.Name != "weights" || r.Shape != "[2,3]" || r.DType != "float" || r.Bytes != 24 {
		t.Errorf("the variable is %+v", r)
	}
	if r, ok := about["queue"]; !ok || r.Elements != 0 {
		t.Errorf("the queue is %+v, %t", r, ok)
	}
	running := tasks[1].Sessions[0].Steps[0]
	if len(running.Waits) == 0 || running.Waits[0].Silent != "" || !strings.HasPrefix(running.Waits[0].Call, "RunGraph (") || running.Waits[0].Address != spec["ps"][0] {
		t.Errorf("the step is %+v", running)
	}
	cancel()
	if err := <-waiting; err == nil {
		t.Error("the step has succeeded")
	}
	stop(t, p)
	after, err := weft.ClusterStatus(t.Context(), w.Target())
	if err != nil {
		t.Fatal(err)
	}
	if after[0].Weft || !strings.Contains(after[0].Error, "connection refused") || after[1].Error != "" {
		t.Errorf("after the end of a task: %+v", after)
	}
}

// statusWithStep asks for the state of a cluster until a step waits for the parameter server, which
// has made its queue. The tasks are asked side by side: the answers are not of one instant.
func statusWithStep(t *testing.T, target string) []weft.TaskStatus {
	t.Helper()
	for {
		tasks, err := weft.ClusterStatus(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		isQueue := func(r weft.ResourceStatus) bool { return r.Kind == "queue" }
		if !slices.ContainsFunc(tasks[0].Resources, isQueue) {
			continue
		}
		if sessions := tasks[1].Sessions; len(sessions) == 1 && len(sessions[0].Steps) == 1 {
			for _, wait := range sessions[0].Steps[0].Waits {
				if wait.Task == "/job:ps/replica:0/task:0" {
					return tasks
				}
			}
		}
	}
}
