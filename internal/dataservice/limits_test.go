package dataservice

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/proto/datapb"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A client or worker that makes more and more things reaches a limit, which the error names.
func TestLimits(t *testing.T) {
	c := newCluster(t, "")
	d, ctx := c.dispatcher, t.Context()
	d.limits = limits{datasets: 3, jobs: 4, iterations: 5, tasks: 6, clients: 7, workers: 2, datasetBytes: 1 << 20}
	for what, call := range map[string]func(i int) error{
		"datasets": func(i int) error {
			_, err := d.GetOrRegisterDataset(ctx, datasetNamed(fmt.Sprint("d", i)))
			return err
		},
		"workers": func(i int) error {
			_, err := d.WorkerHeartbeat(ctx, &datapb.WorkerHeartbeatRequest{WorkerAddress: fmt.Sprint("127.0.0.1:", 1+i), WorkerUid: 1})
			return err
		},
	} {
		refused(t, what, call)
	}
	refused(t, "jobs", func(i int) error {
		_, err := d.GetOrCreateJob(ctx, jobNamed("d0", fmt.Sprint("j", i)))
		return err
	})
	job, err := d.GetOrCreateJob(ctx, jobNamed("d0", "j0"))
	if err != nil {
		t.Fatal(err)
	}
	iterate := func(repetition int) error {
		req := &datapb.GetOrCreateIterationRequest{JobId: job.GetJobId(), Repetition: int64(repetition)}
		_, err := d.GetOrCreateIteration(ctx, req)
		return err
	}
	refused(t, "tasks", iterate) // two for each iteration
	refused(t, "clients", func(int) error { return iterate(0) })
	d.limits.tasks, d.limits.clients = 100, 100
	refused(t, "iterations", iterate)
}

func datasetNamed(id string) *datapb.GetOrRegisterDatasetRequest {
	return &datapb.GetOrRegisterDatasetRequest{OptionalDatasetId: &datapb.GetOrRegisterDatasetRequest_DatasetId{DatasetId: id}}
}

func jobNamed(dataset, name string) *datapb.GetOrCreateJobRequest {
	return &datapb.GetOrCreateJobRequest{DatasetId: dataset, OptionalJobName: &datapb.GetOrCreateJobRequest_JobName{JobName: name}}
}

// refused calls until there is an error, which must be that of a limit.
func refused(t *testing.T, what string, call func(i int) error) {
	t.Helper()
	for i := range 10 {
		err := call(i)
		if err == nil {
			continue
		}
		if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
		return
	}
	t.Errorf("%s have no limit", what)
}

func TestLongNames(t *testing.T) {
	d, ctx, long := newCluster(t, "").dispatcher, t.Context(), strings.Repeat("x", maxName+1)
	for name, call := range map[string]func() error{
		"dataset": func() error {
			_, err := d.GetOrRegisterDataset(ctx, datasetNamed(long))
			return err
		},
		"job": func() error {
			_, err := d.GetOrCreateJob(ctx, jobNamed("", long))
			return err
		},
		"tags": func() error {
			_, err := d.WorkerHeartbeat(ctx, &datapb.WorkerHeartbeatRequest{WorkerAddress: "127.0.0.1:1", WorkerTags: []string{long}})
			return err
		},
	} {
		if err := call(); status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), name) || len(err.Error()) > 500 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Datasets without a name make room for others once no job uses them, also after a restart.
