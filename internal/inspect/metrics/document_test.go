package metrics

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the page instead of comparing it")

const (
	documentPath = "../../../docs/reference/metrics.md"
	documentHead = `# Metrics

What a task of ` + "`weft server`" + ` tells Prometheus at ` + "`/metrics`" + ` of its ` + "`--http-address`" + `. A counter is
a total since the start. ` + "`--metrics-address`" + ` serves the metrics of the process alone: CPU time,
memory, garbage collection and limits. This page is generated from the catalog in
` + "`internal/inspect/metrics`" + `. See [operations](../guides/operations.md).

`
)

// TestPageOfDocumentation compares the page of the documentation with the catalog.
func TestPageOfDocumentation(t *testing.T) {
	var want bytes.Buffer
	want.WriteString(documentHead)
	if err := WriteDocument(&want); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(documentPath, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s differs from the catalog: run the test with -rewrite", documentPath)
	}
}

// TestDescriptions checks that the descriptions follow the conventions of Prometheus.
func TestDescriptions(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range descriptions() {
		if seen[d.name] {
			t.Errorf("%s is described twice", d.name)
		}
		seen[d.name] = true
		if !regexp.MustCompile(`^weft_[a-z_]+$`).MatchString(d.name) || strings.HasSuffix(d.name, "_total") != (d.kind == counter) {
			t.Errorf("the name %s of a %s breaks the conventions", d.name, d.kind)
		}
		if d.help == "" || strings.ContainsAny(d.help, "\n|\\") || len(d.labels) > len(labelKey{}) {
			t.Errorf("%s: bad help or labels", d.name)
		}
	}
}

// TestRegistry writes metrics of each type.
func TestRegistry(t *testing.T) {
	r := NewRegistry()
	o := NewObserver(r)
	o.StepBegan()
	o.StepEnded(0, 3*time.Millisecond)
	o.StepBegan()
	o.StepEnded(14, time.Hour)
	calls := o.Served()
	for range 2 * maxPeers {
		calls.CallRefused("/x.Y/Z", time.Now().String(), 7)
	}
	calls.CallBegan("/tensorflow.MasterService/RunStep", "a\"b")
	page := string(r.append(nil))
	for _, want := range []string{
		"# TYPE weft_steps_total counter\nweft_steps_total{code=\"OK\"} 1\nweft_steps_total{code=\"UNAVAILABLE\"} 1\n",
		"weft_step_seconds_bucket{le=\"0.0025\"} 0\nweft_step_seconds_bucket{le=\"0.005\"} 1\n", "weft_step_seconds_bucket{le=\"+Inf\"} 2\n",
		"weft_step_seconds_sum 3600.003\nweft_step_seconds_count 2\n", "weft_steps_running 0\n",
		`weft_grpc_server_refused_total{method="Y/Z",peer="other",code="PERMISSION_DENIED"} 256`, `weft_grpc_server_in_flight{method="MasterService/RunStep"} 1`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %q in\n%s", want, page)
		}
	}
}

// TestDeviceUse counts parts of steps that overlap.
func TestDeviceUse(t *testing.T) {
	r := NewRegistry()
	o := NewObserver(r)
	const device = "/job:ps/replica:0/task:0/device:CPU:0"
	o.PartBegan(device)
	o.PartBegan(device)
	o.PartEnded(device)
	o.collect()
	if got := r.series(partsRunning, "CPU:0").value(); got != 1 {
		t.Errorf("%v parts run", got)
	}
	o.PartEnded(device)
	o.collect()
	first := r.series(deviceBusy, "CPU:0").value()
	o.collect()
	if got := r.series(deviceBusy, "CPU:0").value(); got != first || first <= 0 || r.series(partsRunning, "CPU:0").value() != 0 {
		t.Errorf("an idle device was busy for %v s, then %v s", first, got)
	}
}

func BenchmarkCall(b *testing.B) {
	calls := NewObserver(NewRegistry()).Served()
	for b.Loop() {
		calls.CallBegan("/tensorflow.MasterService/RunCallable", "127.0.0.1")
		calls.CallEnded("/tensorflow.MasterService/RunCallable", "127.0.0.1", 0, 100, 100, time.Millisecond)
	}
}
