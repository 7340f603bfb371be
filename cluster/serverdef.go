package cluster

import (
	"bytes"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// ServerDef is a cluster together with the name and the settings of one of its tasks.
type ServerDef struct {
	Cluster    Spec
	Job        string
	Task       int // index in the job
	Port       int // port to listen on; 0 for the one in Cluster
	CPUDevices int // number of CPU devices; 0 means 1
	// Filters restricts the devices of other tasks that a task may see, by task; see
	// tensorflow.ClusterDeviceFilters.
	Filters map[Task][]string
	// DefaultSessionConfig is a serialized tensorflow.ConfigProto with the defaults for sessions.
	DefaultSessionConfig []byte
}

// Self returns the name of the task.
func (d *ServerDef) Self() Task { return Task{d.Job, d.Task} }

// maxCPUDevices bounds the devices of one task, as a protection against typing errors.
const maxCPUDevices = 1024

// Validate checks the cluster, and that it has the task.
func (d *ServerDef) Validate() error {
	if err := d.Cluster.Validate(); err != nil {
		return err
	}
	job, ok := d.Cluster[d.Job]
	if !ok {
		return status.InvalidArgumentf("Job %q was not defined in cluster: its jobs are %s",
			d.Job, strings.Join(d.Cluster.Jobs(), ", "))
	}
	if _, ok := job[d.Task]; !ok && len(job) == 0 {
		return status.InvalidArgumentf("Task %d was not defined in job %q: it has none", d.Task, d.Job)
	} else if !ok {
		return status.InvalidArgumentf("Task %d was not defined in job %q: its tasks are %s", d.Task, d.Job, job.ranges())
	}
	if d.Port < 0 || d.Port > 65535 {
		return status.InvalidArgumentf("%d is not a port", d.Port)
	}
	if d.CPUDevices < 0 || d.CPUDevices > maxCPUDevices {
		return status.InvalidArgumentf("a task cannot have %d CPU devices: at most %d", d.CPUDevices, maxCPUDevices)
	}
	for task, filters := range d.Filters {
		if err := CheckFilters(filters); err != nil {
			return status.From(err).Annotate(" (for %v)", task)
		}
	}
	return nil
}

// ranges returns the indices of a job in the form "0-3, 7".
func (j Job) ranges() string {
	var out []string
	indices := j.indices()
	for lo := 0; lo < len(indices); {
		hi := lo
		for hi+1 < len(indices) && indices[hi+1] == indices[hi]+1 {
			hi++
		}
		if lo == hi {
			out = append(out, fmt.Sprint(indices[lo]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", indices[lo], indices[hi]))
		}
		lo = hi + 1
	}
	return strings.Join(out, ", ")
}

// CheckFilters validates device filters: partial device names such as "/job:ps".
func CheckFilters(filters []string) error {
	for _, f := range filters {
		if _, err := device.Parse(f); err != nil {
			return status.InvalidArgumentf("Invalid device filter: '%s'", f)
		}
	}
	return nil
}

// ParseServerDef parses and validates a tensorflow.ServerDef in text or binary form. In binary
// form, fields that Weft does not know are ignored.
func ParseServerDef(data []byte) (ServerDef, error) {
	unmarshal := prototext.Unmarshal
	if isBinary(data) {
		unmarshal = proto.Unmarshal
	}
	var m pb.ServerDef
	if err := unmarshal(data, &m); err != nil {
		return ServerDef{}, status.InvalidArgumentf("cannot read the ServerDef: %v", err)
	}
	if m.Protocol != "" && m.Protocol != "grpc" {
		return ServerDef{}, status.InvalidArgumentf("a ServerDef with protocol %q cannot be served: only \"grpc\"", m.Protocol)
	}
	if m.Replica != 0 {
		return ServerDef{}, status.InvalidArgumentf("a ServerDef with replica %d cannot be served: only replica 0", m.Replica)
	}
	spec, err := FromJobs(func(yield func(string, map[int32]string) bool) {
		for _, job := range m.GetCluster().GetJob() {
			if !yield(job.GetName(), job.GetTasks()) {
				return
			}
		}
	})
	if err != nil {
		return ServerDef{}, err
	}
	def := ServerDef{Cluster: spec, Job: m.JobName, Task: int(m.TaskIndex), Port: int(m.Port), Filters: filtersOf(&m)}
	if config := m.GetDefaultSessionConfig(); config != nil {
		def.CPUDevices = int(config.DeviceCount["CPU"])
		if def.DefaultSessionConfig, err = proto.Marshal(config); err != nil {
			return def, status.InvalidArgumentf("default_session_config: %v", err)
		}
	}
	return def, def.Validate()
}

// isBinary reports whether a ServerDef is in binary form. Such a message has the tag 0x12 of its
// job name, which is a control character, and the text form escapes those.
func isBinary(data []byte) bool {
	return bytes.ContainsFunc(data, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\v\f\r", r) })
}

func filtersOf(m *pb.ServerDef) map[Task][]string {
	var out map[Task][]string
	for _, job := range m.GetClusterDeviceFilters().GetJobs() {
		for index, task := range job.GetTasks() {
			if out == nil {
				out = map[Task][]string{}
			}
			out[Task{job.GetName(), int(index)}] = task.GetDeviceFilters()
		}
	}
	return out
}