func TestUnusedDatasets(t *testing.T) {
	c := newCluster(t, t.TempDir())
	limits := limits{datasets: 3, jobs: 10, iterations: 10, tasks: 10, clients: 10, workers: 10, datasetBytes: 1 << 20}
	c.dispatcher.limits = limits
	client, err := c.job(rangeGraph(0, 5, 1), datapb.ProcessingModeDef_OFF, 0) // dataset 1000
	if err != nil {
		t.Fatal(err)
	}
	register := func(id string) error {
		_, err := c.dispatcher.GetOrRegisterDataset(t.Context(), datasetNamed(id))
		return err
	}
	known := func() (out string) {
		for _, id := range []string{"1000", "1001", "1002", "named"} {
			if c.dispatcher.state.datasets[id] != nil {
				out += id + " "
			}
		}
		return out
	}
	for _, id := range []string{"", "named", ""} { // the third one takes the place of 1001
		if err := register(id); err != nil {
			t.Fatal(err)
		}
	}
	if got := known(); got != "1000 1002 named " {
		t.Errorf("got %s", got)
	}
	c.stop()
	c.start("127.0.0.1:0", nil)
	c.dispatcher.limits = limits
	if got := known(); got != "1000 1002 named " {
		t.Errorf("after a restart: got %s", got)
	}
	if _, err := c.dispatcher.ReleaseIterationClient(t.Context(), &datapb.ReleaseIterationClientRequest{IterationClientId: client}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the iteration, and then its job
		c.now = c.now.Add(2 * time.Minute)
		if err := c.dispatcher.expire(c.now); err != nil {
			t.Fatal(err)
		}
	}
	s := c.dispatcher.state
	if n := len(s.jobs) + len(s.iterations) + len(s.repeated) + len(s.byName) + len(s.byWorker); n != 0 {
		t.Errorf("%d things are left of a job that has ended", n)
	}
	for range 2 {
		if err := register(""); err != nil {
			t.Fatal(err)
		}
	}
	if got := known(); got != "named " {
		t.Errorf("got %s", got)
	}
	c.dispatcher.limits.datasetBytes = s.datasetBytes
	for i := range 100 {
		if err = register(strings.Repeat("n", i+1)); err != nil {
			break
		}
	}
	if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "--memory-limit") {
		t.Errorf("got %v", err)
	}
}

// The replies to the heartbeats of a worker have all of its tasks, in pieces.
func TestManyTasks(t *testing.T) {
	c := newCluster(t, "")
	d, ctx := c.dispatcher, t.Context()
	heartbeat := func(has []int64) *datapb.WorkerHeartbeatResponse {
		resp, err := d.WorkerHeartbeat(ctx, &datapb.WorkerHeartbeatRequest{WorkerAddress: "127.0.0.1:1", WorkerUid: 1, CurrentTasks: has})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	const n = 2*maxReplyTasks + 1
	if _, err := d.GetOrRegisterDataset(ctx, datasetNamed("d")); err != nil {
		t.Fatal(err)
	}
	job, err := d.GetOrCreateJob(ctx, &datapb.GetOrCreateJobRequest{DatasetId: "d"})
	for i := int64(0); i < n && err == nil; i++ {
		_, err = d.GetOrCreateIteration(ctx, &datapb.GetOrCreateIterationRequest{JobId: job.GetJobId(), Repetition: i})
	}
	if err != nil {
		t.Fatal(err)
	}
	has, replies := []int64{-1}, 0
	for ; len(has) <= n; replies++ {
		resp := heartbeat(has)
		if got := resp.GetTasksToDelete(); len(got) != 1 || got[0] != -1 || len(resp.GetNewTasks()) == 0 {
			t.Fatalf("got %d tasks, and %v to delete", len(resp.GetNewTasks()), got)
		}
		for _, def := range resp.GetNewTasks() {
			has = append(has, def.GetTaskId())
		}
	}
	if replies != 3 {
		t.Errorf("got %d replies", replies)
	}
}

// A graph with many sources, or with a long chain of datasets, is examined in linear time.
func TestLargeGraphs(t *testing.T) {
	many := rangeGraph(0, 5, 1)
	b := &builder{many}
	for i := range maxSources + 1 {
		zip := many.GetNode()[4]
		zip.Input = append(zip.GetInput(), b.node(fmt.Sprint("r", i), "RangeDataset", nil, "start", "stop", "step"))
	}
	if _, err := splitSources(many); status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "1024 sources") {
		t.Errorf("got %v", err)
	}
	chain := rangeGraph(0, 5, 1)
	b = &builder{chain}
	last := "numbers"
	for i := range 300_000 {
		last = b.node("m"+strconv.Itoa(i), "MapDataset", nil, last)
	}
	chain.Node[4].Input[0] = last
	if got, err := splitSources(chain); err != nil || len(got) != 1 || got[0].Count != 5 {
		t.Errorf("got %v, %v", got, err)
	}
}

