// Package local runs sessions in this process, on devices of their own and without a network.
// Import it to register the target "local":
//
//	import _ "github.com/weft-ml/weft/local"
//
//	s, err := weft.NewSession("local", g)
//
// Each session is a task of its own, "/job:localhost/replica:0/task:0". [weft.WithCPUDevices] sets
// the number of its CPU devices. It has the GPU devices of the process, if there are any. It shares
// no variables with other sessions. Closing the session drops its variables and ends its
// goroutines.
package local

import (
	"context"
	"log/slog"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/gpu/devices"
	"github.com/weft-ml/weft/internal/inspect/logging"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/task"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/kernels" // every operation that a session can run
	"github.com/weft-ml/weft/status"
)

// Target is the target of sessions in this process.
const Target = "local"

// maxCPUDevices bounds the devices of a session.
const maxCPUDevices = 1024

func init() { rpc.RegisterTarget(Target, open) } //nolint:gochecknoinits // registers the target

// open creates a task and returns its master and the function that closes the task.
func open(config *pb.ConfigProto, log *slog.Logger) (rpc.Master, func(context.Context), error) {
	n := config.GetDeviceCount()[kernel.CPU]
	if n < 0 || n > maxCPUDevices {
		return nil, nil, status.InvalidArgumentf("a session cannot have %d CPU devices: at most %d", n, maxCPUDevices)
	}
	gpus, err := devices.Find("")
	if err != nil {
		log.Debug("the session has CPU devices only", "reason", err)
	}
	// A program knows of its own sessions.
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		log = slog.New(logging.AtLeast(slog.LevelWarn, log.Handler()))
	}
	self := cluster.Task{Job: "localhost"}
	t, err := task.New(task.Config{
		Task: self, Cluster: cluster.Spec{self.Job: cluster.Dense("")}, CPUDevices: int(n), GPUs: gpus, GPUOptions: config,
		Kernels: kernel.Default, Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	return t.Master, t.Close, nil
}
