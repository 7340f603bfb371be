package weft

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// TaskStatus is what a task of a cluster does.
type TaskStatus struct {
	Name    string // "/job:ps/replica:0/task:0"
	Address string // "host:port" in the cluster
	// Error says why the task does not answer; "" if it does.
	Error string
	// Weft reports whether the task is one of Weft. The fields below are set for such tasks only,
	// except Devices.
	Weft           bool
	Version        string
	Host           string
	PID            int
	Uptime         time.Duration
	Devices        []string // full names
	Memory         int64    // that the Go runtime of the task holds, in bytes
	Sessions       []SessionStatus
	WorkerSessions int // sessions of all masters in which the task takes part
	Resources      []ResourceStatus
	Failures       []Failure // of steps whose master is the task, the one seen last first
	GPUs           []GPUStatus
}

// GPUStatus is a GPU device of a task. Counts are since the task has opened the device.
type GPUStatus struct {
	Device      string // full name
	Description string // of the hardware, in TensorFlow's words
	// Bytes of tensors, now and the most so far; bytes that are reserved from the driver; and the
	// limit.
	InUse, Peak, Reserved, Limit int64
	Kernels                      int64 // that were queued
	// KernelTime is the time that kernels have run, estimated from that of some.
	KernelTime          time.Duration
	Copies, CopiedBytes int64 // of tensors to the device, to the host and from other GPUs
}

// Failure is the error of one or more steps of a session.
type Failure struct {
	Last    time.Time // time of the last step that has failed
	Count   int       // of the steps
	Session string    // the first characters of the handle
	Step    int64     // the last step that has failed
	Code    string    // "INVALID_ARGUMENT"
	Message string
	Task    string // on which the error arose; "" if it is no error of a task, such as a deadline
}

// SessionStatus is a session that a task is the master of.
type SessionStatus struct {
	Handle string // the first characters of the handle
	Owner  string // principal that has created it; "" without certificates
	Age    time.Duration
	Nodes  int // of its graph
	Steps  []StepStatus
}

// StepStatus is a step that is running.
type StepStatus struct {
	ID int64
	// Running is the least time for which the step has run; masters look every two seconds.
	Running time.Duration
	Failed  bool // the step has failed, and some of its tasks have not stopped yet
	Waits   []StepWait
}

// StepWait is a task that has not answered the master of a step.
type StepWait struct {
	Task    string
	Address string // "" for the master's own task
	Call    string // what the master has asked for, such as "RunGraph (3 nodes: a, b, c)"
	Silent  string // why the task does not answer; "" if it lives and has not finished
}

// ResourceStatus is state that a task keeps between steps.
type ResourceStatus struct {
	Container, Name string
	Kind            string // "variable", "queue", or the type name of TensorFlow
	DType, Shape    string // "" for kinds without
	Bytes           int64  // 0 if it is not known
	Elements        int64  // of a queue
}

// ClusterStatus asks a task of Weft what it and the other tasks of its cluster are doing: sessions,
// running steps and whom they wait for, variables and queues. The result has all tasks of the
// cluster, those that do not answer with an Error. It fails with Unimplemented if the target is a
// server of TensorFlow.
func ClusterStatus(ctx context.Context, target string, opts ...TargetOption) ([]TaskStatus, error) {
	master, done, err := connectOnce(target, opts)
	if err != nil {
		return nil, err
	}
	defer done(ctx)
	inspector, ok := master.(interface {
		GetCluster(context.Context, *pb.GetClusterRequest) (*pb.ClusterInfo, error)
	})
	if !ok {
		return nil, status.Unimplementedf("the target %s does not describe its cluster", target)
	}
	info, err := inspector.GetCluster(ctx, &pb.GetClusterRequest{})
	if err != nil {
		return nil, err
	}
	out := make([]TaskStatus, len(info.GetTasks()))
	for i, task := range info.GetTasks() {
		out[i] = taskStatus(task)
	}
	return out, nil
}

func taskStatus(task *pb.ClusterTask) TaskStatus {
	info := task.GetInfo()
	out := TaskStatus{
		Name: task.GetName(), Address: task.GetAddress(), Error: task.GetError(), Weft: info != nil,
		Version: info.GetVersion(), Host: info.GetHost(), PID: int(info.GetPid()), Uptime: seconds(info.GetUptimeSeconds()),
		Devices: append(info.GetDevices(), task.GetDevices()...), Memory: info.GetMemoryBytes(), WorkerSessions: int(info.GetWorkerSessions()),
	}
	for _, s := range info.GetSessions() {
		out.Sessions = append(out.Sessions, sessionStatus(s))
	}
	for _, f := range info.GetFailures() {
		out.Failures = append(out.Failures, Failure{
			Last: time.Unix(0, f.GetLastNanos()), Count: int(f.GetCount()), Session: f.GetSession(), Step: f.GetStep(),
			Code: f.GetCode(), Message: f.GetMessage(), Task: f.GetTask(),
		})
	}
	for _, g := range info.GetGpus() {
		out.GPUs = append(out.GPUs, GPUStatus{
			Device: g.GetDevice(), Description: g.GetDescription(), InUse: g.GetInUseBytes(), Peak: g.GetPeakBytes(), Reserved: g.GetReservedBytes(),
			Limit: g.GetLimitBytes(), Kernels: g.GetKernels(), KernelTime: seconds(g.GetKernelSeconds()), Copies: g.GetCopies(),
			CopiedBytes: g.GetCopiedBytes(),
		})
	}
	for _, r := range info.GetResources() {
		out.Resources = append(out.Resources, ResourceStatus{
			Container: r.GetContainer(), Name: r.GetName(), Kind: r.GetKind(), DType: r.GetDtype(), Shape: r.GetShape(),
			Bytes: r.GetBytes(), Elements: r.GetElements(),
		})
	}
	return out
}

func sessionStatus(s *pb.SessionInfo) SessionStatus {
	out := SessionStatus{Handle: s.GetHandle(), Owner: s.GetOwner(), Age: seconds(s.GetAgeSeconds()), Nodes: int(s.GetNodes())}
	for _, st := range s.GetSteps() {
		step := StepStatus{ID: st.GetId(), Running: seconds(st.GetRunningSeconds()), Failed: st.GetFailed()}
		for _, w := range st.GetWaits() {
			step.Waits = append(step.Waits, StepWait{w.GetTask(), w.GetAddress(), w.GetCall(), w.GetSilent()})
		}
		out.Steps = append(out.Steps, step)
	}
	return out
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
