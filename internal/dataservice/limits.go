package dataservice

import (
	"math"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// limits bound what the clients and workers of a dispatcher may make it remember. They are far
// above what programs use: an iteration and its tasks end some minutes after their last client, and
// a job some minutes after its last iteration.
type limits struct {
	datasets, jobs, iterations, tasks, clients, workers int

	datasetBytes int64 // of all datasets together
}

// defaultLimits returns the limits of a dispatcher. Datasets may take a quarter of the memory of
// the process. Everything else takes about 300 MiB at most, and is asked for as well.
func defaultLimits() limits {
	l := limits{
		datasets: 100_000, jobs: 100_000, iterations: 10_000, tasks: 1_000_000, clients: 100_000, workers: 10_000,
		datasetBytes: membudget.Limit() / 4,
	}
	if l.datasetBytes == 0 { // the process has no limit
		l.datasetBytes = math.MaxInt64
	}
	return l
}

const (
	// maxName bounds the name of a dataset or job, in bytes.
	maxName = 4 << 10
	// maxWorkerText bounds the tags and transfer servers of a worker, in bytes. The reply to the
	// heartbeat of a client has those of all workers.
	maxWorkerText = 4 << 10
	// entryText is the memory of the header of a text, in bytes.
	entryText = 16
	// maxSources bounds the sources of a dynamically sharded dataset. A worker has a queue and a
	// goroutine for each.
	maxSources = 1024
	// maxRunning bounds the tasks that a worker runs or that have ended unknown to the dispatcher.
	maxRunning = 10_000
	// maxPushes bounds the calls that give tasks to workers at once. A worker asks for the tasks
	// that were not sent.
	maxPushes = 64
	// maxReplyTasks and maxReplyBytes bound the tasks that the reply to a heartbeat holds, and the
	// size of their datasets. The rest goes with the following replies.
	maxReplyTasks = 1000
	maxReplyBytes = 64 << 20
	// entryMemory is about the memory of a job, iteration, task, client or worker, with its entries
	// in maps, in bytes.
	entryMemory = 400
	// currentMemory is about the memory of the number of a task in a heartbeat, in the sets with
	// which it is compared, in bytes.
	currentMemory = 64
	// serverMemory is about the memory of a transfer server in an answer, in bytes.
	serverMemory = 160
)

// infoMemory returns about the memory of a description of the worker in an answer, in bytes. The
// worker may be nil.
func (w *workerState) infoMemory() int64 {
	if w == nil {
		return entryMemory
	}
	return entryMemory + serverMemory*int64(len(w.Servers))
}

// checkCount returns an error for a request of a worker with more tasks than there can be, or if
// there is no memory to compare them.
func (d *Dispatcher) checkCount(tasks int) error {
	if tasks > d.limits.tasks {
		return status.ResourceExhaustedf("A request of a worker has %d tasks, this dispatcher has at most %d.", tasks, d.limits.tasks)
	}
	return memoryFor("answers", currentMemory*int64(tasks))
}

// room returns an error if there are most things already, or if there is no memory for another one
// of n bytes.
func room(what string, have, most int, n int64) error {
	if have >= most {
		return status.ResourceExhaustedf("The %s of this dispatcher have reached their limit (%d).", what, most)
	}
	return memoryFor(what, n)
}

// memoryFor returns an error if there is no memory for n bytes.
func memoryFor(what string, n int64) error {
	if !membudget.Take(n) {
		return status.ResourceExhaustedf("There is not enough memory for further %s (--memory-limit).", what)
	}
	return nil
}

// checkName returns an error for a name that is too long.
func checkName(what, name string) error {
	if len(name) > maxName {
		return status.InvalidArgumentf("the name of a %s has %d bytes, at most %d are allowed: %.64q...", what, len(name), maxName, name)
	}
	return nil
}
