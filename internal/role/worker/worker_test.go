package worker_test

import (
	"fmt"
	"strings"
	"testing"

	_ "github.com/weft-ml/weft/internal/kernels/array"
	_ "github.com/weft-ml/weft/internal/kernels/collective"
	_ "github.com/weft-ml/weft/internal/kernels/comm"
	_ "github.com/weft-ml/weft/internal/kernels/control"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	cpu  = "/job:worker/replica:0/task:0/device:CPU:0"
	peer = "/job:worker/replica:0/task:1/device:CPU:0"
)

// fixture is a worker. The test is its master.
type fixture struct {
	t *testing.T
	*worker.Worker
	cluster *testcluster.Cluster
	device  *kernel.Device
}

func newFixture(t *testing.T) *fixture { return newFixtureOf(t, nil) }

// newFixtureOf is newFixture for a task with a configuration.
func newFixtureOf(t *testing.T, config *pb.ConfigProto) *fixture {
	c := testcluster.New(t, testcluster.Options{
		Jobs: map[string]int{"worker": 2}, Kernels: testcluster.Kernels(), SessionDefaults: config,
	})
	n := c.Node("worker", 0)
	return &fixture{t, n.Worker, c, n.Devices[0]}
}

// session creates a session.
func (f *fixture) session(handle string) {
	f.t.Helper()
	if _, err := f.CreateWorkerSession(f.t.Context(), &pb.CreateWorkerSessionRequest{SessionHandle: handle}); err != nil {
		f.t.Fatal(err)
	}
}

// graph parses a graph whose nodes are on the worker's device. "feed NAME" and "fetch NAME NODE"
// are ends of the master's feeds and fetches; "send NAME NODE" and "recv NAME" those of transfers
// to and from the peer.
func (f *fixture) graph(text string) *pb.GraphDef {
	f.t.Helper()
	var lines []string
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		switch {
		case len(w) == 0:
		case w[0] == "feed":
			lines = append(lines, fmt.Sprintf(`%s = _Recv() tensor_type=float %s client_terminated=true`, w[1], f.keyAttrs(cpu, cpu, w[1])))
		case w[0] == "fetch":
			lines = append(lines, fmt.Sprintf(`_%s = _Send(%s) %s client_terminated=true`, w[1], w[2], f.keyAttrs(cpu, cpu, w[1])))
		case w[0] == "send":
			lines = append(lines, fmt.Sprintf(`_%s = _Send(%s) %s`, w[1], w[2], f.keyAttrs(cpu, peer, w[1])))
		case w[0] == "recv":
			lines = append(lines, fmt.Sprintf(`%s = _Recv() tensor_type=float %s`, w[1], f.keyAttrs(peer, cpu, w[1])))
		default:
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	for i, line := range lines {
		if !strings.Contains(line, " device=") {
			lines[i] = line + " device=" + cpu
		}
	}
	def, err := f.cluster.Graph(strings.Join(lines, "\n"))
	if err != nil {
		f.t.Fatal(err)
	}
	return def
}

func (f *fixture) keyAttrs(from, to, name string) string {
	return fmt.Sprintf("tensor_name=%q send_device=%q recv_device=%q send_device_incarnation=%d", name, from, to, int64(f.incarnation(from)))
}

func (f *fixture) incarnation(name string) uint64 {
	if name == peer {
		return f.cluster.Node("worker", 1).Devices[0].Incarnation
	}
	return f.device.Incarnation
}

// key returns the key of a feed or fetch of the master.
func (f *fixture) key(name string) string { return f.transfer(cpu, cpu, name) }

func (f *fixture) transfer(from, to, name string) string {
	return kernel.NewKey(from, f.incarnation(from), to, name).At(kernel.FrameIter{})
}

// register registers a graph in a session and returns its handle.
func (f *fixture) register(session, text string) string {
	f.t.Helper()
	resp, err := f.RegisterGraph(f.t.Context(), &pb.RegisterGraphRequest{
		SessionHandle: session, CreateWorkerSessionCalled: session != "", GraphDef: f.graph(text),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.GetGraphHandle()
}

// request returns a request to run a graph of session "s".
func (f *fixture) request(graph string, step int64, feeds map[string]float32, fetches ...string) *message.RunGraphRequest {
	req := &message.RunGraphRequest{Session: "s", SessionCreated: true, GraphHandle: graph, StepID: step, StoreErrorsInBody: true}
	for name, v := range feeds {
		req.Send = append(req.Send, message.NamedTensor{Name: f.key(name), Tensor: tensor.Scalar(v)})
	}
	for _, name := range fetches {
		req.RecvKeys = append(req.RecvKeys, f.key(name))
	}
	return req
}

// run runs a graph and returns the fetches.
func (f *fixture) run(req *message.RunGraphRequest) ([]float32, error) {
	resp, err := f.RunGraph(f.t.Context(), req)
	if err == nil && resp.Err != nil {
		err = resp.Err
	}
	if err != nil {
		return nil, err
	}
	var out []float32
	for i := range resp.Recv {
		out = append(out, tensor.Value[float32](&resp.Recv[i].Tensor))
	}
	return out, nil
}

func expect(t *testing.T, err error, code status.Code, texts ...string) {
	t.Helper()
	if status.CodeOf(err) != code {
		t.Errorf("got %v: %v, want %v", status.CodeOf(err), err, code)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %q, want %q in it", err, text)
		}
	}
}

const addOne = `
	feed x
	one = Const() value=float[]{1}
	y = TestAdd(x, one)
	fetch y y
`

func TestRunGraph(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	g := f.register("s", addOne)
	for step := range int64(3) {
		got, err := f.run(f.request(g, step, map[string]float32{"x": float32(step)}, "y"))
		if err != nil || len(got) != 1 || got[0] != float32(step+1) {
			t.Errorf("step %d: got %v, %v", step, got, err)
		}
	}
}

func TestStatus(t *testing.T) {
	f := newFixture(t)
	resp, err := f.GetStatus(t.Context(), &pb.GetStatusRequest{})
	if err != nil || len(resp.DeviceAttributes) != 1 {
		t.Fatalf("got %v, %v", resp, err)
	}
	d := resp.DeviceAttributes[0]
	if d.Name != cpu || d.DeviceType != "CPU" || d.Incarnation == 0 || d.MemoryLimit != 1<<28 || d.Locality == nil || d.XlaGlobalId != -1 {
		t.Errorf("device %v", d)
	}
}

func TestTracingIsNotSupported(t *testing.T) {
	_, err := newFixture(t).Tracing(t.Context(), &pb.TracingRequest{})
	expect(t, err, status.Unimplemented, "Tracing")
}
