package server

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestMetrics requests the metrics of a cluster that has run steps, saved a checkpoint and failed.
func TestMetrics(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 1})
	p := start(t, cluster.ServerDef{Cluster: spec, Job: "ps"}, WithListener(listeners[ps]), WithHTTP("127.0.0.1:0"))
	w := start(t, cluster.ServerDef{Cluster: spec, Job: "worker"}, WithListener(listeners[worker0]), WithHTTP("127.0.0.1:0"))
	root := op.NewScope()
	onPS := root.WithDevice("/job:ps/task:0")
	v := op.VarHandleOp(onPS, tensor.Float32, tensor.MakePartial(2, 3), op.VarHandleOpSharedName("weights"))
	assign := op.AssignVariableOp(onPS, v, op.Const(onPS, [][]float32{{1, 2, 3}, {4, 5, 6}}))
	queue := op.FIFOQueueV2(onPS, []tensor.DType{tensor.Float32}, op.FIFOQueueV2SharedName("samples"))
	put := op.QueueEnqueueV2(onPS, queue, []op.Output{op.Const(onPS, float32(1))})
	sum := op.Add(root.WithDevice("/job:worker/task:0"), op.ReadVariableOp(onPS, v, tensor.Float32), op.Const(root, float32(1)))
	assigned := op.ReadVariableOp(onPS.WithControlDependencies(assign), v, tensor.Float32)
	save := op.SaveV2(onPS, op.Const(onPS, t.TempDir()+"/model"), op.Const(onPS, []string{"w"}), op.Const(onPS, []string{""}), []op.Output{assigned})
	bad := op.SaveV2(onPS, op.Const(onPS, "/dev/null/model"), op.Const(onPS, []string{"w"}), op.Const(onPS, []string{""}), []op.Output{op.ReadVariableOp(onPS, v, tensor.Float32)})
	s := session(t, w, root)
	for range 4 {
		if err := s.Exec(t.Context(), nil, assign, put, save); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Fetch(t.Context(), nil, sum); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Exec(t.Context(), nil, bad); err == nil {
		t.Fatal("a checkpoint was written below /dev/null")
	}
	// the name and the first value of a metric
	check := func(s *Server, want ...string) {
		t.Helper()
		resp, err := http.Get(s.HTTPURL() + "/metrics") //nolint:noctx // a local request
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		page := string(text)
		for _, pattern := range want {
			if !regexp.MustCompile(`(?m)^` + pattern).MatchString(page) {
				t.Errorf("there is no %s in\n%s", pattern, page)
			}
		}
		line := regexp.MustCompile(`^(# (HELP|TYPE) \w+ .+|\w+({(\w+="[^"]*",?)+})? [0-9.e+-]+)$`)
		for l := range strings.Lines(page) {
			if !line.MatchString(strings.TrimSuffix(l, "\n")) {
				t.Errorf("malformed: %q", l)
			}
		}
	}
	check(w,
		`weft_task_info{task="/job:worker/replica:0/task:0",`, `weft_ready 1`, `weft_sessions 1`, `weft_worker_sessions 1`, `weft_steps_total{code="OK"} 8`,
		`weft_steps_total{code="[A-Z_]+"} 1`, `weft_steps_running 0`, `weft_step_seconds_count 9`, `weft_nodes_executed_total [1-9]`, `weft_graphs [1-9]`,
		`weft_grpc_client_calls_total{method="WorkerService/RunGraph",peer="ps/0",code="OK"} 9`, `weft_grpc_client_call_seconds_count{method="WorkerService/RunGraph"} 9`,
		`weft_transfer_bytes_total{channel="grpc",direction="received"} [1-9]`, `weft_device_busy_seconds_total{device="CPU:0"} `, `weft_grpc_client_in_flight{method="WorkerService/RunGraph"} 0`,
		`weft_gc_pause_seconds_count `, `weft_memory_limit_bytes [1-9]`, `weft_limited_total{limit="streams"} 0`,
	)
	check(p,
		`weft_grpc_server_calls_total{method="WorkerService/RunGraph",peer="127[0-9.]+",code="OK"} 9`, `weft_grpc_server_sent_bytes_total{method="WorkerService/RecvTensor",peer="127[0-9.]+"} [1-9]`,
		`weft_grpc_server_received_bytes_total{method="WorkerService/RegisterGraph",peer="127[0-9.]+"} [1-9]`, `weft_grpc_server_connections [1-9]`,
		`weft_queue_elements{container="[a-z]*",queue="samples"} 4`, `weft_resources{kind="variable"} 1`, `weft_tensor_memory_bytes{kind="variables"} 24`,
		`weft_checkpoint_operations_total{operation="SaveV2",code="OK"} 4`, `weft_checkpoint_operations_total{operation="SaveV2",code="[A-Z_]+"} 1`,
		`weft_checkpoint_seconds_count{operation="SaveV2"} 5`, `weft_checkpoint_bytes_total{operation="SaveV2"} [1-9]`, `weft_nodes_executed_total [1-9]`,
	)
}
