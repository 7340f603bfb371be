package tracing

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

const (
	runStep    = "/tensorflow.MasterService/RunStep"
	runGraph   = "/tensorflow.WorkerService/RunGraph"
	recvTensor = "/tensorflow.WorkerService/RecvTensor"

	sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	dropped = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// follows is a provider whose sampler follows the parent.
type follows struct{ *sdktrace.TracerProvider }

func (follows) ParentBased() bool { return true }

// serve serves a call that runs a step which makes two calls, and returns their headers.
func serve(t *Tracer, from grpch2.TraceHeaders) (graph, tensor grpch2.TraceHeaders) {
	ctx, served := t.Served(context.Background(), runStep, "client", from)
	step, stepped := t.StepBegan(ctx, "session", 2)
	graph, called := t.Called(step, runGraph, "/job:ps/task:0")
	tensor, received := t.Called(step, recvTensor, "/job:ps/task:0")
	for _, end := range []func(uint32, string){called, received, served} {
		if end != nil {
			end(0, "")
		}
	}
	stepped(7, nil)
	return graph, tensor
}

// A trace that is not sampled has no spans, and the calls that would begin a trace of their own say
// so.
func TestUnsampledTraces(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	provider := func(root sdktrace.Sampler) *sdktrace.TracerProvider {
		return sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithSampler(root))
	}
	always, never := sdktrace.ParentBased(sdktrace.AlwaysSample()), sdktrace.ParentBased(sdktrace.NeverSample())
	for name, tt := range map[string]struct {
		tracer *Tracer
		from   string
		spans  int
		graph  string // pattern of the header of RunGraph
		tensor string // and of RecvTensor
	}{
		"sampled here":          {New(follows{provider(always)}), "", 4, `^00-\w{32}-\w{16}-01$`, `-01$`},
		"not sampled here":      {New(follows{provider(never)}), "", 0, `^00-\w{32}-\w{16}-00$`, `^$`},
		"sampled before":        {New(follows{provider(never)}), sampled, 4, `^00-0af7651916cd43dd8448eb211c80319c-\w{16}-01$`, `-01$`},
		"not sampled before":    {New(follows{provider(always)}), dropped, 0, `^` + dropped + `$`, `^$`},
		"not a traceparent":     {New(follows{provider(always)}), dropped[1:], 4, `-01$`, `-01$`},
		"unknown sampler":       {New(provider(always)), dropped, 0, `^00-0af7651916cd43dd8448eb211c80319c-\w{16}-00$`, `-00$`},
		"sampler of each span":  {New(provider(sdktrace.AlwaysSample())), dropped, 4, `-01$`, `-01$`},
		"never, of each parent": {New(provider(sdktrace.NeverSample())), sampled, 0, `-00$`, `-00$`},
	} {
		kept.Reset()
		graph, tensor := serve(tt.tracer, grpch2.TraceHeaders{Parent: tt.from, State: "a=b"})
		if got := len(kept.GetSpans()); got != tt.spans {
			t.Errorf("%s: got %d spans", name, got)
		}
		if !regexp.MustCompile(tt.graph).MatchString(graph.Parent) || !regexp.MustCompile(tt.tensor).MatchString(tensor.Parent) {
			t.Errorf("%s: got the headers %q and %q", name, graph.Parent, tensor.Parent)
		}
		if state := graph.State; tt.from == sampled && state != "a=b" {
			t.Errorf("%s: got the state %q", name, state)
		}
	}
}

func TestSaysUnsampled(t *testing.T) {
	for parent, want := range map[string]bool{
		dropped: true, dropped[:54] + "2": true, sampled: false, dropped + "0": false, "": false,
		"01" + dropped[2:]: false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-00": false,
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-00": false,
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-00": false,
		"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-00": false,
	} {
		if got := saysUnsampled(parent); got != want {
			t.Errorf("%q: got %v", parent, got)
		}
	}
}

// Methods that clients choose do not fill the memory.
func TestCallOptionsAreBounded(t *testing.T) {
	var c callOptions
	for i := range 2 * maxCallOptions {
		c.get(callKey{method: "/" + string(rune('a'+i%26)) + string(rune(i))})
	}
	n := 0
	c.kept.Range(func(any, any) bool { n++; return true })
	if n != maxCallOptions {
		t.Errorf("it keeps %d", n)
	}
}

// Texts that clients choose are cut: thousands of spans may wait for their collector.
func TestLongTexts(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	long := strings.Repeat("é", maxText)
	_, end := tracer.FunctionBegan(t.Context(), long)
	end(status.InvalidArgumentf("%s", long))
	_, served := tracer.Served(t.Context(), runStep, "client", grpch2.TraceHeaders{})
	served(uint32(status.Internal), long)
	tracer.HTTP(http.NotFoundHandler(), func(*http.Request) string { return "/" }).ServeHTTP(
		httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+strings.Repeat("x", 2*maxText), nil))
	for _, s := range spans.Ended() {
		texts := []string{s.Status().Description}
		for _, a := range s.Attributes() {
			texts = append(texts, a.Value.String())
		}
		for _, text := range texts {
			if len(text) > maxText+len("…") || !utf8.ValidString(text) {
				t.Errorf("%s: a text of %d bytes: %.20q", s.Name(), len(text), text)
			}
		}
	}
	if n := len(spans.Ended()); n != 3 {
		t.Errorf("%d spans have ended", n)
	}
}

// BenchmarkStep has a call that runs a step which makes two calls.
func BenchmarkStep(b *testing.B) {
	for name, root := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "unsampled": sdktrace.NeverSample()} {
		t := New(follows{sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(root)))})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				serve(t, grpch2.TraceHeaders{})
			}
		})
	}
}
