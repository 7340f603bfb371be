// Package dataservice is the tf.data service: input pipelines that run on other machines than the
// training program, which reads their elements over gRPC.
//
// A client registers a dataset, a graph, with the [Dispatcher], and creates a job for it. The
// dispatcher gives every [Worker] a task: to run the dataset. The client asks the dispatcher for
// the tasks from time to time, and takes elements from all of them. A repetition of a job is an
// iteration, which has a task on each worker.
//
// How tasks share the elements of an iteration depends on its sharding policy:
//
//   - OFF: every task produces the whole dataset.
//   - DYNAMIC: the dispatcher divides the sources of the dataset into splits, and a task requests a
//     split whenever it needs one. Every element of a source is processed at most once.
//   - the others: a task takes every n-th file or element.
//
// The dispatcher records every change of its state in a journal, if it has a folder for it, and
// continues from there after a restart. Workers hold no state that must survive.
package dataservice

import (
	"log/slog"

	"github.com/weft-ml/weft/internal/transport/rpc"
)

const (
	dispatcherService = "/tensorflow.data.DispatcherService/"
	workerService     = "/tensorflow.data.WorkerService/"
)

// version is the version of the protocol. Clients refuse another one.
const version = 9

// Register registers the dispatcher with a server.
func (d *Dispatcher) Register(s *rpc.Server, log *slog.Logger) {
	rpc.RegisterUnary(s, log, dispatcherService+"WorkerHeartbeat", d.WorkerHeartbeat)
	rpc.RegisterUnary(s, log, dispatcherService+"WorkerUpdate", d.WorkerUpdate)
	rpc.RegisterUnary(s, log, dispatcherService+"GetDatasetDef", d.GetDatasetDef)
	rpc.RegisterUnary(s, log, dispatcherService+"GetSplit", d.GetSplit)
	rpc.RegisterUnary(s, log, dispatcherService+"GetVersion", d.GetVersion)
	rpc.RegisterUnary(s, log, dispatcherService+"GetOrRegisterDataset", d.GetOrRegisterDataset)
	rpc.RegisterUnary(s, log, dispatcherService+"GetDataServiceMetadata", d.GetDataServiceMetadata)
	rpc.RegisterUnary(s, log, dispatcherService+"GetDataServiceConfig", d.GetDataServiceConfig)
	rpc.RegisterUnary(s, log, dispatcherService+"GetOrCreateJob", d.GetOrCreateJob)
	rpc.RegisterUnary(s, log, dispatcherService+"GetOrCreateIteration", d.GetOrCreateIteration)
	rpc.RegisterUnary(s, log, dispatcherService+"MaybeRemoveTask", d.MaybeRemoveTask)
	rpc.RegisterUnary(s, log, dispatcherService+"ReleaseIterationClient", d.ReleaseIterationClient)
	rpc.RegisterUnary(s, log, dispatcherService+"ClientHeartbeat", d.ClientHeartbeat)
	rpc.RegisterUnary(s, log, dispatcherService+"GetWorkers", d.GetWorkers)
	rpc.RegisterUnary(s, log, dispatcherService+"DisableCompressionAtRuntime", d.DisableCompressionAtRuntime)
}

// Register registers the worker with a server.
func (w *Worker) Register(s *rpc.Server, log *slog.Logger) {
	rpc.RegisterUnary(s, log, workerService+"ProcessTask", w.ProcessTask)
	rpc.RegisterUnary(s, log, workerService+"GetElement", w.GetElement)
	rpc.RegisterUnary(s, log, workerService+"GetWorkerTasks", w.GetWorkerTasks)
}
