package metrics

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// kind is a type of metric, as Prometheus names it.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
	summary   kind = "summary"
)

// A description is the documentation of a metric. Every metric has one.
type description struct {
	name   string // with its unit, and with _total for counters, as Prometheus recommends
	kind   kind
	help   string
	labels []string
}

// catalog describes the metrics that a task counts itself. Those of the process are in the table.
var catalog = []description{
	{"weft_insecure", gauge, "1 if other machines reach the task without certificates, 0 otherwise.", nil},
	{"weft_task_info", gauge, "Always 1; the labels describe the task.", []string{"task", "version", "commit"}},
	{"weft_uptime_seconds", gauge, "Time since the task was made.", nil},
	{"weft_ready", gauge, "1 if the task takes work, else 0: see /readyz.", nil},
	{"weft_certificate_end_seconds", gauge, "End of the certificate of the task, in seconds since 1970; missing without TLS.", nil},

	{serverCalls, counter, "Calls that the task has answered. The peer is the name in the caller's certificate, or its IP address.", []string{"method", "peer", "code"}},
	{serverTime, histogram, "Time from a whole request to its answer.", []string{"method"}},
	{serverReceived, counter, "Size of the requests, without those of streams.", []string{"method", "peer"}},
	{serverSent, counter, "Size of the responses.", []string{"method", "peer"}},
	{serverInFlight, gauge, "Calls that are being served.", []string{"method"}},
	{serverRefused, counter, "Calls that were refused without being served: unknown methods, and those that the role of the caller may not call.", []string{"method", "peer", "code"}},
	{"weft_grpc_server_connections", gauge, "Open connections to the task.", nil},
	{"weft_limited_total", counter, "Times that clients have reached a limit.", []string{"limit"}},

	{clientCalls, counter, "Calls to other tasks that have ended.", []string{"method", "peer", "code"}},
	{clientTime, histogram, "Time of a call to another task.", []string{"method"}},
	{clientReceived, counter, "Size of the responses of other tasks.", []string{"method", "peer"}},
	{clientSent, counter, "Size of the requests to other tasks.", []string{"method", "peer"}},
	{clientInFlight, gauge, "Calls to other tasks that have not ended.", []string{"method"}},

	{"weft_sessions", gauge, "Open sessions whose master is the task.", nil},
	{"weft_worker_sessions", gauge, "Sessions of all masters in which the task takes part.", nil},
	{"weft_sessions_waiting", gauge, "Tasks and long steps for which sessions of the task wait: the lines with waits of /readyz.", nil},
	{stepsRunning, gauge, "Running steps of sessions whose master is the task.", nil},
	{stepsDone, counter, "Steps that have ended, by the code of their error.", []string{"code"}},
	{stepTime, histogram, "Time of a step.", nil},
	{"weft_graphs", gauge, "Graphs that masters have registered on the task.", nil},
	{"weft_worker_steps", gauge, "Steps in which the task takes part, or for which other tasks wait here.", nil},
	{nodes, counter, "Nodes that the devices of the task have executed. A fused region counts its nodes.", nil},
	{partsRunning, gauge, "Parts of steps that run on a device. They may wait for tensors.", []string{"device"}},
	{deviceBusy, counter, "Time in which at least one part of a step ran on the device.", []string{"device"}},
	{"weft_gpu_memory_bytes", gauge, "Memory of a GPU device: in use by tensors, the most so far, reserved from the driver, and the limit.", []string{"device", "kind"}},
	{"weft_gpu_kernels_total", counter, "Kernels that were queued on a GPU device.", []string{"device"}},
	{"weft_gpu_kernel_seconds_total", counter, "Time that kernels have run on a GPU device, estimated from one of about 32.", []string{"device"}},
	{"weft_gpu_copies_total", counter, "Copies of tensors to a GPU device, from it to the host, and from another GPU device.", []string{"device", "direction"}},
	{"weft_gpu_copied_bytes_total", counter, "Size of these copies.", []string{"device", "direction"}},
	{"weft_gpu_detours_total", counter, "Executions on the CPU of operations on a GPU device that have no kernel there. Their arguments are copied to the host.", []string{"op"}},
	{"weft_computing", gauge, "Goroutines that compute in kernels: about the cores in use.", nil},

	{"weft_queue_elements", gauge, "Elements of a queue; of the first 1,000 by name.", []string{"container", "queue"}},
	{"weft_resources", gauge, "Variables, queues, tables and other state of the devices.", []string{"kind"}},
	{"weft_rendezvous_values", gauge, "Tensors of running steps that were sent and not received.", nil},
	{"weft_rendezvous_consumers", gauge, "Consumers of running steps whose tensor has not come.", nil},
	{"weft_tensor_memory_bytes", gauge, "Memory of tensors: of variables, in rendezvous, lent to tasks of the same machine, and in pools of free buffers.", []string{"kind"}},
	{"weft_transfer_bytes_total", counter, "Size of the tensors that were received from other tasks, over gRPC or from the memory of a task on the same machine, and of those lent to such tasks.", []string{"channel", "direction"}},
	{"weft_memory_limit_bytes", gauge, "Memory that the process may use (--memory-limit); 0 for no limit.", nil},

	{checkpoints, counter, "Operations that have written (SaveV2 and others) or read (RestoreV2 and others) checkpoints.", []string{"operation", "code"}},
	{checkpointTime, histogram, "Time of such an operation.", []string{"operation"}},
	{checkpointBytes, counter, "Size of the tensors that were written or read.", []string{"operation"}},
}

