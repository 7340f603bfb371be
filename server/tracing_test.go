package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// callerSpan is what a caller sends of its span.
const callerSpan = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// spans are the ended spans of a process.
type spans struct {
	t *testing.T
	*tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
	ended    chan struct{} // gets a value after a span has ended
}

func newSpans(t *testing.T) spans {
	s := spans{t: t, InMemoryExporter: tracetest.NewInMemoryExporter(), ended: make(chan struct{}, 1)}
	s.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s))
	return s
}

// ExportSpans implements [sdktrace.SpanExporter].
func (s spans) ExportSpans(ctx context.Context, ended []sdktrace.ReadOnlySpan) error {
	err := s.InMemoryExporter.ExportSpans(ctx, ended)
	select {
	case s.ended <- struct{}{}:
	default:
	}
	return err
}

// wait returns the first span with a name, when it has ended.
func (s spans) wait(name string) tracetest.SpanStub {
	s.t.Helper()
	end := time.After(time.Minute)
	for {
		all := s.GetSpans()
		if i := slices.IndexFunc(all, func(x tracetest.SpanStub) bool { return x.Name == name }); i >= 0 {
			return all[i]
		}
		select {
		case <-s.ended:
		case <-end:
			s.t.Fatalf("no span %s in\n%s", name, strings.Join(s.names(), "\n"))
		}
	}
}

func (s spans) names() []string {
	var out []string
	for _, span := range s.GetSpans() {
		out = append(out, span.Name+" "+span.SpanKind.String())
	}
	return out
}

// attribute returns the value of an attribute of a span as text.
func attribute(span *tracetest.SpanStub, key string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return "none"
}

// checkParents fails if a span of the trace, other than one of the caller, has a parent that is not
// in the trace.
func (s spans) checkParents(of *tracetest.SpanStub, caller string) {
	s.t.Helper()
	known := map[string]bool{caller: true, "0000000000000000": true}
	for _, span := range s.GetSpans() {
		known[span.SpanContext.SpanID().String()] = true
	}
	for _, span := range s.GetSpans() {
		if span.SpanContext.TraceID() == of.SpanContext.TraceID() && !known[span.Parent.SpanID().String()] {
			s.t.Errorf("%s has an unknown parent", span.Name)
		}
	}
}

// TestSpansOfStep runs a step on two tasks for a caller that sends its span, and then one for a
// caller that sends none.
func TestSpansOfStep(t *testing.T) {
	all := newSpans(t)
	c, err := server.StartCluster(map[string]int{"ps": 1, "worker": 1}, 1, server.WithTracerProvider(all.provider))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	root := op.NewScope()
	x := op.Placeholder(root.WithDevice("/job:ps"), tensor.Float32)
	y := op.Square(root.WithDevice("/job:worker"), op.Identity(root.WithDevice("/job:ps"), x))
	g, err := root.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	s, err := weft.NewSession(c.Server("worker", 0).Target(), g, weft.WithNetwork(), weft.WithTracerProvider(all.provider))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, caller := all.provider.Tracer("program").Start(t.Context(), "training")
	if _, err := s.Run(ctx, weft.Feeds{x: tensor.Scalar(float32(3))}, []op.Output{y}, nil); err != nil {
		t.Fatal(err)
	}
	caller.End()
	step := all.wait("step")
	if attribute(&step, "weft.step.tasks") != "2" || attribute(&step, "weft.step.id") == "none" || attribute(&step, "weft.session") == "none" {
		t.Errorf("the span of the step has %v", step.Attributes)
	}
	training := all.wait("training")
	if step.SpanContext.TraceID() != training.SpanContext.TraceID() {
		t.Error("the step is in another trace than the program")
	}
	all.checkParents(&training, "")
	for _, want := range []string{
		"tensorflow.MasterService/CreateSession client", "tensorflow.MasterService/CreateSession server",
		"tensorflow.MasterService/RunStep client", "tensorflow.MasterService/RunStep server",
		"tensorflow.WorkerService/RunGraph client", "tensorflow.WorkerService/RunGraph server",
		"tensorflow.WorkerService/RecvTensor client", "tensorflow.WorkerService/RecvTensor server",
	} {
		if !slices.Contains(all.names(), want) {
			t.Errorf("there is no span %s", want)
		}
	}
	run := all.wait("tensorflow.WorkerService/RunGraph")
	if attribute(&run, "rpc.system.name") != "grpc" || attribute(&run, "rpc.response.status_code") != "OK" {
		t.Errorf("the span of a call has %v", run.Attributes)
	}

	all.Reset()
	if _, err := s.Run(t.Context(), weft.Feeds{x: tensor.Scalar(float32(3))}, []op.Output{y}, nil); err != nil {
		t.Fatal(err)
	}
	second := all.wait("tensorflow.MasterService/RunStep")
	if second.Parent.IsValid() || second.SpanKind.String() != "server" {
		t.Errorf("got the span %v, want the server's as the root of a trace", second)
	}
	if names := all.names(); slices.Contains(names, "tensorflow.MasterService/RunStep client") {
		t.Error("the client has made a span for a call without one in its context")
	}
}

