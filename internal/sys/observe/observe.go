// Package observe has the interface through which the parts of a task tell what they do. A part
// without an observer counts nothing.
package observe

import "time"

// An Observer is notified of steps, of the work of devices, and of checkpoints. Its methods are
// called concurrently, on the goroutines that do the work, and must not block.
type Observer interface {
	// StepBegan and StepEnded report a step of a session whose master is this task. The code is
	// that of the step's error.
	StepBegan()
	StepEnded(code uint32, took time.Duration)
	// PartBegan and PartEnded report the part of a step that runs on a device, with its full name.
	PartBegan(device string)
	PartEnded(device string)
	// NodesExecuted reports the number of nodes that a device has executed in a run of a graph.
	NodesExecuted(n int)
	// CheckpointEnded reports an operation that has written or read the tensors of a checkpoint.
	CheckpointEnded(operation string, code uint32, bytes int64, took time.Duration)
}