// Sources are numbered depth first, in the order of the inputs.
func TestOrderOfSources(t *testing.T) {
	g := &pb.GraphDef{}
	b := &builder{g}
	for _, name := range []string{"a", "b", "c", "d"} {
		b.node(name, "RangeDataset", nil)
	}
	b.node("left", "ZipDataset", nil, "c", "a")
	b.node("top", "ZipDataset", nil, "left", "d", "a", "left", "b")
	b.node("out", "_Retval", nil, "top")
	nodes, err := sourcesOf(g, nodesOf(g))
	got := ""
	for _, n := range nodes {
		got += n.GetName()
	}
	if err != nil || got != "cadb" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestRunningTasks(t *testing.T) {
	w, _ := newCluster(t, "").worker()
	var err error
	for i := int64(0); i <= maxRunning && err == nil; i++ {
		_, err = w.ProcessTask(t.Context(), &datapb.ProcessTaskRequest{Task: &datapb.TaskDef{TaskId: i}})
	}
	if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "task 10000 was not started") {
		t.Errorf("got %v", err)
	}
}

// consumers returns a task with coordinated reads of an infinite dataset, and a function that asks
// for an element.
func consumers(t *testing.T, n int64) (*runningTask, func(ctx context.Context, round, consumer int64) (int64, error)) {
	t.Helper()
	w, _ := newCluster(t, "").worker()
	g := rangeGraph(0, 1000, 1)
	b := &builder{g}
	spec := g.GetNode()[3].GetAttr()
	g.Node[4].Input[0] = b.node("repeat", "RepeatDataset", spec, "numbers", b.number("forever", -1))
	g.Node[4], g.Node[6] = g.Node[6], g.Node[4]
	task := newTask(w, &datapb.TaskDef{
		TaskId: 7, Dataset: &datapb.TaskDef_DatasetDef{DatasetDef: &datapb.DatasetDef{Graph: g}},
		OptionalNumConsumers: &datapb.TaskDef_NumConsumers{NumConsumers: n},
	})
	t.Cleanup(task.close)
	return task, func(ctx context.Context, round, consumer int64) (int64, error) {
		req := &datapb.GetElementRequest{
			TaskId: 7, OptionalRoundIndex: &datapb.GetElementRequest_RoundIndex{RoundIndex: round},
			OptionalConsumerIndex: &datapb.GetElementRequest_ConsumerIndex{ConsumerIndex: consumer},
		}
		resp, err := task.element(ctx, req)
		if err != nil {
			return 0, err
		}
		return int64Of(t, resp), nil
	}
}

