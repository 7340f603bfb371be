package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/status"
)

// step reports what a step of a callable reports.
func step(o *Observer, served *Calls, peer string) {
	const method, device = "/tensorflow.MasterService/RunCallable", "/job:ps/replica:0/task:0/device:CPU:0"
	served.CallBegan(method, peer)
	o.StepBegan()
	o.PartBegan(device)
	o.NodesExecuted(3)
	o.PartEnded(device)
	o.StepEnded(uint32(status.OK), time.Millisecond)
	served.CallEnded(method, peer, uint32(status.OK), 100, 200, 2*time.Millisecond)
}

func TestObserver(t *testing.T) {
	r := NewRegistry()
	o := NewObserver(r)
	served := o.Served()
	step(o, served, "10.0.0.1")
	if n := testing.AllocsPerRun(100, func() { step(o, served, "10.0.0.1") }); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
	o.StepEnded(99, time.Hour)
	for i := range 2 * maxCallSeries {
		step(o, served, fmt.Sprint("peer ", i))
	}
	o.collect()
	page := string(r.append(nil))
	for _, want := range []string{
		`weft_grpc_server_calls_total{method="MasterService/RunCallable",peer="10.0.0.1",code="OK"} 102`,
		`weft_grpc_server_received_bytes_total{method="MasterService/RunCallable",peer="10.0.0.1"} 10200`,
		fmt.Sprintf(`weft_grpc_server_calls_total{method="MasterService/RunCallable",peer="other",code="OK"} %d`, 2*maxCallSeries-maxPeers+1),
		fmt.Sprintf(`weft_grpc_server_call_seconds_sum{method="MasterService/RunCallable"} %g`, 2e-3*(2*maxCallSeries+102)),
		`weft_grpc_server_in_flight{method="MasterService/RunCallable"} 0`,
		fmt.Sprintf(`weft_steps_total{code="OK"} %d`, 2*maxCallSeries+102),
		`weft_step_seconds_bucket{le="0.0005"} 0`,
		fmt.Sprintf(`weft_step_seconds_bucket{le="0.001"} %d`, 2*maxCallSeries+102),
		fmt.Sprintf(`weft_step_seconds_bucket{le="+Inf"} %d`, 2*maxCallSeries+103),
		`weft_steps_running -1`,
		fmt.Sprintf(`weft_nodes_executed_total %d`, 3*(2*maxCallSeries+102)),
		`weft_device_parts_running{device="CPU:0"} 0`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no line %s in\n%s", want, page)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	o := NewObserver(NewRegistry())
	served := o.Served()
	b.ReportAllocs()
	for b.Loop() {
		step(o, served, "10.0.0.1")
	}
}
