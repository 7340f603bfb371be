package dashboard

import (
	"strconv"
	"strings"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
)

// The types of the state that the page receives; app/src/api.ts has the same. Times are in seconds,
// sizes in bytes. Numbers of steps are texts, because they do not fit a number of JavaScript.
type (
	clusterState struct {
		Self  string      `json:"self"`
		Tasks []taskState `json:"tasks"`
	}
	taskState struct {
		Name           string          `json:"name"`
		Address        string          `json:"address"`
		Error          string          `json:"error"`
		Weft           bool            `json:"weft"`
		Version        string          `json:"version"`
		Host           string          `json:"host"`
		PID            int64           `json:"pid"`
		Uptime         float64         `json:"uptime"`
		Memory         int64           `json:"memory"`
		Devices        []string        `json:"devices"`
		Sessions       []sessionState  `json:"sessions"`
		WorkerSessions int64           `json:"workerSessions"`
		Resources      []resourceState `json:"resources"`
		Failures       []failureState  `json:"failures"`
		GPUs           []gpuState      `json:"gpus"`
	}
	// gpuState is a GPU device; counts are since it was opened.
	gpuState struct {
		Device      string  `json:"device"` // "GPU:0"
		Description string  `json:"description"`
		InUse       int64   `json:"inUse"`
		Peak        int64   `json:"peak"`
		Limit       int64   `json:"limit"`
		Kernels     int64   `json:"kernels"`
		KernelTime  float64 `json:"kernelTime"`
		Copies      int64   `json:"copies"`
		Copied      int64   `json:"copied"`
	}
	// failureState is an error of one or more steps.
	failureState struct {
		Last    int64  `json:"last"` // ms since 1970
		Count   int64  `json:"count"`
		Session string `json:"session"`
		Step    string `json:"step"`
		Code    string `json:"code"`
		Message string `json:"message"`
		Task    string `json:"task"` // on which it arose; "" if on none
	}
	sessionState struct {
		Handle string      `json:"handle"`
		Owner  string      `json:"owner"`
		Age    float64     `json:"age"`
		Nodes  int64       `json:"nodes"`
		Steps  []stepState `json:"steps"`
	}
	stepState struct {
		ID      string      `json:"id"`
		Running float64     `json:"running"`
		Failed  bool        `json:"failed"`
		Waits   []waitState `json:"waits"`
	}
	waitState struct {
		Task    string `json:"task"`
		Address string `json:"address"`
		Call    string `json:"call"`
		Silent  string `json:"silent"`
	}
	resourceState struct {
		Container string `json:"container"`
		Name      string `json:"name"`
		Kind      string `json:"kind"`
		DType     string `json:"dtype"`
		Shape     string `json:"shape"`
		Bytes     int64  `json:"bytes"`
		Elements  int64  `json:"elements"`
	}
)

// clusterOf converts a description. Lists are never null.
func clusterOf(info *pb.ClusterInfo, self string) clusterState {
	out := clusterState{Self: self, Tasks: []taskState{}}
	for _, t := range info.GetTasks() {
		about := t.GetInfo()
		task := taskState{
			Name: cluster.ShortName(t.GetName()), Address: t.GetAddress(), Error: t.GetError(), Weft: about != nil, Version: about.GetVersion(),
			Host: about.GetHost(), PID: about.GetPid(), Uptime: about.GetUptimeSeconds(), Memory: about.GetMemoryBytes(),
			Devices:  append(append([]string{}, about.GetDevices()...), t.GetDevices()...),
			Sessions: []sessionState{}, WorkerSessions: about.GetWorkerSessions(), Resources: []resourceState{}, Failures: []failureState{},
			GPUs: []gpuState{},
		}
		for _, f := range about.GetFailures() {
			task.Failures = append(task.Failures, failureState{
				f.GetLastNanos() / 1e6, f.GetCount(), f.GetSession(), strconv.FormatInt(f.GetStep(), 10), f.GetCode(), f.GetMessage(), shortName(f.GetTask()),
			})
		}
		for _, g := range about.GetGpus() {
			_, name, _ := strings.Cut(g.GetDevice(), "/device:")
			task.GPUs = append(task.GPUs, gpuState{
				name, g.GetDescription(), g.GetInUseBytes(), g.GetPeakBytes(), g.GetLimitBytes(), g.GetKernels(), g.GetKernelSeconds(),
				g.GetCopies(), g.GetCopiedBytes(),
			})
		}
		for _, s := range about.GetSessions() {
			task.Sessions = append(task.Sessions, sessionOf(s))
		}
		for _, r := range about.GetResources() {
			task.Resources = append(task.Resources, resourceState{
				r.GetContainer(), r.GetName(), r.GetKind(), r.GetDtype(), r.GetShape(), r.GetBytes(), r.GetElements(),
			})
		}
		out.Tasks = append(out.Tasks, task)
	}
	return out
}

func sessionOf(s *pb.SessionInfo) sessionState {
	out := sessionState{Handle: s.GetHandle(), Owner: s.GetOwner(), Age: s.GetAgeSeconds(), Nodes: s.GetNodes(), Steps: []stepState{}}
	for _, st := range s.GetSteps() {
		step := stepState{ID: strconv.FormatInt(st.GetId(), 10), Running: st.GetRunningSeconds(), Failed: st.GetFailed(), Waits: []waitState{}}
		for _, w := range st.GetWaits() {
			step.Waits = append(step.Waits, waitState{cluster.ShortName(w.GetTask()), w.GetAddress(), w.GetCall(), w.GetSilent()})
		}
		out.Steps = append(out.Steps, step)
	}
	return out
}

// shortName returns "ps/0" for the name of a task, and "" for "".
func shortName(task string) string {
	if task == "" {
		return ""
	}
	return cluster.ShortName(task)
}
