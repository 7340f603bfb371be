package dataservice

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/proto/datapb"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/rpc"
	_ "github.com/weft-ml/weft/local" // runs the datasets
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// rangeGraph is the graph of the dataset of the numbers from start to stop.
func rangeGraph(start, stop, step int64) *pb.GraphDef {
	g := &pb.GraphDef{Versions: &pb.VersionDef{Producer: 2000}}
	b := &builder{g}
	spec := attrs{"output_types": typesOf(pb.DataType_DT_INT64), "output_shapes": shapesOf(&pb.TensorShapeProto{})}
	numbers := b.node("numbers", "RangeDataset", spec, b.number("start", start), b.number("stop", stop), b.number("step", step))
	b.node("dataset", "_Retval", attrs{"T": typeOf(tensor.Variant), "index": {Value: &pb.AttrValue_I{}}}, numbers)
	return g
}

// cluster is a dispatcher with workers, and a client of both.
type cluster struct {
	t          *testing.T
	dir        string
	now        time.Time
	dispatcher *Dispatcher
	address    string
	stop       func()
}

func newCluster(t *testing.T, dir string, workers ...string) *cluster {
	c := &cluster{t: t, dir: dir, now: time.Unix(1000, 0)}
	c.start("127.0.0.1:0", workers)
	t.Cleanup(func() { c.stop() })
	return c
}

