package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/buildinfo"
	"github.com/weft-ml/weft/internal/sys/memlimit"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// inspectTimeout is how long a description of the cluster waits for each of the other tasks. It
// exceeds the time in which a task finds out that another one does not answer.
const inspectTimeout = 3 * time.Second

// inspection describes the task and its cluster.
type inspection struct {
	server  *Server
	peers   *rpc.Peers
	started time.Time
	level   *slog.LevelVar // of the log; nil if it cannot be changed
	audit   *AuditLog      // nil for none
}

// inspectedMaster is what a client in this process calls.
type inspectedMaster struct {
	gatedMaster
	*inspection
}

// GetTask implements [rpc.Inspection].
func (i *inspection) GetTask(ctx context.Context, _ *pb.GetTaskRequest) (*pb.TaskInfo, error) {
	s := i.server
	host, _ := os.Hostname() // "" if the system does not tell it
	return &pb.TaskInfo{
		Name: s.def.Self().String(), Version: buildinfo.Read().Version, Host: host, Pid: int64(os.Getpid()), UptimeSeconds: time.Since(i.started).Seconds(),
		Devices: s.Devices(), MemoryBytes: int64(memlimit.Held()), Sessions: s.task.Master.Inspect(ctx),
		WorkerSessions: int64(s.task.Worker.Sessions()), Resources: i.resources(), Failures: s.task.Master.Failures(), Gpus: s.gpuInfos(),
	}, nil
}

// maxShownResources bounds the resources in the description of a task.
const maxShownResources = 10_000

// resources describes resources of the task, the first ones if there are too many.
func (i *inspection) resources() []*pb.ResourceInfo {
	var out []*pb.ResourceInfo
	for r := range i.server.task.Worker.Resources() {
		if len(out) == maxShownResources {
			break
		}
		out = append(out, r)
	}
	return out
}

// GetCluster implements [rpc.Inspection].
func (i *inspection) GetCluster(ctx context.Context, _ *pb.GetClusterRequest) (*pb.ClusterInfo, error) {
	tasks := i.server.def.Cluster.Tasks()
	out := &pb.ClusterInfo{Tasks: make([]*pb.ClusterTask, len(tasks))}
	var wg sync.WaitGroup
	for at, task := range tasks {
		wg.Go(func() { out.Tasks[at] = i.ask(ctx, task) })
	}
	wg.Wait()
	return out, nil
}

// ask asks one task to describe itself, or a task of TensorFlow for its devices.
func (i *inspection) ask(ctx context.Context, task cluster.Task) *pb.ClusterTask {
	out := &pb.ClusterTask{Name: task.String(), Address: i.server.def.Cluster.Address(task)}
	var err error
	if task == i.server.def.Self() {
		out.Info, err = i.GetTask(ctx, &pb.GetTaskRequest{})
	} else {
		ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
		defer cancel()
		err = i.askPeer(ctx, task, out)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

func (i *inspection) askPeer(ctx context.Context, task cluster.Task, out *pb.ClusterTask) error {
	w, err := i.peers.Worker(task)
	if err != nil {
		return err
	}
	out.Info, err = w.GetTask(ctx, &pb.GetTaskRequest{})
	switch status.CodeOf(err) {
	case status.Unimplemented:
		resp, err := w.GetStatus(ctx, &pb.GetStatusRequest{})
		for _, d := range resp.GetDeviceAttributes() {
			out.Devices = append(out.Devices, d.GetName())
		}
		return err
	case status.DeadlineExceeded:
		if failure := w.Failure(); failure != nil {
			return failure
		}
		if ago, ok := w.LastHeard(); ok {
			return fmt.Errorf("no answer within %v; last heard of %v ago", inspectTimeout, ago.Round(time.Second))
		}
		return fmt.Errorf("no answer within %v", inspectTimeout)
	default:
		return err
	}
}
