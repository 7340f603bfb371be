// Package local lets sessions run in this process, on devices of their own and without a network.
// Import it for the target "local":
//
//	import _ "github.com/weft-ml/weft/local"
//
//	s, err := weft.NewSession("local", g)
//
// Each session is a task by itself, "/job:localhost/replica:0/task:0", with as many CPU devices as
// [weft.WithCPUDevices] says: it shares no variable with other sessions, and they go when it is
// closed.
package local

import (
	"context"
	"log/slog"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/task"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/kernels" // every operation that a session can run
	"github.com/weft-ml/weft/status"
)

// Target is what sessions in this process connect to.
const Target = "local"

// maxCPUDevices bounds the devices of a session.
const maxCPUDevices = 1024

func init() { rpc.RegisterTarget(Target, open) } //nolint:gochecknoinits // fills the registry of targets

// open returns the master of a new task.
func open(config *pb.ConfigProto, log *slog.Logger) (rpc.Master, func(context.Context), error) {
	n := config.GetDeviceCount()[kernel.CPU]
	if n < 0 || n > maxCPUDevices {
		return nil, nil, status.InvalidArgumentf("a session cannot have %d CPU devices: at most %d", n, maxCPUDevices)
	}
	self := cluster.Task{Job: "localhost"}
	t, err := task.New(task.Config{
		Task: self, Cluster: cluster.Spec{self.Job: cluster.Dense("")}, CPUDevices: int(n), Kernels: kernel.Default,
		Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	return t.Master, t.Close, nil
}
