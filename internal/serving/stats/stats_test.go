package stats

import (
	"strings"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	s := New()
	s.Request("m", "Predict", "REST", "OK", 20*time.Microsecond)
	s.Request("a\"b\\c\nd", "Predict", "GRPC", "NOT_FOUND", time.Second)
	s.Runtime("m", "Predict", 9*time.Microsecond)
	var b strings.Builder
	if _, err := s.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# TYPE :tensorflow:serving:request_count counter\n",
		`:tensorflow:serving:request_count{model_name="m",status="OK"} 1` + "\n",
		`:tensorflow:serving:request_count{model_name="a\"b\\c\nd",status="NOT_FOUND"} 1` + "\n",
		"# TYPE :tensorflow:serving:request_latency histogram\n",
		`:tensorflow:serving:request_latency_bucket{model_name="m",API="Predict",entrypoint="REST",le="18"} 0` + "\n",
		`:tensorflow:serving:request_latency_bucket{model_name="m",API="Predict",entrypoint="REST",le="32.4"} 1` + "\n",
		`:tensorflow:serving:request_latency_sum{model_name="m",API="Predict",entrypoint="REST"} 20` + "\n",
		":tensorflow:core:graph_runs 1\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
}

// TestAllocations counts a request without allocations: making the text of its labels took half of
// the CPU time of a small request.
func TestAllocations(t *testing.T) {
	s := New()
	count := func() {
		s.Request("model", "Predict", "GRPC", "OK", time.Millisecond)
		s.Runtime("model", "Predict", time.Millisecond)
	}
	count()
	if n := testing.AllocsPerRun(100, count); n > 0 {
		t.Errorf("counting a request allocates %v times", n)
	}
}
