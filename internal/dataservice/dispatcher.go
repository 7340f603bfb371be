package dataservice

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/datapb"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// DispatcherConfig holds the parameters of a dispatcher.
type DispatcherConfig struct {
	// Dir is the folder of the journal; "" for a dispatcher that forgets everything when it ends.
	Dir string
	// Workers are the addresses of all workers, which the static sharding policies need.
	Workers []string
	// WorkerTimeout is the time after which a worker without a heartbeat counts as gone.
	WorkerTimeout time.Duration
	// ClientTimeout is the time after which a client without a heartbeat counts as gone, and
	// JobTimeout the time for which an iteration without clients is kept.
	ClientTimeout, JobTimeout time.Duration
	Log                       *slog.Logger
	// Now returns the time; nil for time.Now.
	Now func() time.Time
}

// Dispatcher knows the datasets, jobs and workers of a service. Its methods may be called
// concurrently.
type Dispatcher struct {
	DispatcherConfig
	limits  limits
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // sweeper, and calls to workers
	pushes  chan struct{}  // has an element for each call that gives a task to a worker

	mu      sync.Mutex
	state   *state               // guarded by mu
	journal *journal             // nil without a folder; guarded by mu
	conns   map[string]*rpc.Conn // to workers, by address; guarded by mu
}

// sweepInterval is the time between checks for workers and clients that have gone.
const sweepInterval = time.Second

// NewDispatcher returns a dispatcher, with the state of its journal. The caller must call Close.
func NewDispatcher(cfg DispatcherConfig) (*Dispatcher, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &Dispatcher{
		DispatcherConfig: cfg, limits: defaultLimits(), pushes: make(chan struct{}, maxPushes),
		state: newState(), conns: map[string]*rpc.Conn{},
	}
	if cfg.Dir != "" {
		var err error
		if d.journal, err = openJournal(cfg.Dir, d.state, cfg.Now()); err != nil {
			return nil, err
		}
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.running.Go(d.sweep)
	return d, nil
}

// Close ends the goroutines of the dispatcher and closes the journal.
func (d *Dispatcher) Close() {
	d.cancel()
	d.running.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		c.Close()
	}
	if d.journal != nil {
		d.journal.close()
	}
}

// changeLocked writes an update to the journal and applies it.
func (d *Dispatcher) changeLocked(u *update) error {
	if d.journal != nil {
		if err := d.journal.write(u); err != nil {
			return err
		}
	}
	d.state.apply(u, d.Now())
	return nil
}

func (d *Dispatcher) nextLocked() int64 { return d.state.last + 1 }

// GetVersion returns the version of the protocol.
func (d *Dispatcher) GetVersion(context.Context, *datapb.GetVersionRequest) (*datapb.GetVersionResponse, error) {
	return &datapb.GetVersionResponse{Version: version}, nil
}

// GetDataServiceConfig says that workers are not in the processes of clients.
func (d *Dispatcher) GetDataServiceConfig(context.Context, *datapb.GetDataServiceConfigRequest) (*datapb.GetDataServiceConfigResponse, error) {
	return &datapb.GetDataServiceConfigResponse{Config: &datapb.DataServiceConfig{DeploymentMode: datapb.DeploymentMode_DEPLOYMENT_MODE_REMOTE}}, nil
}