// Names of metrics that are counted while the task works.
const (
	serverCalls     = "weft_grpc_server_calls_total"
	serverTime      = "weft_grpc_server_call_seconds"
	serverReceived  = "weft_grpc_server_received_bytes_total"
	serverSent      = "weft_grpc_server_sent_bytes_total"
	serverInFlight  = "weft_grpc_server_in_flight"
	serverRefused   = "weft_grpc_server_refused_total"
	clientCalls     = "weft_grpc_client_calls_total"
	clientTime      = "weft_grpc_client_call_seconds"
	clientReceived  = "weft_grpc_client_received_bytes_total"
	clientSent      = "weft_grpc_client_sent_bytes_total"
	clientInFlight  = "weft_grpc_client_in_flight"
	stepsRunning    = "weft_steps_running"
	stepsDone       = "weft_steps_total"
	stepTime        = "weft_step_seconds"
	nodes           = "weft_nodes_executed_total"
	partsRunning    = "weft_device_parts_running"
	deviceBusy      = "weft_device_busy_seconds_total"
	checkpoints     = "weft_checkpoint_operations_total"
	checkpointTime  = "weft_checkpoint_seconds"
	checkpointBytes = "weft_checkpoint_bytes_total"
)

// pauses describes the summary of the pauses of the garbage collector.
var pauses = description{"weft_gc_pause_seconds", summary, "Pauses of the garbage collector.", []string{"quantile"}}

// descriptions returns the descriptions of all metrics, sorted by name.
func descriptions() []description {
	out := slices.Concat(catalog, []description{pauses})
	for _, m := range table {
		out = append(out, description{name: m.name, kind: kind(m.kind), help: m.help})
	}
	slices.SortFunc(out, func(a, b description) int { return strings.Compare(a.name, b.name) })
	return out
}

// WriteDocument writes the descriptions of all metrics as a table in Markdown.
func WriteDocument(w io.Writer) error {
	fmt.Fprint(w, "| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range descriptions() {
		labels := ""
		if len(d.labels) > 0 {
			labels = "`" + strings.Join(d.labels, "`, `") + "`"
		}
		if _, err := fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", d.name, d.kind, labels, d.help); err != nil {
			return err
		}
	}
	return nil
}
