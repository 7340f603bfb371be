// Package task assembles one task of a cluster: its devices, its worker, which runs partitions of
// steps on them, and its master, which serves clients. They call each other directly. The other
// tasks of the cluster are reached over a network, if there is one.
package task

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/gpu/devices"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/eager"
	"github.com/weft-ml/weft/internal/role/master"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/role/recorder"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/internal/runtime/collective"
	"github.com/weft-ml/weft/internal/sys/observe"
	"github.com/weft-ml/weft/internal/sys/scalars"
	"github.com/weft-ml/weft/kernel"
)

// Network reaches the tasks of a cluster.
type Network interface {
	worker.Peers
	// Worker returns the worker of a task.
	Worker(task cluster.Task) (master.Worker, error)
}

// Config holds the parameters of a task.
type Config struct {
	Task       cluster.Task
	Cluster    cluster.Spec
	CPUDevices int
	GPUs       *devices.Set // nil for none
	// GPUOptions say which devices the GPUs become; nil for those of SessionDefaults.
	GPUOptions *pb.ConfigProto
	Kernels    *kernel.Registry
	Files      *fileio.FS     // files that operations may use; nil for all
	Policy     *kernel.Policy // operations that the task runs; nil for all
	Quota      *quota.Quota   // limits of the clients; nil for none
	// Connect returns the network of a cluster, the task's own or one that a session brings, in
	// which this task has the given name. It is nil for a task without peers.
	Connect func(spec cluster.Spec, self cluster.Task) (Network, error)
	Lender  worker.Lender // may be nil
	// Unused is called when the worker's last session has been deleted; may be nil.
	Unused          func()
	SessionDefaults *pb.ConfigProto // may be nil
	SessionTTL      time.Duration   // time after which an unused session is closed; 0 for never
	// OrphanTimeout is that of the sessions of other tasks' masters; see [worker.Config].
	OrphanTimeout time.Duration
	// receives the placements that sessions ask to be logged; may be nil
	Placement io.Writer
	// Observer is notified of steps and of the work of devices; may be nil.
	Observer observe.Observer
	// Tracer makes spans of steps; may be nil.
	Tracer observe.Tracer
	Log    *slog.Logger
}

// Task is one task of a cluster.
type Task struct {
	Worker   *worker.Worker
	Master   *master.Master
	Eager    *eager.Service
	Devices  []*kernel.Device
	Recorder *recorder.Recorder
	Scalars  *scalars.Board // numbers of summary operations
}

// New returns a task. The caller must call Close.
func New(cfg Config) (*Task, error) {
	gpus, err := gpuDevices(&cfg)
	if err != nil {
		return nil, err
	}
	t := &Task{Recorder: new(recorder.Recorder), Scalars: new(scalars.Board)}
	t.Devices = append(cpuDevices(&cfg, t.Scalars), gpus...)
	t.Recorder.Devices = t.Devices
	connect := func(spec cluster.Spec, self cluster.Task) (*tasks, error) {
		out := &tasks{spec: spec, self: self, task: t}
		if cfg.Connect == nil {
			return out, nil
		}
		var err error
		out.Network, err = cfg.Connect(spec, self)
		return out, err
	}
	own, err := connect(cfg.Cluster, cfg.Task)
	if err != nil {
		return nil, err
	}
	sequences := collective.NewSequences()
	workerConfig := worker.Config{
		Task: cfg.Task, Cluster: cfg.Cluster, Devices: t.Devices, Kernels: cfg.Kernels, Lender: cfg.Lender, Unused: cfg.Unused, Sequences: sequences,
		Leader:         cfg.SessionDefaults.GetExperimental().GetCollectiveGroupLeader(),
		OrphanTimeout:  cfg.OrphanTimeout,
		Quota:          cfg.Quota,
		Recorder:       t.Recorder,
		CacheResponses: cfg.SessionDefaults.GetRpcOptions().GetCacheRpcResponse(), Log: cfg.Log,
	}
	masterConfig := master.Config{
		Sequences: sequences,
		Task:      cfg.Task, Cluster: cfg.Cluster, Workers: own, Kernels: cfg.Kernels, SessionDefaults: cfg.SessionDefaults, SessionTTL: cfg.SessionTTL,
		Recorder: t.Recorder, Placement: cfg.Placement, Observer: cfg.Observer, Tracer: cfg.Tracer, Log: cfg.Log, Quota: cfg.Quota, Policy: cfg.Policy,
	}
	if cfg.Connect != nil {
		workerConfig.Peers = own
		workerConfig.Connect = func(spec cluster.Spec, self cluster.Task) (worker.Peers, error) { return connect(spec, self) }
		masterConfig.Connect = func(spec cluster.Spec, self cluster.Task) (master.Workers, error) { return connect(spec, self) }
	}
	t.Worker = worker.New(workerConfig)
	t.Master = master.New(masterConfig)
	t.Eager = eager.New(eager.Config{Worker: t.Worker, Kernels: cfg.Kernels, Tracer: cfg.Tracer, Log: cfg.Log})
	return t, nil
}

// Close closes all sessions, cancels all steps, and drops the resources. It notifies other tasks
// until ctx ends.
func (t *Task) Close(ctx context.Context) {
	t.Master.Close(ctx)
	t.Eager.Close()
	t.Recorder.Close()
	t.Worker.Close()
	t.Worker.ClearTenants()
	for _, d := range t.Devices {
		d.Resources.ClearAll()
	}
}

// memoryLimit is the memory that TensorFlow's CPU devices report, in bytes.
const memoryLimit = 256 << 20

// cpuDevices returns the devices of a task, with new incarnations.
func cpuDevices(cfg *Config, board *scalars.Board) []*kernel.Device {
	task := cfg.Task
	out := make([]*kernel.Device, max(cfg.CPUDevices, 1))
	for i := range out {
		out[i] = &kernel.Device{
			Name: fmt.Sprintf("%v/device:%s:%d", task, kernel.CPU, i), Type: kernel.CPU, Incarnation: rand.Uint64() | 1, MemoryLimit: memoryLimit,
			Resources: kernel.NewResources(task.Job), Files: cfg.Files, Policy: cfg.Policy, Observer: cfg.Observer,
			Scalars: board,
		}
	}
	return out
}

// tasks is a cluster as one of its tasks sees it. It calls its own worker without a network.
type tasks struct {
	Network // nil for a task without peers
	spec    cluster.Spec
	self    cluster.Task
	task    *Task
}

func (t *tasks) Tasks() []cluster.Task {
	if t.Network == nil {
		return []cluster.Task{t.self}
	}
	return t.spec.Tasks()
}

func (t *tasks) Worker(task cluster.Task) (master.Worker, error) {
	if task == t.self || t.Network == nil {
		return t.task.Worker, nil
	}
	return t.Network.Worker(task)
}