// start starts the dispatcher.
func (c *cluster) start(address string, workers []string) {
	c.t.Helper()
	d, err := NewDispatcher(DispatcherConfig{
		Dir: c.dir, Workers: workers, WorkerTimeout: time.Minute, ClientTimeout: time.Minute, JobTimeout: time.Minute,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return c.now },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.dispatcher, c.address = d, l.Addr().String()
	end := serve(c.t, l, d)
	c.stop = func() {
		end()
		d.Close()
	}
}

// serve serves a dispatcher or worker until the returned function is called.
func serve(t *testing.T, l net.Listener, s service) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := Serve(ctx, l, s, grpch2.DefaultLimits(), slog.New(slog.DiscardHandler)); err != nil {
			t.Error(err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// worker starts a worker and returns it with its connection.
func (c *cluster) worker() (*Worker, *rpc.Conn) {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	w, err := NewWorker(WorkerConfig{
		Dispatcher: c.address, Address: l.Addr().String(), Heartbeat: time.Hour, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	stop := serve(c.t, l, w)
	conn, err := rpc.Dial(l.Addr().String())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		conn.Close()
		stop()
		w.Close()
	})
	if err := w.heartbeat(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return w, conn
}

// job registers a dataset and makes the caller a client of a job.
func (c *cluster) job(g *pb.GraphDef, policy datapb.ProcessingModeDef_ShardingPolicy, consumers int64) (int64, error) {
	d := c.dispatcher
	registered, err := d.GetOrRegisterDataset(c.t.Context(), &datapb.GetOrRegisterDatasetRequest{Dataset: &datapb.DatasetDef{Graph: g}})
	if err != nil {
		return 0, err
	}
	req := &datapb.GetOrCreateJobRequest{
		DatasetId: registered.GetDatasetId(), ProcessingModeDef: &datapb.ProcessingModeDef{ShardingPolicy: policy},
	}
	if consumers > 0 {
		req.OptionalNumConsumers = &datapb.GetOrCreateJobRequest_NumConsumers{NumConsumers: consumers}
	}
	j, err := d.GetOrCreateJob(c.t.Context(), req)
	if err != nil {
		return 0, err
	}
	it, err := d.GetOrCreateIteration(c.t.Context(), &datapb.GetOrCreateIterationRequest{JobId: j.GetJobId()})
	return it.GetIterationClientId(), err
}

func (c *cluster) tasks(client int64) *datapb.ClientHeartbeatResponse {
	c.t.Helper()
	resp, err := c.dispatcher.ClientHeartbeat(c.t.Context(), &datapb.ClientHeartbeatRequest{IterationClientId: client})
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// read returns the elements of a task, at most n.
func read(t *testing.T, conn *rpc.Conn, task int64, n int) []int64 {
	t.Helper()
	var out []int64
	for range n {
		resp, err := rpc.Call[datapb.GetElementResponse](t.Context(), conn, workerService+"GetElement", &datapb.GetElementRequest{TaskId: task})
		if err != nil {
			t.Fatal(err)
		}
		if resp.GetEndOfSequence() {
			break
		}
		out = append(out, int64Of(t, resp))
	}
	return out
}

func int64Of(t *testing.T, resp *datapb.GetElementResponse) int64 {
	t.Helper()
	p := resp.GetUncompressed().GetComponents()
	if len(p) != 1 {
		t.Fatalf("got %v", resp)
	}
	if v := p[0].GetInt64Val(); len(v) == 1 {
		return v[0]
	}
	var v int64
	for i, b := range p[0].GetTensorContent() {
		v |= int64(b) << (8 * i)
	}
	return v
}

func TestParallelEpochs(t *testing.T) {
	c := newCluster(t, "")
	w, conn := c.worker()
	client, err := c.job(rangeGraph(0, 5, 1), datapb.ProcessingModeDef_OFF, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.heartbeat(t.Context()); err != nil { // the task may have been pushed already
		t.Fatal(err)
	}
	task := c.tasks(client).GetTaskInfo()[0].GetTaskId()
	if got := read(t, conn, task, 9); !slices.Equal(got, []int64{0, 1, 2, 3, 4}) {
		t.Errorf("got %v", got)
	}
	if err := w.report(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.running.Wait() // for a report that was under way
	if !c.tasks(client).GetIterationFinished() {
		t.Error("the iteration has not finished")
	}
	if got := read(t, conn, task, 1); len(got) != 0 {
		t.Errorf("a task that has ended produces %v", got)
	}
}

// A dispatcher that restarts hands out no split twice. It loses at most the one being sent:
// a worker asks for the next one ahead.
func TestDistributedEpochAcrossRestart(t *testing.T) {
	c := newCluster(t, t.TempDir())
	w, conn := c.worker()
	client, err := c.job(rangeGraph(10, -10, -2), datapb.ProcessingModeDef_DYNAMIC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.heartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}
	task := c.tasks(client).GetTaskInfo()[0].GetTaskId()
	got := read(t, conn, task, 3)
	c.stop()
	f, err := os.OpenFile(filepath.Join(c.dir, journalName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{9, 0, 0}); err != nil { // an entry that was being written
		t.Fatal(err)
	}
	f.Close()
	c.start(c.address, nil)
	got = append(got, read(t, conn, task, 100)...)
	next, lost := 0, 0
	for _, want := range []int64{10, 8, 6, 4, 2, 0, -2, -4, -6, -8} {
		if next < len(got) && got[next] == want {
			next++
		} else {
			lost++
		}
	}
	if next < len(got) || lost > 1 {
		t.Errorf("got %v", got)
	}
}

// A task whose worker has gone is removed, and its successor gets another one.
func TestWorkerGoes(t *testing.T) {
	c := newCluster(t, "")
	client, err := c.job(rangeGraph(0, 5, 1), datapb.ProcessingModeDef_OFF, 0)
	if err != nil {
		t.Fatal(err)
	}
	heartbeat := func(uid int64) {
		req := &datapb.WorkerHeartbeatRequest{WorkerAddress: "127.0.0.1:1", WorkerUid: uid}
		if _, err := c.dispatcher.WorkerHeartbeat(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	heartbeat(1)
	first := c.tasks(client).GetTaskInfo()
	if len(first) != 1 {
		t.Fatalf("got %v", first)
	}
	c.now = c.now.Add(2 * time.Minute)
	c.tasks(client)
	if err := c.dispatcher.expire(c.now); err != nil {
		t.Fatal(err)
	}
	if got := c.tasks(client); len(got.GetTaskInfo()) != 0 || got.GetIterationFinished() {
		t.Errorf("got %v", got)
	}
	heartbeat(2)
	if got := c.tasks(client).GetTaskInfo(); len(got) != 1 || got[0].GetTaskId() == first[0].GetTaskId() {
		t.Errorf("got %v", got)
	}
	c.now = c.now.Add(3 * time.Minute)
	for range 2 { // the client, and then its iteration
		if err := c.dispatcher.expire(c.now); err != nil {
			t.Fatal(err)
		}
		c.now = c.now.Add(2 * time.Minute)
	}
	if n := len(c.dispatcher.state.iterations) + len(c.dispatcher.state.tasks) + len(c.dispatcher.state.clients); n != 0 {
		t.Errorf("%d things are left of a client that has gone", n)
	}
}

func TestRefusals(t *testing.T) {
	c := newCluster(t, "")
	unknown := &pb.GraphDef{}
	b := &builder{unknown}
	b.node("dataset", "_Retval", nil, b.node("random", "RandomDataset", nil))
	for name, test := range map[string]struct {
		graph  *pb.GraphDef
		policy datapb.ProcessingModeDef_ShardingPolicy
		code   status.Code
	}{
		"a source without splits":    {unknown, datapb.ProcessingModeDef_DYNAMIC, status.Unimplemented},
		"a dataset without a result": {&pb.GraphDef{}, datapb.ProcessingModeDef_DYNAMIC, status.InvalidArgument},
		"a range without a step":     {rangeGraph(0, 5, 0), datapb.ProcessingModeDef_DYNAMIC, status.InvalidArgument},
		"files without workers":      {rangeGraph(0, 5, 1), datapb.ProcessingModeDef_FILE, status.InvalidArgument},
	} {
		if _, err := c.job(test.graph, test.policy, 0); status.CodeOf(err) != test.code {
			t.Errorf("%s: got %v, want %v", name, err, test.code)
		}
	}
	d, ctx := c.dispatcher, t.Context()
	for name, call := range map[string]func() error{
		"an unknown dataset":   func() error { _, err := d.GetDatasetDef(ctx, &datapb.GetDatasetDefRequest{}); return err },
		"an unknown job":       func() error { _, err := d.GetOrCreateIteration(ctx, &datapb.GetOrCreateIterationRequest{}); return err },
		"an unknown client":    func() error { _, err := d.ClientHeartbeat(ctx, &datapb.ClientHeartbeatRequest{}); return err },
		"an unknown iteration": func() error { _, err := d.GetSplit(ctx, &datapb.GetSplitRequest{}); return err },
		"a dataset that was not registered": func() error {
			_, err := d.GetOrCreateJob(ctx, &datapb.GetOrCreateJobRequest{DatasetId: "none"})
			return err
		},
		"an unknown task": func() error {
			req := &datapb.WorkerUpdateRequest{Updates: []*datapb.TaskProgress{{TaskId: 99, Completed: true}}}
			_, err := d.WorkerUpdate(ctx, req)
			return err
		},
	} {
		if err := call(); status.CodeOf(err) != status.NotFound {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestWorkerRefuses sends tasks to a worker that no dispatcher makes.
func TestWorkerRefuses(t *testing.T) {
	w, _ := newCluster(t, "").worker()
	untyped := rangeGraph(0, 5, 1)
	untyped.Node[3].Attr = nil
	for i, test := range []struct {
		name      string
		graph     *pb.GraphDef
		providers int64
	}{
		{"more split providers than sources", rangeGraph(0, 5, 1), 3},
		{"split providers without number", rangeGraph(0, 5, 1), 1 << 62},
		{"a range without types", untyped, 1},
	} {
		id := int64(1000 + i)
		_, err := w.ProcessTask(t.Context(), &datapb.ProcessTaskRequest{Task: &datapb.TaskDef{
			Dataset: &datapb.TaskDef_DatasetDef{DatasetDef: &datapb.DatasetDef{Graph: test.graph}}, TaskId: id, NumSplitProviders: test.providers,
			ProcessingModeDef: &datapb.ProcessingModeDef{ShardingPolicy: datapb.ProcessingModeDef_DYNAMIC},
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.GetElement(t.Context(), &datapb.GetElementRequest{TaskId: id})
		if status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
}