// TestSpansOfTasks has no span for calls that keep a cluster alive.
func TestSpansOfTasks(t *testing.T) {
	all := newSpans(t)
	c, err := server.StartCluster(map[string]int{"worker": 2}, 1, server.WithTracerProvider(all.provider))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := weft.ClusterStatus(t.Context(), c.Server("worker", 0).Target()); err != nil {
		t.Fatal(err)
	}
	if names := all.names(); len(names) > 0 {
		t.Errorf("got the spans %q", names)
	}
}

// TestSpansOfGRPC sends the headers with gRPC's own library, for a step that fails.
func TestSpansOfGRPC(t *testing.T) {
	all := newSpans(t)
	s := start1(t, server.WithTracerProvider(all.provider))
	conn := dialGRPC(t, s.Address())
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", callerSpan, "tracestate", "vendor=1")
	err := conn.Invoke(ctx, "/tensorflow.MasterService/RunStep", &pb.RunStepRequest{SessionHandle: "none"}, &pb.RunStepResponse{})
	if err == nil {
		t.Fatal("a step without a session runs")
	}
	span := all.wait("tensorflow.MasterService/RunStep")
	if span.Parent.SpanID().String() != "b7ad6b7169203331" || span.SpanContext.TraceState().Get("vendor") != "1" || !span.Parent.IsRemote() {
		t.Errorf("the span has the parent %v", span.Parent)
	}
	if code := attribute(&span, "rpc.response.status_code"); code != status.Aborted.String() || span.Status.Code != codes.Unset {
		t.Errorf("the span has the code %s and the status %v", code, span.Status)
	}

	all.Reset()
	ctx = metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-zz")
	if err := conn.Invoke(ctx, "/tensorflow.MasterService/ListDevices", &pb.ListDevicesRequest{}, &pb.ListDevicesResponse{}); err != nil {
		t.Error(err)
	}
	if span := all.wait("tensorflow.MasterService/ListDevices"); span.Parent.IsValid() {
		t.Errorf("malformed headers make the parent %v", span.Parent)
	}
}

// TestSpansOfREST runs a step over HTTP.
func TestSpansOfREST(t *testing.T) {
	all := newSpans(t)
	s := start1(t, server.WithTracerProvider(all.provider), server.WithHTTP("127.0.0.1:0"), server.WithREST())
	c := &restClient{t, httpClient(t, nil), s.HTTPURL()}
	id := c.must("POST", "/v1/sessions", `{"graph_def": `+squareGraph+`}`, 200, "", "session")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/v1/sessions/"+id+"/run",
		strings.NewReader(`{"feeds": {"x:0": {"dtype": "float32", "values": 2}}, "fetches": ["y:0"]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("traceparent", callerSpan)
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	request, step := all.wait("POST /v1/sessions/{session}/run"), all.wait("step")
	if request.Parent.SpanID().String() != "b7ad6b7169203331" || step.Parent.SpanID() != request.SpanContext.SpanID() {
		t.Errorf("the request has the parent %v, and the step %v", request.Parent, step.Parent)
	}
	if code := attribute(&request, "http.response.status_code"); code != "200" {
		t.Errorf("the span has the code %s", code)
	}
}

// start1 starts a cluster of one task.
func start1(t *testing.T, opts ...server.Option) *server.Server {
	t.Helper()
	opts = append(opts, server.WithLogger(slog.New(slog.DiscardHandler)))
	s, err := server.New(cluster.ServerDef{Cluster: cluster.Spec{"worker": {0: "127.0.0.1:0"}}, Job: "worker"}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}