func TestRounds(t *testing.T) {
	task, get := consumers(t, 2)
	// consumer 0 waits for an early round, which then is skipped
	skipped := make(chan error, 1)
	go func() {
		_, err := get(t.Context(), 3, 0)
		skipped <- err
	}()
	waitFor(t, task, func() bool { return len(task.rounds) == 1 })
	for round := int64(4); round < 7; round++ {
		var all sync.WaitGroup
		var got [2]int64
		for consumer := range got {
			all.Go(func() {
				var err error
				if got[consumer], err = get(t.Context(), round, int64(consumer)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if want := 2 * (round - 4); got != [2]int64{want, want + 1} {
			t.Errorf("round %d: got %v", round, got)
		}
		if again, err := get(t.Context(), round, 1); err != nil || again != got[1] {
			t.Errorf("round %d: a repeated request got %d, %v", round, again, err)
		}
	}
	late := func(err error) {
		t.Helper()
		if status.CodeOf(err) != status.FailedPrecondition || !strings.Contains(err.Error(), "current round has already reached") {
			t.Errorf("got %v", err)
		}
	}
	late(<-skipped)
	_, err := get(t.Context(), 5, 0)
	late(err)
	if n := len(task.rounds); n != 1 {
		t.Errorf("%d rounds are kept", n)
	}
	for _, bad := range [][2]int64{{-1, 0}, {8, -1}, {8, 2}} {
		if _, err := get(t.Context(), bad[0], bad[1]); status.CodeOf(err) != status.FailedPrecondition {
			t.Errorf("round %d, consumer %d: got %v", bad[0], bad[1], err)
		}
	}
}

// A consumer that asks for many rounds at a time, or goes, leaves nothing.
func TestRoundsWithoutConsumers(t *testing.T) {
	task, get := consumers(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for round := range int64(maxRounds) {
		all.Go(func() {
			if _, err := get(ctx, round, 0); status.CodeOf(err) != status.Cancelled {
				t.Errorf("round %d: got %v", round, err)
			}
		})
	}
	waitFor(t, task, func() bool { return len(task.rounds) == maxRounds })
	if _, err := get(ctx, maxRounds, 0); status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "task 7") {
		t.Errorf("got %v", err)
	}
	cancel()
	all.Wait()
	if n := len(task.rounds); n != 0 {
		t.Errorf("%d rounds are kept", n)
	}
}

func waitFor(t *testing.T, task *runningTask, done func() bool) {
	t.Helper()
	for {
		task.mu.Lock()
		ok := done()
		task.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the test has ended")
		case <-time.After(time.Millisecond):
		}
	}
}

// The number of tasks in a request of a worker is bounded before it is compared with others.
func TestManyTasksOfWorker(t *testing.T) {
	d := newCluster(t, "").dispatcher
	d.limits.tasks = 3
	for name, call := range map[string]func(n int) error{
		"heartbeat": func(n int) error {
			_, err := d.WorkerHeartbeat(t.Context(), &datapb.WorkerHeartbeatRequest{WorkerAddress: "127.0.0.1:1", CurrentTasks: make([]int64, n)})
			return err
		},
		"update": func(n int) error {
			_, err := d.WorkerUpdate(t.Context(), &datapb.WorkerUpdateRequest{Updates: make([]*datapb.TaskProgress, n)})
			return err
		},
	} {
		if err := call(4); status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("%s with 4 tasks: %v", name, err)
		}
		if err := call(3); status.CodeOf(err) == status.ResourceExhausted {
			t.Errorf("%s with 3 tasks: %v", name, err)
		}
	}
}

// What is made for an answer, or for a task, asks for its memory.
func TestMemoryOfAnswers(t *testing.T) {
	c := newCluster(t, "")
	w, _ := c.worker()
	d := c.dispatcher
	g := rangeGraph(0, 5, 1)
	for range 100_000 {
		g.Node = append(g.Node, &pb.NodeDef{})
	}
	client, err := c.job(g, datapb.ProcessingModeDef_OFF, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.heartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}
	task := c.tasks(client).GetTaskInfo()[0].GetTaskId()
	large := &datapb.GetOrRegisterDatasetRequest{Metadata: &datapb.DataServiceMetadata{
		OptionalElementSpec: &datapb.DataServiceMetadata_ElementSpec{ElementSpec: make([]byte, 1<<20)},
	}}
	registered, err := d.GetOrRegisterDataset(t.Context(), large)
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	for _, w := range d.state.workers {
		w.Servers = make([]transferServer, 10_000)
	}
	d.mu.Unlock()
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(1)
	for name, call := range map[string]func() error{
		"heartbeat of a client": func() error {
			_, err := d.ClientHeartbeat(t.Context(), &datapb.ClientHeartbeatRequest{IterationClientId: client})
			return err
		},
		"heartbeat of a worker": func() error {
			_, err := d.WorkerHeartbeat(t.Context(), &datapb.WorkerHeartbeatRequest{WorkerAddress: w.Address, CurrentTasks: make([]int64, 100_000)})
			return err
		},
		"metadata": func() error {
			_, err := d.GetDataServiceMetadata(t.Context(), &datapb.GetDataServiceMetadataRequest{DatasetId: registered.GetDatasetId()})
			return err
		},
		"element": func() error {
			membudget.SetLimit(128 << 20)
			_, _, err := w.tasks[task].graph()
			membudget.SetLimit(1)
			return err
		},
	} {
		if err := call(); status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The shape of a constant is enough to split a dataset: many sources may share one that is large
// and has few bytes.
func TestSplitLargeConstant(t *testing.T) {
	g := &pb.GraphDef{}
	b := &builder{g}
	b.node("rows", "Const", attrs{"dtype": typeOf(tensor.Int64), "value": {Value: &pb.AttrValue_Tensor{Tensor: &pb.TensorProto{
		Dtype: pb.DataType_DT_INT64, TensorShape: &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: 1 << 50}}}, Int64Val: []int64{1},
	}}}})
	b.node("dataset", "_Retval", nil, b.node("slices", "TensorSliceDataset", nil, "rows"))
	sources, err := splitSources(g)
	if err != nil || len(sources) != 1 || sources[0].Count != 1<<50 {
		t.Errorf("got %v, %v", sources, err)
	}
	b.node("numbers", "RangeDataset", nil, "rows", "rows", "rows")
	b.node("of numbers", "_Retval", nil, "numbers")
	if _, err := splitSources(g); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("a range with bounds that are no scalars: %v", err)
	}
}