// GetOrRegisterDataset registers a dataset. One with a name that exists already must have the same
// metadata. At the limit, datasets without a name that no job uses are forgotten: programs register
// one for each of their iterators.
func (d *Dispatcher) GetOrRegisterDataset(
	_ context.Context, req *datapb.GetOrRegisterDatasetRequest,
) (*datapb.GetOrRegisterDatasetResponse, error) {
	if err := checkName("dataset", req.GetDatasetId()); err != nil {
		return nil, err
	}
	size := int64(proto.Size(req.GetDataset().GetGraph()) + proto.Size(req.GetMetadata()))
	// the graph is kept and copied into its message
	copies := int64(3)
	if d.Dir != "" { // its entry in the journal is larger by a third, and grows by doubling
		copies += 5
	}
	if err := memoryFor("datasets", copies*size); err != nil {
		return nil, err
	}
	graph, err := proto.Marshal(req.GetDataset().GetGraph())
	if err != nil {
		return nil, status.InvalidArgumentf("a dataset cannot be encoded: %v", err)
	}
	metadata, err := proto.MarshalOptions{Deterministic: true}.Marshal(req.GetMetadata())
	if err != nil {
		return nil, status.InvalidArgumentf("the metadata of a dataset cannot be encoded: %v", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := req.GetDatasetId()
	if old := d.state.datasets[id]; old != nil {
		if string(old.Metadata) != string(metadata) {
			return nil, status.InvalidArgumentf("Datasets with the same ID should have the same structure, got diff for dataset ID %s: "+
				"the metadata differ.", id)
		}
		return &datapb.GetOrRegisterDatasetResponse{DatasetId: id}, nil
	}
	for id == "" || d.state.datasets[id] != nil {
		id = strconv.FormatInt(d.state.datasetIDs, 10)
		d.state.datasetIDs++ // names of clients may be numbers
	}
	added := &dataset{ID: id, Graph: graph, Metadata: metadata, Unnamed: req.GetDatasetId() == ""}
	if err := d.makeRoomLocked(added.bytes()); err != nil {
		return nil, err
	}
	if err := d.changeLocked(&update{Dataset: added}); err != nil {
		return nil, err
	}
	return &datapb.GetOrRegisterDatasetResponse{DatasetId: id}, nil
}

// makeRoomLocked forgets datasets that are not used until one of n bytes fits.
func (d *Dispatcher) makeRoomLocked(n int64) error {
	for len(d.state.datasets) >= d.limits.datasets || d.state.datasetBytes+n > d.limits.datasetBytes {
		oldest := d.state.unused.Front()
		if oldest == nil {
			return status.ResourceExhaustedf("The datasets of this dispatcher have reached their limit: %d of %d, with %d of %d bytes (a quarter of "+
				"--memory-limit), and jobs or names keep all of them.", len(d.state.datasets), d.limits.datasets, d.state.datasetBytes, d.limits.datasetBytes)
		}
		if err := d.changeLocked(&update{Forget: oldest.Value.(*dataset).ID}); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dispatcher) datasetLocked(id string) (*dataset, error) {
	if found := d.state.datasets[id]; found != nil {
		return found, nil
	}
	return nil, status.NotFoundf("Dataset id %s not found. It must be registered with `register_dataset` before calling `from_dataset_id`.", id)
}

// GetDataServiceMetadata returns the metadata with which a dataset was registered.
func (d *Dispatcher) GetDataServiceMetadata(
	_ context.Context, req *datapb.GetDataServiceMetadataRequest,
) (*datapb.GetDataServiceMetadataResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, err := d.datasetLocked(req.GetDatasetId())
	if err != nil {
		return nil, err
	}
	if err := memoryFor("answers", int64(len(found.Metadata))); err != nil {
		return nil, err
	}
	m := &datapb.DataServiceMetadata{}
	if err := proto.Unmarshal(found.Metadata, m); err != nil {
		return nil, status.Internalf("the metadata of dataset %s cannot be read: %v", found.ID, err)
	}
	return &datapb.GetDataServiceMetadataResponse{Metadata: m}, nil
}

// GetDatasetDef returns the graph of a dataset.
func (d *Dispatcher) GetDatasetDef(_ context.Context, req *datapb.GetDatasetDefRequest) (*datapb.GetDatasetDefResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, err := d.datasetLocked(req.GetDatasetId())
	if err != nil {
		return nil, err
	}
	return &datapb.GetDatasetDefResponse{DatasetDef: found.def()}, nil
}

// split returns the splits of the sources of a dataset. It decodes the graph once only, for all
// iterations. The caller holds the mutex of the dispatcher.
func (s *dataset) split() ([]source, error) {
	if s.sources != nil || s.unsplit != nil {
		return s.sources, s.unsplit
	}
	release, err := rpc.AdmitGraph(s.Graph, nil)
	if err != nil {
		return nil, err
	}
	defer release()
	g := &pb.GraphDef{}
	if err := proto.Unmarshal(s.Graph, g); err != nil {
		return nil, status.Internalf("the graph of dataset %s cannot be read: %v", s.ID, err)
	}
	s.sources, s.unsplit = splitSources(g)
	return s.sources, s.unsplit
}

// def returns a definition that has the graph when it was sent. It shares the memory of the
// dataset: its field is encoded already, and counts as unknown until then.
func (s *dataset) def() *datapb.DatasetDef {
	def := &datapb.DatasetDef{}
	def.ProtoReflect().SetUnknown(s.wire)
	return def
}

// DisableCompressionAtRuntime keeps the compression that a dataset was registered with.
func (d *Dispatcher) DisableCompressionAtRuntime(
	_ context.Context, req *datapb.DisableCompressionAtRuntimeRequest,
) (*datapb.DisableCompressionAtRuntimeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.datasetLocked(req.GetDatasetId())
	return &datapb.DisableCompressionAtRuntimeResponse{
		Decision: &datapb.DisableCompressionAtRuntimeResponse_CompressionDisabledAtRuntime{},
	}, err
}

// GetOrCreateJob returns the job of a name, or a new one. A job of the same name must have the same
// parameters; its first dataset counts.
func (d *Dispatcher) GetOrCreateJob(_ context.Context, req *datapb.GetOrCreateJobRequest) (*datapb.GetOrCreateJobResponse, error) {
	if req.GetUseCrossTrainerCache() {
		return nil, status.Unimplementedf("the cache that several trainers share is not available")
	}
	if err := checkName("job", req.GetJobName()); err != nil {
		return nil, err
	}
	j := &job{
		Name: req.GetJobName(), Dataset: req.GetDatasetId(), Policy: int32(req.GetProcessingModeDef().GetShardingPolicy()),
		Consumers: req.GetNumConsumers(), Target: int32(req.GetTargetWorkers()),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.datasetLocked(j.Dataset); err != nil {
		return nil, err
	}
	if isStatic(j.Policy) && len(d.Workers) == 0 {
		return nil, status.InvalidArgumentf("Static sharding policies need the addresses of all workers: start the dispatcher with --workers")
	}
	if old := d.state.byName[j.Name]; old != nil {
		if !old.same(j) {
			return nil, status.InvalidArgumentf("Tried to create job with name %s, but found an existing job with different parameters: "+
				"the processing mode, the number of consumers or the target workers.", j.Name)
		}
		return &datapb.GetOrCreateJobResponse{JobId: old.ID}, nil
	}
	if err := room("jobs", len(d.state.jobs), d.limits.jobs, entryMemory+int64(len(j.Name))); err != nil {
		return nil, err
	}
	j.ID = d.nextLocked()
	if err := d.changeLocked(&update{Job: j}); err != nil {
		return nil, err
	}
	return &datapb.GetOrCreateJobResponse{JobId: j.ID}, nil
}

func isStatic(policy int32) bool {
	return datapb.ProcessingModeDef_ShardingPolicy(policy) >= datapb.ProcessingModeDef_FILE
}

func isDynamic(policy int32) bool {
	return datapb.ProcessingModeDef_ShardingPolicy(policy) == datapb.ProcessingModeDef_DYNAMIC
}

// GetOrCreateIteration makes the caller a client of a repetition of a job. The first client starts
// its tasks.
func (d *Dispatcher) GetOrCreateIteration(
	_ context.Context, req *datapb.GetOrCreateIterationRequest,
) (*datapb.GetOrCreateIterationResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.state.jobs[req.GetJobId()]
	if j == nil {
		return nil, status.NotFoundf("Job id %d not found.", req.GetJobId())
	}
	if err := room("clients", len(d.state.clients), d.limits.clients, entryMemory); err != nil {
		return nil, err
	}
	it := d.state.repeated[repetition{j.ID, req.GetRepetition()}]
	if it == nil {
		var err error
		if it, err = d.iterateLocked(j, req.GetRepetition()); err != nil {
			return nil, err
		}
	}
	c := &client{ID: d.nextLocked(), Iteration: it.ID}
	if err := d.changeLocked(&update{Client: c}); err != nil {
		return nil, err
	}
	return &datapb.GetOrCreateIterationResponse{IterationClientId: c.ID}, nil
}

// iterateLocked makes an iteration and its tasks.
func (d *Dispatcher) iterateLocked(j *job, number int64) (*iteration, error) {
	if err := room("iterations", len(d.state.iterations), d.limits.iterations, entryMemory); err != nil {
		return nil, err
	}
	workers := d.workersOfLocked(j)
	if err := room("tasks", len(d.state.tasks)+len(workers), d.limits.tasks+1, int64(len(workers))*entryMemory); err != nil {
		return nil, err
	}
	it := &iteration{ID: d.nextLocked(), Job: j.ID, Repetition: number}
	if isDynamic(j.Policy) {
		sources, err := d.state.datasets[j.Dataset].split()
		if err != nil {
			return nil, err
		}
		if err := memoryFor("iterations", int64(len(sources))*int64(unsafe.Sizeof(source{}))); err != nil {
			return nil, err
		}
		it.Sources = slices.Clone(sources)
	}
	if err := d.changeLocked(&update{Iteration: it}); err != nil {
		return nil, err
	}
	for _, w := range workers {
		if err := d.assignLocked(it, w); err != nil {
			return nil, err
		}
	}
	return it, nil
}

// ReleaseIterationClient ends a client.
func (d *Dispatcher) ReleaseIterationClient(
	_ context.Context, req *datapb.ReleaseIterationClientRequest,
) (*datapb.ReleaseIterationClientResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state.clients[req.GetIterationClientId()] == nil {
		return nil, clientNotFound(req.GetIterationClientId())
	}
	return &datapb.ReleaseIterationClientResponse{}, d.changeLocked(&update{Release: req.GetIterationClientId()})
}

func clientNotFound(id int64) error { return status.NotFoundf("Iteration client id %d not found.", id) }

// ClientHeartbeat returns the tasks of a client's iteration.
func (d *Dispatcher) ClientHeartbeat(_ context.Context, req *datapb.ClientHeartbeatRequest) (*datapb.ClientHeartbeatResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.state.clients[req.GetIterationClientId()]
	if c == nil {
		return nil, clientNotFound(req.GetIterationClientId())
	}
	c.seen = d.Now()
	resp := &datapb.ClientHeartbeatResponse{DeploymentMode: datapb.DeploymentMode_DEPLOYMENT_MODE_REMOTE}
	it := d.state.iterations[c.Iteration]
	if it == nil {
		resp.IterationFinished = true
		return resp, nil
	}
	resp.IterationFinished = it.finished
	size := int64(0)
	for _, t := range it.tasks {
		if !t.finished {
			size += d.state.workers[t.Worker].infoMemory()
		}
	}
	if err := memoryFor("answers", size); err != nil {
		return nil, err
	}
	for _, t := range it.tasks {
		if !t.finished {
			resp.TaskInfo = append(resp.TaskInfo, d.infoLocked(t))
		}
	}
	return resp, nil
}

func (d *Dispatcher) infoLocked(t *task) *datapb.TaskInfo {
	info := &datapb.TaskInfo{WorkerAddress: t.Worker, TaskId: t.ID, IterationId: t.Iteration}
	if w := d.state.workers[t.Worker]; w != nil {
		info.WorkerUid, info.WorkerTags = w.UID, w.Tags
		for _, s := range w.Servers {
			info.TransferServers = append(info.TransferServers, &datapb.DataTransferServerInfo{Protocol: s.Protocol, Address: s.Address})
		}
	}
	return info
}

// MaybeRemoveTask keeps the task: the tasks of coordinated reads stay until their iteration ends.
func (d *Dispatcher) MaybeRemoveTask(context.Context, *datapb.MaybeRemoveTaskRequest) (*datapb.MaybeRemoveTaskResponse, error) {
	return &datapb.MaybeRemoveTaskResponse{}, nil
}

// GetSplit returns the next split of a source.
func (d *Dispatcher) GetSplit(_ context.Context, req *datapb.GetSplitRequest) (*datapb.GetSplitResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	it := d.state.iterations[req.GetIterationId()]
	if it == nil {
		return nil, status.NotFoundf("Iteration id %d not found.", req.GetIterationId())
	}
	k := req.GetSplitProviderIndex()
	if k < 0 || k >= int64(len(it.Sources)) || req.GetRepetition() < 0 {
		return nil, status.InvalidArgumentf("Iteration %d has no split provider %d", it.ID, k)
	}
	before := it.Sources[k]
	split, ok := before.take(req.GetRepetition())
	if !ok {
		return &datapb.GetSplitResponse{EndOfSplits: true}, nil
	}
	err := d.changeLocked(&update{Split: &splitRequest{it.ID, req.GetRepetition(), int(k)}})
	if err != nil {
		return nil, err
	}
	return &datapb.GetSplitResponse{Split: &pb.TensorProto{
		Dtype: pb.DataType_DT_INT64, TensorShape: &pb.TensorShapeProto{}, Int64Val: []int64{split},
	}}, nil
}
